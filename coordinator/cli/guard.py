"""`coord guard install|check|remove`: git's own hooks refuse what other agents hold.

`coord commit`: `git commit` beside others who are at work in the same tree.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

from coordinator.cli.app import people_only, print_json, say
from coordinator.client.locating import locate_root
from coordinator.commands.signatures import Argument, AsJson, command, declare_group
from coordinator.files.state import StateDir
from coordinator.git_guard.commit_check import CommitCheck
from coordinator.wiring import git_hooks, git_repository
from coordinator.wiring.git_repository import WorkTree
from coordinator.words.refusals import Code, Exit, Refusal

declare_group("guard", "Let git's hooks refuse commits and pushes of what others hold.")

STAGED = "a commit of what is staged now would be refused."


@command("guard install")
def install(as_json: AsJson = False) -> None:
    """Put the guard into git's pre-commit and pre-push hooks, beside existing ones.

    A person overrides it with `COORD_GUARD=off git commit …`, which is recorded, or with
    `--no-verify`, which is not.
    """
    place = Path.cwd()
    StateDir(locate_root()).check_ours()
    found_hooks = git_hooks.find_hooks(place)
    changed = [hook for hook in found_hooks if hook.install()]
    git_hooks.record_by_hand(locate_root(), found_hooks)
    sentences = git_hooks.remarks(place, found_hooks)
    if as_json:
        print_json({"items": [_item(hook) for hook in found_hooks], "next": None,
                    "notes": sentences})
        return
    for hook in found_hooks:
        say(f"{hook.path}: " + ("the guard is in it now" if hook in changed else "guarded already"))
    for text in sentences:
        say(f"note: {text}")
    if not (locate_root() / ".coord").is_dir():
        say("note: coord is not used here yet; until then the guard lets everything pass")
    say("next: coord guard check")


@command("guard check")
def check(as_json: AsJson = False) -> int:
    """Check that the hooks are in place, and that the staged files may be committed."""
    place = Path.cwd()
    tree = WorkTree.of(place)
    found_hooks = git_hooks.find_hooks(place, tree)
    top, own = (tree.top, tree.own) if tree is not None else (git_repository.top(place), None)
    text = CommitCheck(top, os.environ).commit(own, STAGED) if top is not None else ""
    missing = [hook for hook in found_hooks if hook.state() != "guarded"]
    if as_json:
        print_json({"items": [_item(hook) for hook in found_hooks], "next": None, "refused": text})
    else:
        for hook in found_hooks:
            say(f"{hook.path}: {hook.state()}")
        say(text.rstrip("\n") or "What is staged may be committed.")
        if missing:
            say("next: coord guard install")
    return Exit.INCOMPLETE if missing else Exit.HELD if text else Exit.OK


@command("guard remove")
def remove(as_json: AsJson = False) -> None:
    """Take the guard out of git's hooks, which then are as before, byte by byte."""
    people_only("taking the guard out of git's hooks", "Ask the person who runs coord.",
                typed=True)
    place = Path.cwd()
    found_hooks = git_hooks.find_hooks(place)
    changed = [hook for hook in found_hooks if hook.remove()]
    git_hooks.record(locate_root(), [])
    if as_json:
        print_json({"items": [_item(hook) for hook in found_hooks], "next": None})
        return
    for hook in changed:
        say(f"{hook.path}: the guard is out of it")
    if not changed:
        say("The guard is in none of git's hooks.")


def _item(hook: git_hooks.Hook) -> dict[str, str]:
    return {"hook": hook.name, "file": str(hook.path), "state": hook.state()}


#: The first lines of the program that replaces git in a session. It calls this command itself.
_STANDS_IN = b"#!/bin/sh\n# Stands in for git"


@command("commit", takes_all=True)
def commit(
    arguments: Annotated[
        list[str] | None, Argument("Options and files, as `git commit` takes them.")
    ] = None,
) -> int:
    """Commit your own files while others work in the same tree, with the repository's own hooks.

    Takes the arguments of `git commit`. The commit and its hooks see the files that others hold as
    they are in the last commit. The others keep writing them meanwhile, and nothing of theirs is
    put aside. What hooks rewrite comes back to the committed files alone.
    """
    real = shutil.which("git")
    if real is None:
        raise Refusal(Code.INVALID, "git is not installed here, so nothing was committed.",
                      next="Install git.")
    words = [real, "commit", *(arguments or ())]
    sys.stdout.flush()
    with Path(real).open("rb") as program:
        stands_in = program.read(len(_STANDS_IN)) == _STANDS_IN
    if stands_in:
        os.execv(real, words)
    from coordinator.git_guard import turn

    return turn.commit(words)
