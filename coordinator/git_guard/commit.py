"""`git commit` beside others who are at work in the same tree, with the repository's own hooks.

Where others hold something, and the repository has hooks that could put their work aside, or the
commit would take what they have staged, it runs in a view of its own (`commit_view`). It is git's
own commit all the same: its hooks, its editor, its signature and its exit code. Such commits of one
working tree wait for each other.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from coordinator import _git_queue
from coordinator.files.git import under_way
from coordinator.git_guard import commit_view
from coordinator.git_guard.commit_check import IN_VIEW, CommitCheck
from coordinator.git_guard.commit_view import CommitView
from coordinator.git_guard.program import Program
from coordinator.wiring import git_repository
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import harmless

#: How long a commit waits for another in the same working tree, and when it says so (seconds).
WAIT_S, SAYS_AFTER_S, TICK_S = 300.0, 2.0, 0.05
#: How often a commit is made again if the branch has moved meanwhile.
TRIES = 3
#: Its child could not be shown the view.
_NO_VIEW = 97
_PR_SET_PDEATHSIG = 1
#: A commit with one of these words makes none, or only tells.
_TELLS = ("--dry-run", "--short", "--porcelain", "--long", "-h", "--help")
_ELSEWHERE = ("--git-dir", "--work-tree", "--namespace", "--bare")
Judge = Callable[[Program, list[str], list[str]], int]


def find_view(git: Program, check: CommitCheck, top: Path, rest: list[str]) -> CommitView | None:
    """The view that this commit needs; None if it can run as it is.

    Raises:
        Refusal: it is unknown who holds what.
    """
    if (commit_view.is_elsewhere(os.environ) or any(word in _TELLS for word in rest)
            or any(word.startswith(_ELSEWHERE) for word in git.options)
            or check.is_off()):
        return None
    tree = git_repository.WorkTree.of(top)
    if tree is None or not (tree.own / "index").is_file() or not git.line(
            "rev-parse", "-q", "--verify", "HEAD") or under_way(tree.own):
        return None
    hidden = commit_view.find_hidden(git, check, top, rest)
    if not (commit_view.has_hooks(git) and hidden.needs_view) and not (
            hidden.left_out and commit_view.takes_index(git, hidden, rest)):
        return None
    return CommitView(Program(git.path, [*git.options, "-C", str(tree.top)]), tree.top, tree.own,
                      hidden)


def run(git: Program, check: CommitCheck, top: Path, rest: list[str], words: Sequence[str],
        judge: Judge) -> int | None:
    """Carry out a commit in a view, if it needs one; git's exit code, None if it needs none.

    Args:
        words: the command as it was typed, with git's own options.
        judge: whether the commit may happen, seen from within the view; it is given the files that
            are taken as the index has them, too.

    Raises:
        Refusal: it is unknown who holds what, or another commit does not end.
    """
    if commit_view.is_elsewhere(os.environ):
        return None
    tree = commit_view.in_repository(git)
    if tree is None:
        return None
    code = None
    for _ in range(TRIES):
        with _turn(tree.own):
            view = find_view(git, check, top, rest)
            if view is None:
                return None
            try:
                head = git.line("rev-parse", "HEAD")
                code = _committed(view, git, rest, words, judge)
                if code != 128 or git.line("rev-parse", "HEAD") == head:
                    return code
                sys.stderr.write("coord: somebody else has committed meanwhile; once more…\n")
            finally:
                view.close()
    return code


def _committed(view: CommitView, git: Program, rest: list[str], words: Sequence[str],
               judge: Judge) -> int:
    """Try once. Changes in its own index come into the real one."""
    view.build()
    _git_queue.leave(str(view.own))  # it has an index of its own
    if view.hidden.left_out:
        sys.stderr.write(harmless("coord: not in this commit, for others hold it: "
                                  f"{', '.join(view.hidden.left_out)}\n"))
    # A program that writes another file and renames it cannot do so over a mount.
    code = _NO_VIEW if view.hidden.parts else _ran(view, git, rest, words, judge, scratch=False)
    if code == _NO_VIEW:
        view.make_scratch()
        code = _ran(view, git, rest, words, judge, scratch=True)
    view.put_back()
    left = view.bring_back()
    if left:
        sys.stderr.write(harmless("coord: what the hooks changed here does not fit to what others "
                                  f"have written meanwhile, and was left out: {', '.join(left)}\n"))
    return code


def _ran(view: CommitView, git: Program, rest: list[str], words: Sequence[str], judge: Judge, *,
         scratch: bool) -> int:
    """The exit code of git in the view; `_NO_VIEW` if it cannot be shown."""
    below = git.line("rev-parse", "--show-prefix")
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            _become(view, git, rest, words, judge, below if scratch else None, parent)
        except BaseException as bad:
            sys.stderr.write(harmless(f"coord: it met a bug, so nothing was committed "
                                      f"({type(bad).__name__}: {bad}). Please report it.\n"))
            sys.stderr.flush()
        os._exit(1)
    return _waited(child)


def _become(view: CommitView, git: Program, rest: list[str], words: Sequence[str], judge: Judge,
            below: str | None, parent: int) -> NoReturn:
    """In the child: check the files to commit, then become git."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if below is None and not view.enter():
        os._exit(_NO_VIEW)
    typed = [git.path, *words]
    os.environ.update({"GIT_INDEX_FILE": str(view.index), IN_VIEW: str(view.top),
                       "COORD_GIT_TURN": str(parent)})
    if below is not None:
        tree = str(view.scratch)
        os.environ.update({"GIT_DIR": str(view.own), "GIT_WORK_TREE": tree})
        os.chdir(Path(tree, below) if Path(tree, below).is_dir() else tree)
        typed = [git.path, *_without_folders(git.options), "commit", *(
            word.replace(str(view.top), tree, 1) if word.startswith(f"{view.top}/") else word
            for word in rest[1:])]
    try:
        code = judge(Program(git.path, [] if below is not None else git.options), rest,
                     view.hidden.parts)
    except Refusal as refusal:
        sys.stderr.write(harmless(f"coord: {refusal.message}\n  next: {refusal.next}\n"))
        code = 1
    if code:
        sys.stderr.flush()
        os._exit(code)
    os.execv(git.path, typed)


