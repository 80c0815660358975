"""The commands that an agent's settings name for its hooks, as its shell reads them.

Owns their words, and what they come to where this installation of coord is gone, or cannot be run
any more (`uv tool uninstall coord`, `pip uninstall coord`, an interpreter that the distribution has
replaced, a disk that allows no programs): the hook before a tool stops the tool, for nobody could
say whose file it writes; every other hook lets pass, for it stops nothing but a person. Where the
repository has no `.coord` any more nothing is stopped. Runs nothing.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

#: The program that hooks run.
HOOK = Path(__file__).resolve().parent.parent / "_hook.py"


_GONE = ("coord: its hook cannot run, because coord or its Python is gone from this machine. "
         "Nobody can say who holds this file, so the call was stopped. A person installs coord "
         "again, or takes it out: the folder .coord, and what names _hook.py in the settings of "
         "this agent.")
_AS_JSON = f'{{"permissionDecision":"deny","permissionDecisionReason":"{_GONE}"}}'
#: What a shell does once the hook has failed: PYTHON HOOK FOLDER WORDS. Where both of the first
#: work, the hook has said why by itself. (Without single quotes and backslashes: fish reads it,
#: too. What the agent writes to it is read, so that the agent does not fail at that instead.)
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
