"""May this git command of an agent run now? Asked by what stands before git in its session.

A command that changes the whole working tree waits for a quiet moment, and then has the turn until
it ends; a commit, or what it adds, is looked at for what others hold, whatever hooks it leaves out.
Runs the real git to be told what it would do; changes nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from coordinator.client.client import Client
from coordinator.files.git import ANSWERS
from coordinator.git_guard import repository
from coordinator.git_guard.commit_check import CommitCheck
from coordinator.rules import git_commands
from coordinator.settings import load
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import harmless

#: Exit codes: it may run; it may, and has the turn; it may not.
RUN, HAS_TURN, STOP = 0, 10, 1
#: How often (seconds) it is asked again while others are at work.
AGAIN_S = 0.25
#: How often a command's own name may stand for another one.
ALIASES_MAX = 10
#: Options of `commit` and `add` that ask the user file by file.
_ASKS_THE_USER = frozenset({"-p", "--patch", "-i", "--interactive", "-e", "--edit-patch"})
_ADDED = re.compile(r"^(?:add|remove) '(.*)'$", re.MULTILINE)


class Program:
    """The real git, with the options that came before the subcommand."""

    def __init__(self, path: str, options: Sequence[str]) -> None:
        self._path = path
        self._options = options

    def says(self, *words: str, ended: tuple[int, ...] = (0,)) -> bytes | None:
        """What it prints; None unless it ended with one of these codes."""
        try:
            done = subprocess.run(
                [self._path, *self._options, *ANSWERS, *words], capture_output=True, check=False,
                stdin=subprocess.DEVNULL, timeout=repository.TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode in ended else None

    def line(self, *words: str) -> str:
        """One line of what it prints; empty where it fails."""
        return os.fsdecode(self.says(*words) or b"").removesuffix("\n")


def main(arguments: Sequence[str]) -> int:
    """REAL PID WORD…: the real git, the process that becomes it, and how it was called."""
    real, pid, *words = arguments
    try:
        return _judged(real, int(pid), words)
    except Refusal as refusal:
        said = refusal.message
        if refusal.code is not Code.LOCKED:
            said = f"nobody can tell whether others are at work here, so git was not run: {said}"
        sys.stderr.write(harmless(f"coord: {said}\n  next: {refusal.next}\n"))
    except KeyboardInterrupt:
        return 130
    except Exception as bad:
        sys.stderr.write(harmless(f"coord: it met a bug, so git was not run ({type(bad).__name__}: "
                                  f"{bad}). Please report it.\n"))
    return STOP


def _judged(real: str, pid: int, words: list[str]) -> int:
    rest = git_commands.git_command(["git", *words])
    git = Program(real, words[: len(words) - len(rest)])
    rest = _meant(git, rest)
    top = git.line("rev-parse", "--show-toplevel")
    check = CommitCheck(Path(top), os.environ) if top else None
    if check is None or not check.used or not rest:
        return RUN
    if rest[0] in ("commit", "add", "stage"):
        return _taken_in(git, check, Path(top), rest)

    def names_commit(word: str) -> bool:
        return word == "-" or bool(git.line("rev-parse", "--verify", "--quiet",
                                            f"{word}^{{commit}}"))

    if not git_commands.wide(rest, names_commit):
        return RUN
    _wait_for_turn(check.root, rq.GitTurn(pid=pid, top=top, command=" ".join(["git", *rest])))
    return HAS_TURN


def _meant(git: Program, rest: list[str]) -> list[str]:
    """What the subcommand stands for, where it is somebody's own name for one."""
    for _ in range(ALIASES_MAX):
        if not rest or rest[0].startswith("-"):
            return rest
        said = git.line("config", "--get", f"alias.{rest[0]}")
        if not said or said.startswith("!"):
            return rest
        rest = [*git_commands.git_command(["git", *said.split()]), *rest[1:]]
    return rest


def _taken_in(git: Program, check: CommitCheck, top: Path, rest: list[str]) -> int:
    """A commit, or what is added to the index: nothing of what others hold."""
    name, args = rest[0], rest[1:]
    options = args[: args.index("--")] if "--" in args else args
    if _ASKS_THE_USER.intersection(options):
        return RUN  # the hook of the commit looks at what was chosen
    if name == "commit":
        said = check.commit_of(_committed(git, top, args))
    else:
        shown = os.fsdecode(git.says("-c", "core.quotePath=false", "add", "--dry-run", *args,
                                     ended=(0, 1)) or b"")
        said = check.add_of(_ADDED.findall(shown))
    sys.stderr.write(harmless(said))
    return STOP if said else RUN


def _committed(git: Program, top: Path, args: list[str]) -> list[str]:
    """The files that a commit with these arguments would have; of a merge, what differs from every
    parent."""
    shown = git.says("commit", "--dry-run", "--porcelain", "-z", *args, ended=(0, 1))
    if shown is None or git.line("rev-parse", "-q", "--verify", "MERGE_HEAD"):
        return repository.staged(top)
    out, fields = [], iter(shown.split(b"\0"))
    for field in fields:
        if field[:1] in (b" ", b"?", b"!", b""):
            continue
        out.append(os.fsdecode(field[3:]))
        if field[:1] in b"RC":
            out.append(os.fsdecode(next(fields)))
    return out


def _wait_for_turn(root: Path, request: rq.GitTurn) -> None:
    """
    Raises:
        Refusal: others are at work, and were so all the time; or nobody can tell.
    """
    patience = load(root).settings.hooks.git_wait_s
    began, said = time.monotonic(), False
    while True:
        try:
            with Client(root, agent="", token=None) as client:
                client.call(request)
            return
        except Refusal as refusal:
            if refusal.code is not Code.LOCKED or time.monotonic() - began >= patience:
                raise
            if not said:
                sys.stderr.write(f"coord: waiting up to {patience:g} s for a quiet moment…\n")
                said = True
        time.sleep(AGAIN_S)
