"""`coord shims install|remove`: an agent's own name starts it in a protected session."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated

from coordinator.cli.app import confirm, people_only, print_json, say
from coordinator.client.locating import locate_root
from coordinator.commands.signatures import Argument, AsJson, command, declare_group
from coordinator.namespaces import kernel
from coordinator.profiles import Profile, is_packaged, profiles
from coordinator.wiring import command_prefix, shims
from coordinator.words.refusals import Code, Refusal

declare_group("shims", "Let `claude`, `codex`, … start in a protected session, typed as always.")


@command("shims install")
def install(
    program: Annotated[
        list[str] | None, Argument("Default: every agent that is installed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put shims named like agents' programs into a folder, for you to put first on PATH.

    In a repository that uses coord, an agent typed as always then runs in a session like that of
    `coord run`; elsewhere the real program runs at once.
    """
    programs = shims.programs(profile for profile in profiles(locate_root())
                           if is_packaged(profile.name))
    wanted = program or [name for name in programs if shims.real(name)]
    _check_programs(wanted, programs)
    if not wanted:
        raise Refusal(Code.INVALID, "None of the agents that coord knows is on PATH.",
                      next="`coord agents profiles` lists them.")
    made = [name for name in wanted if shims.install(name, programs[name])]
    sentences = _list_left(made)
    kept = [name for name in wanted if name not in made]
    if as_json:
        print_json({"folder": str(shims.folder()), "made": made, "kept": kept, "notes": sentences})
        return
    for text in made:
        say(f"{text}: has a shim ({shims.folder() / text})")
    for text in kept:
        say(f"{text}: left as it is, for {shims.folder() / text} is not of coord's making")
    for text in sentences:
        say(text)


def _check_programs(wanted: Iterable[str], startable: Collection[str]) -> None:
    for text in wanted:
        if text not in startable:
            raise Refusal(Code.INVALID, f"coord knows no agent that is started as {text}. Nothing "
                          "was written.", next=f"One of: {', '.join(sorted(startable))}.")
        if shims.real(text) is None:
            raise Refusal(Code.INVALID, f"{text} is not installed, so it gets no shim. Nothing was "
                          "written.", next=f"Install it, then `coord shims install {text}`.")

@command("shims remove")
def remove(as_json: AsJson = False) -> None:
    """Take coord's shims away; the agents are as before."""
    people_only("taking coord's shims away", "Ask the person who runs coord.", typed=True)
    gone = shims.remove()
    if as_json:
        print_json({"folder": str(shims.folder()), "removed": gone})
        return
    for text in gone:
        say(f"{text}: its shim is gone")
    if not gone:
        say("There are no shims.")


def offer(wired: Sequence[Profile], root: Path | None, *, wanted: bool | None,
          asks: bool) -> list[str]:
    """Offer a person shims for the agents that were just wired. Returns notes to print.

    Args:
        root: the repository that they were wired for; None: all of them.
        wanted: what was said on the command line; None: nothing.
        asks: whether a person may be asked.
    """
    lacking = {program: profile for program, profile in shims.programs(wired).items()
               if shims.real(program) and program not in shims.installed()}
    if not lacking or wanted is False or kernel.refused():
        return []
    if wanted is None and not asks:
        return _warn_of_free(lacking, wired, root)
    names = ", ".join(lacking)
    if wanted is None:
        say(f"Shims let {names} be typed as always and run in a session in which no command can "
            f"write what others hold. They go into {shims.folder()}; nothing else is changed.")
        if not confirm(f"Make shims for {names}?"):
            return []
    made = [program for program, profile in lacking.items() if shims.install(program, profile)]
    for text in made:
        say(f"{text}: has a shim ({shims.folder() / text})")
    return [name.removeprefix("note: ") for name in _list_left(made)]


def _warn_of_free(lacking: Iterable[str], wired: Sequence[Profile], root: Path | None) -> list[str]:
    """Return the note about programs whose commands can still write files that others hold."""
    free = [program for program in lacking if not any(
        program in shims.programs([profile]) and command_prefix.is_wired(profile, root)
        for profile in wired)]
    return [f"commands of {', '.join(free)} can still write what others hold; `coord shims "
            "install` lets what you type start sessions in which they cannot"] if free else []


def _list_left(made: list[str]) -> list[str]:
    """Return the steps left for a person."""
    hidden = [text for text in made if not shims.hides(text)]
    if not hidden:
        return []
    line, file = shims.line_for_shell(os.environ.get("SHELL", ""))
    return [f"note: {', '.join(hidden)} typed here is still the program itself: the folder of the "
            "shims is not first on PATH",
            f"next: add this line to the end of {file}, and open a new shell: {line}"]
