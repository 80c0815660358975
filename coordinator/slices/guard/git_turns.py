"""Git's turn: a git command that changes the whole working tree runs while nobody else is at work.

The turn begins only when nobody else holds anything in that tree. Until it ends nobody else is
granted anything there (kernel/leasing/blockers.py). So the command never meets a file that it may
not write. A linked worktree is a tree of its own. So is a repository below the root, such as a
submodule or a fixture, in which only its own files count.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import partial

from coordinator.kernel import branches
from coordinator.kernel.core import Actor, Service, listed, ms
from coordinator.kernel.leasing import git_turn, grant, leases
from coordinator.kernel.leasing.blockers import find_blockers
from coordinator.kernel.leasing.git_turn import is_turn
from coordinator.looking.facts import AnyNeed, Place
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import quoted

#: For how long one command has it (seconds); renewed while its process is known to live.
TURN_S = 120.0
#: A holder of whom nothing was heard for so long (ms) does not release within git's wait.
IDLE_MS = 15_000
_WORKTREE = "A branch can be worked on in a tree of its own: `git worktree add ../NAME BRANCH`."
_FILES = ("Name your own files instead: `git add -- FILE…`, `git commit -m … -- FILE…`, `git "
          "checkout -- FILE…`, `git stash push -- FILE…` (and back with `git checkout stash@{0} "
          "-- FILE…`).")
_STASHES = "What is in it harms nobody meanwhile."
#: See `tree_of`.
ELSEWHERE = ""
#: The alternatives to a command, by its name.
INSTEAD = {
    "pull": "`git fetch` is free at any time. Pull when they are done.",
    "merge": _WORKTREE, "rebase": _WORKTREE, "cherry-pick": _WORKTREE, "revert": _WORKTREE,
    "am": _WORKTREE, "switch": _WORKTREE, "bisect": _WORKTREE,
    "reset": "`git restore -- FILE…` does so to your own files (`--source COMMIT`: as they "
             "were then).",
    "clean": "Name what is your own: `git clean -f -- PATH…`.",
    "checkout": f"{_WORKTREE} One file: `git checkout BRANCH -- FILE`.",
}


def needs(cwd: str) -> list[AnyNeed]:
    """What to look at to learn in which tree a directory is."""
    return [Place(cwd, None, True)]


def tree_of(svc: Service, tx: Tx, folder: str, made: str = "") -> str | None:
    """The tree that a git command in this folder changes. The folder is absolute, or relative to
    the root. The tree is a linked worktree, or the top of a repository below the root. None means
    the main working tree. ELSEWHERE means a repository outside, in which nobody holds anything
    here.

    Args:
        made: a folder, absolute, that will be a repository by then.

    Raises:
        Refusal: it lies outside of this repository, and git there may be its own.
        Unready: that was not looked at.
    """
    folder = posixpath.join(svc.root, folder)
    own = tx.looked.after(f"the repository around {folder} once {made} is one", partial(
        branches.own_repository, str(svc.tree.root), folder, made))
    try:
        located = tx.looked.place(folder, literal=True)
        return own or located.worktree
    except Refusal as refusal:
        if refusal.code is Code.OUTSIDE_REPO and own and "coordinator" not in refusal.facts:
            return ELSEWHERE
        raise


def take(svc: Service, tx: Tx, agent: str,
         commands: Sequence[tuple[str, str | None]]) -> Refusal | None:
    """Take the turns for git commands, each with its tree (`tree_of`), all or none; why they may
    not run now, or nothing.

    Args:
        agent: whose they are; empty for one who is not registered here: nothing is taken then.
    """
    if svc.settings.hooks.git_wide == "allow":
        return None
    commands = [command for command in commands if command[1] != ELSEWHERE]
    turns = {tree: git_turn.turn_in(tree) for _, tree in commands}
    for command, tree in commands:
        blockers = find_blockers(svc, tx, agent, [(turns[tree], "exclusive")])
        if blockers.leases:
            refusal = _others_at_work(command, blockers.leases)
            refusal.facts["idle"] = _list_idle(svc, tx, blockers.leases)
            return refusal
    if not agent or not turns:
        return None
    try:
        answer = leases.acquire_located(svc, tx, Actor(), rq.Acquire(
            agent=agent, resources=[turn.resource.name for turn in turns.values()], ttl_s=TURN_S,
            retry=False, description=commands[0][0][:200]), list(turns.values()),
            leases.How(purpose=purposes.TURN))
    except Refusal as refusal:
        return refusal
    return answer if isinstance(answer, Refusal) else None


def end(tx: Tx, agent: str) -> None:
    """The agent's turns are over."""
    for row in tx.each(LeaseRow, "leases_of_holder", agent):
        if row.purpose == purposes.TURN:
            grant.end(tx, row)


def renew(svc: Service, tx: Tx, *, agent: str) -> None:
    """The agent's git is at it still."""
    names = [row.acquisition_id for row in tx.each(LeaseRow, "leases_of_holder", agent)
             if row.purpose == purposes.TURN]
    for name in names:
        leases.renew(svc, tx, Actor(), rq.Renew(agent=agent, acquisition_id=name))


def _list_idle(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> list[str]:
    """The holders of these leases for whom git does not wait: nothing was heard of them for a
    while, and their lease outlasts the wait."""
    patience_ms = ms(svc.settings.hooks.git_wait_s)
    idle = set()
    for row in rows:
        agent = tx.agent(row.locked_by)
        if agent is not None and not is_turn(row.scope) and (
                from_iso(row.expires_at) > tx.now_ms + patience_ms) and (
                from_iso(agent.seen_at) < tx.now_ms - IDLE_MS):
            idle.add(row.locked_by)
    return sorted(idle)


def _others_at_work(command: str, others: list[LeaseRow]) -> Refusal:
    turns = [row for row in others if is_turn(row.scope)]
    if turns:
        text = f"{turns[0].locked_by} is at `{turns[0].task_description}`, which changes it, too"
    else:
        text = "others are at work in it: " + listed([
            f"{row.file_path} ({row.locked_by}"
            + (f", {quoted(row.task_description)}" if row.task_description else "")
            + f", until {short(from_iso(row.expires_at))})" for row in others])
    name, also, *_ = [*(word for word in command.split()[1:] if not word.startswith("-")), "", ""]
    listed_stash = name == "stash" and also in ("drop", "clear")
    what = "takes from git's list of stashes, which all share" if listed_stash else (
        "changes the whole working tree")
    instead = _STASHES if listed_stash else INSTEAD.get(name, _FILES)
    return Refusal(
        Code.LOCKED, f"`{command[:200]}` {what}, and {text}. It was not run, and nothing was "
        f"changed. {instead}",
        next="`coord locks` tells when they are done." if instead is not _FILES else
        "Repeat it with your own files named.",
        holders=sorted({row.locked_by for row in others}),
    )