def _without_folders(options: Sequence[str]) -> list[str]:
    """git's own options, without those for its place."""
    result: list[str] = []
    skips = False
    for word in options:
        if skips:
            skips = False
        elif word == "-C":
            skips = True
        else:
            result.append(word)
    return result


def _waited(child: int) -> int:
    """Wait for a child and return its exit code. Signals that would stop this process stop the
    child, which then ends this process."""
    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    before = {number: signal.signal(number, pass_on) for number in (
        signal.SIGTERM, signal.SIGHUP)}
    # A terminal sends these to both.
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in (
        signal.SIGINT, signal.SIGQUIT)}
    try:
        _, status = os.waitpid(child, 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _turn(own: Path) -> Iterator[None]:
    """One commit at a time: they share the file of the message, and the branch.

    Raises:
        Refusal: LOCKED: another does not end.
    """
    if _git_queue.is_held():
        commit_view.remove_left(own)
        yield
        return
    lock = os.open(own / _git_queue.COMMIT, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    began, is_said = time.monotonic(), False
    try:
        while True:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except (BlockingIOError, PermissionError):
                waited = time.monotonic() - began
            if waited >= WAIT_S:
                raise Refusal(
                    Code.LOCKED, f"another commit here has not ended for {WAIT_S:g} s; this one "
                    "was not made, and the index is as it was.",
                    next="Look at its hooks or its editor, then commit again.")
            if waited >= SAYS_AFTER_S and not is_said:
                sys.stderr.write("coord: waiting for another commit here to end…\n")
                is_said = True
            time.sleep(TICK_S)
        commit_view.remove_left(own)
        yield
    finally:
        os.close(lock)
