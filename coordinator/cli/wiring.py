"""`coord init --agent …`: settings of agent CLIs, seen before they are written; `coord hook`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.app import app, complain, say
from coordinator.client.wire import connect, locate_root, start
from coordinator.files.state import StateDir
from coordinator.profiles import Profile, load, profiles
from coordinator.wiring.wire import HOOK, Change, Wirer
from coordinator.words.refusals import Code, Refusal


def chosen(root: Path, names: Sequence[str], everything: bool) -> list[Profile]:
    """The profiles that a person named, or all that are installed and can be wired."""
    found = [load(name, root) for name in names]
    if everything:
        found += [
            profile for profile in profiles(root)
            if profile.wire and profile.command and shutil.which(profile.command[0])
            and profile.name not in names
        ]
        if not found:
            raise Refusal(
                Code.INVALID, "None of the agent CLIs that coord knows is on PATH.",
                next="`coord agents profiles` lists them; name one with --agent.",
            )
    return found


def wire(
    root: Path, wanted: Sequence[Profile], *, yes: bool, remove: bool, user: bool
) -> list[str]:
    """Show what would change, ask, write; the files that were changed."""
    wirer = Wirer(StateDir(root), Path.home(), user=user)
    plans = [(one, wirer.unplan(one) if remove else wirer.plan(one)) for one in wanted]
    changed: list[str] = []
    for profile, changes in plans:
        if not changes:
            say(f"{profile.name}: " + ("nothing of coord's is in its settings" if remove else
                                       "wired already"))
            continue
        for change in changes:
            sys.stdout.write(change.shown())
        if not yes and not _agreed(profile, changes):
            say(f"{profile.name}: left as it was")
            continue
        if remove:
            wirer.remove(changes)
        else:
            wirer.apply(profile, changes)
        changed += [str(change.path) for change in changes]
        say(f"{profile.name}: {'taken out' if remove else 'wired'}")
    return changed


def _agreed(profile: Profile, changes: Sequence[Change]) -> bool:
    if not sys.stdin.isatty():
        raise Refusal(
            Code.INVALID, f"{len(changes)} files would change for {profile.name}; nobody is there "
            "to be asked, so nothing was written.", next="Repeat it with --yes.",
        )
    return typer.confirm(f"Write this for {profile.name}?")


def live(root: Path, profile: Profile) -> str | None:
    """Whether a hook of this profile really reaches the coordinator: what is wrong, or None."""
    state = StateDir(root)
    assert profile.hooks is not None
    event = {"claude": "", "gemini": "", "copilot": ":doctor", "plain": ":doctor"}
    name = profile.name + event[profile.hooks.dialect]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-E", str(HOOK), str(state.socket()), name, "closed",
             "10"], input=b'{"hook_event_name": "CoordDoctor"}', capture_output=True, timeout=20,
            check=False, cwd=root,
        )
    except (OSError, subprocess.TimeoutExpired) as bad:
        return f"its hook cannot be run: {bad}"
    return done.stderr.decode("utf-8", "replace").strip() if done.returncode else None


@app.command("hook")
def hook(
    profile: Annotated[str, typer.Argument(help="PROFILE, or PROFILE:EVENT.")],
) -> int:
    """What an agent runs when its session begins: starts the coordinator, then serves the hook.

    Before each write the faster form is run, which `coord init` writes into the settings.
    """
    try:
        state = StateDir(locate_root())
        sock = connect(state)
        if sock is not None:
            sock.close()
        elif state.path.is_dir():
            start(state)
        else:
            return 0  # a user's own wiring, in a repository that does not use coord
    except Refusal as refusal:
        complain(f"coord: {refusal.message} {refusal.next}")
        return 0  # the beginning of a session cannot be refused; its first write will be
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-E", str(HOOK), str(state.socket()), profile, "open", "60"],
        check=False,
    )
    return done.returncode
