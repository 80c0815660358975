"""`python -P -m coordinator.git_guard pre-commit|pre-push …`: the program of git's hooks.

`turn` answers the script before git in agents' sessions (turn.py); `commit` commits, `apply`
applies a patch, and `stash` stashes. The program is light to start.

Exit code 0 lets git continue, and 1 stops it with the reason on standard error. If nobody can tell,
it stops with a message, and a person continues with COORD_GUARD=off. If the coordinator is another
user's, it continues with a message, because that coordinator tells this user nothing. In a sandbox
that keeps git from the coordinator it continues, too, except for files that are read-only there
(sandboxed.py).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from coordinator.git_guard import sandboxed, turn
from coordinator.git_guard.commit_check import IN_VIEW, OFF, SWITCH, CommitCheck
from coordinator.wiring import git_repository
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import harmless


def main(arguments: list[str]) -> int:
    """The hook's exit code."""
    hook, rest = (arguments or [""])[0], arguments[1:]
    before_git = {"turn": turn.main, "commit": turn.commit, "apply": turn.apply,
                  "stash": turn.stash}.get(hook)
    if before_git is not None:
        return before_git(rest)
    push_lines = os.fsdecode(sys.stdin.buffer.read()) if hook == "pre-push" else ""
    judge = top = None
    try:
        # A commit may see a scratch tree in place of the working tree: commit.py.
        top = Path(os.environ[IN_VIEW]) if os.environ.get(IN_VIEW) else git_repository.top()
        if top is None:
            return 0  # a bare repository has no files that anybody could hold
        judge = CommitCheck(top, os.environ)
        text = judge.push(rest[0] if rest else "",
                          push_lines) if hook == "pre-push" else judge.commit()
    except Refusal as refusal:
        if judge is None or top is None:
            return _cannot_tell(refusal)
        return _go_on_or_stop(refusal, judge, top, hook)
    except Exception as bad:
        return _cannot_tell(refusal=None, bug=f"{type(bad).__name__}: {bad}")
    sys.stderr.write(harmless(text))
    return 1 if text else 0


def _go_on_or_stop(refusal: Refusal, judge: CommitCheck, top: Path, hook: str) -> int:
    """The exit code where the coordinator did not answer."""
    whose = judge.other_user()
    if whose:
        sys.stderr.write(f"coord: the coordinator here is {whose}'s and tells you nothing: "
                         "git goes on, and nobody has looked who holds these files\n")
        return 0
    return _unasked(top, hook) if refusal.code is Code.SANDBOXED else _cannot_tell(refusal)


def _unasked(top: Path, hook: str) -> int:
    """Judge in a sandbox that keeps git from the coordinator: only read-only files are known there.
    """
    text = "" if hook == "pre-push" else sandboxed.stopped(
        top, git_repository.staged(top), "commit")
    sys.stderr.write(harmless(text or (
        "coord: a sandbox keeps git from asking who holds these files: it goes on, and nobody has "
        "looked\n")))
    return 1 if text else 0


def _cannot_tell(refusal: Refusal | None, bug: str = "") -> int:
    what = refusal.message if refusal is not None else f"it met a bug ({bug})."
    step = refusal.next if refusal is not None else "Please report it."
    if os.environ.get(SWITCH, "").lower() == OFF:
        sys.stderr.write(f"coord: the guard is off; it could not look: {what}\n")
        return 0
    sys.stderr.write(
        f"coord: the guard cannot tell who holds these files, so it stopped git: {what}\n"
        f"  next: {step}\n"
        f"  A person may go on all the same: {SWITCH}={OFF} git …\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
