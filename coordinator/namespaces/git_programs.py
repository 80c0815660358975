"""The git programs that an agent may call, and the scripts before them in its session.

The module owns the folder of the scripts that are mounted over them (_git.sh). It lists the git
commands that ask; git_guard/turn.py decides the answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from coordinator.files import ownership
from coordinator.files.git import clean_environment

#: Commands that may change more than the files that they name, or commit what others hold.
ASKS = ("add", "am", "apply", "bisect", "checkout", "checkout-index", "cherry-pick", "clean",
        "commit", "fast-import", "filter-branch", "merge", "mv", "pull", "read-tree", "rebase",
        "reset", "restore", "revert", "rm", "sparse-checkout", "stage", "stash", "submodule",
        "switch", "update-index", "update-ref")
#: They ask only with certain words: see _git.sh (branch, fetch, symbolic-ref). Known to change no
#: file of the working tree, or only those that they name. Any other word may be an alias: the real
#: git is asked for its meaning.
PASSES = ("annotate", "archive", "blame", "bundle", "cat-file", "check-*", "cherry",
          "clone", "column", "commit-graph", "commit-tree", "config", "count-objects",
          "credential*", "daemon", "describe", "diff*", "fast-export", "fetch-*",
          "for-each-*", "format-patch", "fsck", "fsmonitor*", "gc", "grep", "hash-object", "help",
          "hook", "index-pack", "init*", "interpret-trailers", "lfs", "log", "ls-*", "mail*",
          "maintenance", "merge-*", "mk*", "multi-pack-index", "name-rev", "notes", "pack-*",
          "patch-id", "prune*", "push", "range-diff", "receive-pack", "reflog", "remote*",
          "repack", "replace", "request-pull", "rerere", "rev-*", "send-*", "shortlog",
          "show*", "status", "stripspace", "tag", "unpack-*", "update-server-info",
          "upload-*", "var", "verify-*", "version", "whatchanged", "write-tree")
_SCRIPT = Path(__file__).resolve().parent.parent / "_git.sh"
_HOOK = _SCRIPT.with_name("_hook.py")
_QUEUE = _SCRIPT.with_name("_git_queue.py")
#: How the script begins.
_SIGN = b"#!/bin/sh\n# Stands in for git in an agent's session"
#: How long (seconds) git may take to name the place of its own programs.
TIMEOUT_S = 5.0


def list_programs(path: str) -> list[str]:
    """The git programs that a process with this PATH may call: real paths, each once."""
    names = [Path(folder, "git") for folder in path.split(os.pathsep) if folder]
    first = shutil.which("git", path=path)
    if first is not None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            stdout = subprocess.run([first, "--exec-path"], capture_output=True, check=True,
                                    timeout=TIMEOUT_S, env=clean_environment()).stdout
            names.append(Path(os.fsdecode(stdout).strip(), "git"))
    programs: dict[str, None] = {}
    for name in names:
        real = os.path.realpath(name)
        # A program with another real name does more than git alone.
        if Path(real).name == "git" and _is_program(real):
            programs.setdefault(real)
    return list(programs)


def is_covered() -> bool:
    """Whether a git that this process calls by its name is the script, not the program."""
    program = shutil.which("git")
    if program is None:
        return False
    with open(program, "rb") as file:
        return file.read(len(_SIGN)) == _SIGN


def prepare(programs: list[str]) -> list[list[str]]:
    """Make a folder for each of these programs, and return what to mount: [program, folder].

    Raises:
        OSError: there is no place for it.
        Refusal: FOREIGN: the place is not this user's own.
    """
    base = _place()
    return [[program, str(_written(base, program))] for program in programs]


def _place() -> Path:
    """As root a folder that others can read, because a program that has become another user needs
    it."""
    if os.getuid() == 0 and os.access("/var/lib", os.W_OK):
        base = Path("/var/lib/coord/git")
        base.mkdir(parents=True, exist_ok=True)
    else:
        base = ownership.state_folder() / "git"
        ownership.make_folder(base)
    if os.statvfs(base).f_flag & os.ST_NOEXEC:
        raise OSError(0, f"programs in {base} cannot be run")
    return base


def _written(base: Path, program: str) -> Path:
    made_of = f"{program}\0{sys.executable}\0{_HOOK}\0".encode() + _SCRIPT.read_bytes()
    digest = hashlib.blake2b(made_of, digest_size=8).hexdigest()
    folder = base / digest
    real = folder / "git"
    script = _SCRIPT.read_text("utf-8")
    for sign, value in (("@REAL@", shlex.quote(str(real))), ("@ASKS@", "|".join(ASKS)),
                        ("@PASSES@", "|".join(PASSES)), ("@PYTHON@", shlex.quote(sys.executable)),
                        ("@HOOK@", shlex.quote(str(_HOOK))),
                        ("@QUEUE@", shlex.quote(str(_QUEUE)))):
        lines = [line if line.startswith("#") else line.replace(sign, value)
                 for line in script.splitlines(keepends=True)]
        script = "".join(lines)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    _put(folder / "ask", script.encode())
    _put(real, b"")
    return folder


def _put(path: Path, data: bytes) -> None:
    """One that is there is not touched: a session may have it mounted."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data and os.access(path, os.X_OK):
            return
    number, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(number, "wb") as file:
        file.write(data)
        os.fchmod(number, 0o755)
    Path(name).replace(path)


def _is_program(path: str) -> bool:
    try:
        return stat.S_ISREG(Path(path).stat().st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False
