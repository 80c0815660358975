"""What an agent's CLI puts before its commands, where it can: they run in its session then.

Owns one small program for each repository (and one for all), in the user's own folder, so that it
outlives neither coord nor the repository's `.coord`: where one of them is gone, and where the
process belongs to no agent, the command runs as it came. The CLI judges commands as its model wrote
them; this stands only before what it starts. (Claude Code: `CLAUDE_CODE_SHELL_PREFIX`. It hands the
text for a shell over as one word, also that of a hook; the words of a server one by one.)
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
shell=sh
case ${{1-}} in
    */shell-snapshots/snapshot-zsh-*) shell=zsh ;;
    */shell-snapshots/snapshot-bash-* | *'pwd -P >|'*) shell=bash ;;
esac
[ $# -ne 1 ] || set -- "$shell" -c "$1"
case $* in *{hook}*) exec "$@" ;; esac
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
    """Where the program for this repository lies; None: for all of them."""
    folder = shims.folder().parent / "command-prefixes"
    if root is None:
        return folder / "any"
    return folder / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def is_wired(profile: Profile, root: Path | None) -> bool:
    """Whether it stands before the commands of this agent: its settings have it, and it is made."""
    return place(root).exists() and any(
        "{prefix}" in piece.value for entry in profile.wire for piece in entry.set)


def can_be(root: Path | None) -> bool:
    """Whether it would be of use: this machine has namespaces, and its place is a word that a CLI
    takes for one program."""
    return not kernel.refused() and " -" not in str(place(root))


def make(root: Path | None, hook: Path) -> None:
    """Write it, or put right what an older version has written.

    Raises:
        OSError.
    """
    path = place(root)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = {"python": shlex.quote(sys.executable), "enter": shlex.quote(str(orders.ENTER)),
             "root": shlex.quote(str(root))}
    told = " ".join(str(root or "for every repository").split())
    text = _SCRIPT.format(**words | {"root": told},
                          hook=shlex.quote(str(hook)),
                          find=(_ANY if root is None else _THIS).format(**words))
    write_atomic(path, text.encode("utf-8", "surrogateescape"), 0o700)


def remove(root: Path | None) -> None:
    """Take it away."""
    with suppress(OSError):
        place(root).unlink()
        place(root).parent.rmdir()
        place(root).parent.parent.rmdir()  # coord's own, too, where nothing else is in it
