"""The program that an agent's CLI can put before its commands, so that they run in its session.

The module owns one small program for each repository (and one for all), in the user's own folder.
If coord or the repository's `.coord` is gone, or if the process belongs to no agent, the command
runs unchanged. The CLI judges commands as its model wrote them; the program comes only before what
it starts. Claude Code has `CLAUDE_CODE_SHELL_PREFIX`: it hands the text for a shell over as one
word, also that of a hook, and the words of a server one by one.

The commands that an agent's settings name for its hooks, as its shell reads them.

The module owns their words, and their effect if this installation of coord is gone or cannot run
(`uv tool uninstall coord`, `pip uninstall coord`, an interpreter that the distribution has
replaced, a disk that allows no programs). The hook before a tool stops the tool, because the holder
of its files is unknown. Every other hook lets pass, because it would only stop a person. In a
repository without a `.coord` nothing is stopped. The module runs nothing.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from coordinator.files.content import write_atomic
from coordinator.namespaces import kernel, orders
from coordinator.profiles.profile import Profile
from coordinator.wiring import shims

_SCRIPT = """#!/bin/sh
# Runs a command of an agent in its session. Made by `coord init`; `coord init --remove` takes it
# away. ({root})
case $* in *{hook}*) [ $# -ne 1 ] && exec "$@"; eval "$1"; exit ;; esac
shell=sh
case ${{1-}} in
    */shell-snapshots/snapshot-zsh-*) shell=zsh ;;
    */shell-snapshots/snapshot-bash-* | *'pwd -P >|'*) shell=bash ;;
esac
[ $# -ne 1 ] || set -- "$shell" -c "$1"
[ -z "${{COORD_AGENT_TOKEN-}}" ] && [ -x {python} ] && [ -f {enter} ] || exec "$@"
{find}
exec "$@"
"""
_THIS = """root={root}
[ ! -d "$root/.coord" ] || exec {python} -I -S -E {enter} join "$root" "$PWD" "$@"\
"""
_ANY = """root=$PWD
while [ -n "$root" ]; do
    [ ! -d "$root/.coord" ] || exec {python} -I -S -E {enter} join "$root" "$PWD" "$@"
    root=${{root%/*}}
done\
"""


def place(root: Path | None) -> Path:
    """The place of the program for this repository; None: for all of them."""
    folder = shims.folder().parent / "command-prefixes"
    if root is None:
        return folder / "any"
    return folder / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def is_wired(profile: Profile, root: Path | None) -> bool:
    """Whether the prefix is before this agent's commands: its settings have it, and it exists."""
    return place(root).exists() and any(
        "{prefix}" in piece.value for entry in profile.wire for piece in entry.set)


def can_be(root: Path | None) -> bool:
    """Whether it would be of use: this machine has namespaces, and its place is a word that a CLI
    takes for one program."""
    return not kernel.refused() and " -" not in str(place(root))


def make(root: Path | None, hook: Path) -> None:
    """Write it, or replace what an older version has written.

    Raises:
        OSError.
    """
    path = place(root)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = {"python": shlex.quote(sys.executable), "enter": shlex.quote(str(orders.ENTER)),
             "root": shlex.quote(str(root))}
    root_text = " ".join(str(root or "for every repository").split())
    text = _SCRIPT.format(**words | {"root": root_text},
                          hook=shlex.quote(str(hook)),
                          find=(_ANY if root is None else _THIS).format(**words))
    write_atomic(path, text.encode("utf-8", "surrogateescape"), 0o700)


def remove(root: Path | None) -> None:
    """Take it away."""
    with suppress(OSError):
        place(root).unlink()
        place(root).parent.rmdir()
        place(root).parent.parent.rmdir()  # also coord's own, if it is empty


#: The program that hooks run.
HOOK = Path(__file__).resolve().parent.parent / "_hook.py"


_GONE = ("coord: its hook cannot run, because coord or its Python is gone from this machine. "
         "Nobody can say who holds this file, so the call was stopped. A person installs coord "
         "again, or takes it out: the folder .coord, and what names _hook.py in the settings of "
         "this agent.")
_AS_JSON = f'{{"permissionDecision":"deny","permissionDecisionReason":"{_GONE}"}}'
#: The shell's reaction to a failed hook: PYTHON HOOK FOLDER WORDS. If both of the first work, the
#: hook has said why by itself. It has no single quotes and backslashes, because fish reads it, too.
#: It reads the agent's input, so that the agent does not fail at that instead.
_FIND = ('for at in "$PWD" "$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null)"; '
         'do while [ -n "$at" ] && [ ! -d "$at/.coord" ]; do at="${at%/*}"; done; '
         '[ -z "$at" ] || break; done; [ -n "$at" ] || exit 0; ')
_STOP = ('cat >/dev/null; if [ -e "$2" ] && "$1" -I -S -E -c pass 2>/dev/null; then exit 2; fi; '
         'if [ "$3" = - ]; then ' + _FIND + 'elif [ ! -d "$3" ]; then exit 0; fi; ')
_SAYS = {"closed": ('echo "$4" >&2; exit 2', _GONE), "spoken": ('echo "$4"; exit 2', _AS_JSON)}


def guard(socket: str, name: str, patience_s: float, folder: str, *, is_spoken: bool) -> str:
    """The hook before a tool.

    Args:
        socket: where the coordinator listens; "-": the one around the working directory.
        name: PROFILE or PROFILE:EVENT.
        patience_s: how long it waits for an answer (seconds).
        folder: the repository's `.coord`; "-": that of the repository around the working directory.
        is_spoken: say a refusal as JSON, for a CLI that shows no words of a hook that failed.
    """
    mode = "spoken" if is_spoken else "closed"
    says, text = _SAYS[mode]
    return f"{_words(socket, name, mode, patience_s)} || " + shlex.join(
        ("sh", "-c", _STOP + says, "coord", sys.executable, str(HOOK), folder, text))


def notice(socket: str, name: str, patience_s: float) -> str:
    """A hook that only tells; arguments as of `guard`."""
    return f"{_if_there()}{_words(socket, name, 'open', patience_s)} || true"


def begin(name: str) -> str:
    """The hook of a session's beginning, which starts the coordinator."""
    return _if_there() + shlex.join((sys.executable, "-P", "-m", "coordinator.cli.main", "hook",
                                   name))


def _if_there() -> str:
    return "".join(f"test ! {flag} {shlex.quote(path)} || " for flag, path in (
        ("-x", sys.executable), ("-e", str(HOOK))))


def _words(socket: str, name: str, mode: str, patience_s: float) -> str:
    return shlex.join((sys.executable, "-I", "-S", "-E", str(HOOK), socket, name, mode,
                       f"{patience_s:g}"))
