"""What an agent's session stands on beside its namespace: the keeper, what stands before git, what
of coord's own files it may write. Decides nothing; most of it is done in a thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.namespaces import git_programs, orders
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.namespaces")


def check_outside(root: Path) -> None:
    """That this process is in no session; if it is, a coordinator is started outside.

    Raises:
        Refusal: BAD_TRANSITION: another one serves in a moment.
    """
    if orders.start_outside(root):
        raise Refusal(
            Code.BAD_TRANSITION, "A coordinator is not run in an agent's session. One is started "
            "outside of it.", next="`coord status` shows it.",
        )


def have_keeper() -> None:
    """Start this user's keeper if there is none. In a thread.

    Raises:
        Refusal: there can be none.
    """
    orders.connect(start=True).close()


def programs_before_git(path: str) -> list[list[str]]:
    """What stands before git in a session; nothing where it cannot be had. In a thread."""
    if not path:
        return []
    try:
        return git_programs.prepare(git_programs.list_programs(path))
    except (OSError, Refusal) as bad:
        log.warning("git does not ask in sessions: %s", bad)
        return []


def own_files(root: str, directory: str) -> list[str]:
    """What a session may write of coord's own files, which else nobody's may: the worktree that its
    agent works in, and the notes of resumable steps. In a thread."""
    state = StateDir(Path(root))
    own = []
    try:
        ownership.make_folder(state.steps)
        own.append(str(state.steps))
    except (OSError, Refusal) as bad:
        log.warning("a session can have no resumable steps: %s", bad)
    with contextlib.suppress(ValueError):
        run, agent, *_ = Path(os.path.realpath(directory)).relative_to(state.worktrees).parts
        own.append(str(state.worktrees / run / agent))
    return own


def directory_of(pid: int) -> str:
    """Where a process works; nothing where it has ended."""
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""
