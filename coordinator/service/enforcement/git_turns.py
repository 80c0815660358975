"""Git's turn: a git command that changes the whole working tree runs while nobody else is at work.

It begins only when nobody else holds anything in that tree, and until it ends nobody else is
granted anything there (leasing/conflicts.py looks at it), so it never meets a file that it may not
write in the middle of its work. A linked worktree is a tree of its own.
"""

from __future__ import annotations

import hashlib

from coordinator.looking.facts import AnyNeed, Place
from coordinator.service.core import Actor, Service, listed
from coordinator.service.leasing import grant, leases
from coordinator.service.leasing.conflicts import weigh
from coordinator.service.leasing.git_turn import GIT_INDEX, is_turn
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, resource
from coordinator.words.texts import quoted

#: For how long one command has it (seconds); renewed while its process is known to live.
TURN_S = 120.0
_WORKTREE = "A branch can be worked on in a tree of its own: `git worktree add ../NAME BRANCH`."
_FILES = ("Name your own files instead: `git add -- FILE…`, `git commit -m … -- FILE…`, `git "
          "checkout -- FILE…`, `git stash push -- FILE…` (and back with `git checkout stash@{0} "
          "-- FILE…`).")
_STASHES = "What is in it harms nobody meanwhile."
#: What can be done instead, by the command.
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
    """What to look at before it is known in which tree a directory lies."""
    return [Place(cwd, None, True)]


def worktree_of(tx: Tx, cwd: str) -> str | None:
    """The linked worktree that a directory (absolute) lies in; None: it is the main one.

    Raises:
        Refusal: it lies elsewhere.
        Unready: that was not looked at.
    """
    return tx.looked.place(cwd, literal=True).worktree


def take(svc: Service, tx: Tx, agent: str, command: str, worktree: str | None) -> Refusal | None:
    """Take the turn for a git command in a working tree; why it may not run now, or nothing.

    Args:
        agent: whose it is; empty for one who is not registered here: nothing is taken then.
    """
    if svc.settings.hooks.git_wide == "allow":
        return None
    turn = Located(resource(_name(worktree), "key"), None, None, worktree)
    obstacles = weigh(svc, tx, agent, [(turn, "exclusive")])
    if obstacles.leases:
        return _others_at_work(command, obstacles.leases)
    if not agent:
        return None
    try:
        answer = leases.acquire_located(svc, tx, Actor(), rq.Acquire(
            agent=agent, resources=[turn.resource.name], ttl_s=TURN_S, retry=False,
            description=command[:200]), [turn])
    except Refusal as refusal:
        return refusal
    return answer if isinstance(answer, Refusal) else None


def end(tx: Tx, agent: str) -> None:
    """The agent's turns are over."""
    for raw in tx.rows("leases_of_holder", agent):
        row = LeaseRow(*raw)
        if is_turn(row.scope):
            grant.end(tx, row)


def renew(svc: Service, tx: Tx, *, agent: str) -> None:
    """The agent's git is at it still."""
    names = [row.acquisition_id for row in (
        LeaseRow(*raw) for raw in tx.rows("leases_of_holder", agent)) if is_turn(row.scope)]
    for name in names:
        leases.renew(svc, tx, Actor(), rq.Renew(agent=agent, acquisition_id=name))


def _others_at_work(command: str, others: list[LeaseRow]) -> Refusal:
    turns = [row for row in others if is_turn(row.scope)]
    if turns:
        said = f"{turns[0].locked_by} is at `{turns[0].task_description}`, which changes it, too"
    else:
        said = "others are at work in it: " + listed([
            f"{row.file_path} ({row.locked_by}"
            + (f", {quoted(row.task_description)}" if row.task_description else "")
            + f", until {short(from_iso(row.expires_at))})" for row in others])
    name, also, *_ = [*(word for word in command.split()[1:] if not word.startswith("-")), "", ""]
    listed_stash = name == "stash" and also in ("drop", "clear")
    what = "takes from git's list of stashes, which all share" if listed_stash else (
        "changes the whole working tree")
    instead = _STASHES if listed_stash else INSTEAD.get(name, _FILES)
    return Refusal(
        Code.LOCKED, f"`{command[:200]}` {what}, and {said}. It was not run, and nothing was "
        f"changed. {instead}",
        next="`coord locks` tells when they are done." if instead is not _FILES else
        "Repeat it with your own files named.",
        holders=sorted({row.locked_by for row in others}),
    )


def _name(worktree: str | None) -> str:
    if worktree is None:
        return GIT_INDEX
    digest = hashlib.blake2b(worktree.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return f"{GIT_INDEX}:{digest}"
