"""Shims: small programs with the names of agents, before them on PATH.

A person types what they always type and gets a protected session in repositories that use coord.
The module owns one folder of the user's and its contents. It never touches another program's file
or a shell's settings. A shim is sh. Outside of such a repository, in a session, and for `--version`
the real program runs at once. The convention is that of pyenv, asdf and mise.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from coordinator.files.content import write_atomic
from coordinator.profiles import Profile

_MARK = "# A shim of coord's"
#: The script of a shim, with fields for `str.format`.
_SCRIPT = Path(__file__).with_name("shim.sh")


def folder() -> Path:
    """The folder of this user's shims."""
    data = os.environ.get("XDG_DATA_HOME") or ""
    return Path(data if data.startswith("/") else Path.home() / ".local/share") / "coord/shims"


def programs(profiles: Iterable[Profile]) -> dict[str, str]:
    """The program of each agent that a person may start -> its profile."""
    return {profile.command[0]: profile.name for profile in profiles
            if profile.wire and profile.command and profile.command[0].isidentifier()}


def real(program: str) -> str | None:
    """What would run without shims; None: it is not installed."""
    if "/" in program:
        return shutil.which(program)
    mine = os.path.realpath(folder())
    every = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(program, path=os.pathsep.join(
        text for text in every if os.path.realpath(text or ".") != mine))


def hides(program: str) -> bool:
    """Whether the typed name is a shim."""
    text = None if "/" in program else shutil.which(program)
    return text is not None and os.path.realpath(Path(text).parent) == os.path.realpath(folder())


def install(program: str, profile: str) -> bool:
    """Make one, or replace that of an older version. False: another's file is in its place, and
    stays."""
    path = folder() / program
    if path.is_symlink() or (path.exists() and not _is_ours(path)):
        return False
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = _SCRIPT.read_text("utf-8").format(
        mark=_MARK, program=program, profile=profile, folder=shlex.quote(str(folder())),
        python=shlex.quote(sys.executable))
    write_atomic(path, text.encode("utf-8", "surrogateescape"), 0o755)
    return True


def installed() -> list[str]:
    """The programs that have one."""
    with suppress(OSError):
        return sorted(path.name for path in folder().iterdir() if _is_ours(path))
    return []


def remove() -> list[str]:
    """Take all of them away, and the folder if nothing else is in it; which those were."""
    gone = installed()
    for program in gone:
        (folder() / program).unlink(missing_ok=True)
    with suppress(OSError):
        folder().rmdir()
    return gone


def line_for_shell(shell: str) -> tuple[str, str]:
    """The line that makes the shims come first, and the file that a person adds it to."""
    place = shlex.quote(str(folder()))
    name = Path(shell).name
    if name == "fish":
        return f"fish_add_path --path --prepend {place}", "~/.config/fish/config.fish"
    file = {"zsh": "~/.zshrc", "bash": "~/.bashrc"}.get(name, "~/.profile")
    return f'export PATH={place}:"$PATH"', file


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _MARK.encode() in file.read(200)
    except OSError:
        return False
