"""Landing: an agent's work on its own branch comes onto the shared branch, if its leases permit.

`rules.landing` decides; this module gathers the facts. One transaction judges a landing and also
extends its leases past its end. Then git moves the branch beside everybody else's requests, and the
result is recorded. In between nobody can end these leases (`check_at_rest`). Together with git's
own compare-and-swap this makes the landing one step. No file of a working tree is touched, and the
leases stay until the task is done.

The module also records the landing queue of each launch, so that everybody can see it. A task
leaves the queue when its claim ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from coordinator.kernel import branches, tasks
from coordinator.kernel.core import Actor, Service, check_at_rest
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing.grant import lease_reply
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.kernel.strategies import lands_free
from coordinator.kernel.use_cases import OffLoop, Steps, decide
from coordinator.looking.facts import Below, Content, Part
from coordinator.rules import landing as rule
from coordinator.rules.backlog import told_state
from coordinator.rules.leases import as_resource
from coordinator.slices.landing.events import LandingBegun, LandingQueued, TargetMoved
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LandingRow, LeaseRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words import resource_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import KINDS, Kind, path_scope, resource

#: Paths in one landing: more is a change that a person should look at.
PATHS_MAX = 20_000
#: So long (ms) the leases of a landing live on at least: git is given less time to move a branch.
LANDING_MS = 180_000
#: Unleased paths whose holders are looked up.
OTHERS_MAX = 20


def check(svc: Service, view: View, actor: Actor, req: rq.LandCheck) -> rq.Lawful:
    """See `requests.LandCheck`."""
    if not actor.operator and actor.agent != req.agent:
        raise Refusal(
            Code.UNAUTHORIZED, f"This token belongs to {actor.agent}; it cannot act for "
            f"{req.agent}.",
        )
    return rq.Lawful(fencing_tokens=list(_lawful(svc, view, req)))


def land(svc: Service, req: rq.Land) -> Steps:
    """See `requests.Land`."""
    def begin(tx: Tx) -> list[int]:
        tokens = list(_lawful(svc, tx, req))
        agents.renew_all(tx, req.agent)  # the files have to follow before the task can be done
        _carry_past(tx, tokens)
        return tokens

    check_at_rest(svc, [req.task])  # another's mark would go with this one's
    svc.landing.add(req.task)
    try:
        tokens = yield decide(begin)
        if isinstance(tokens, Refusal):
            return tokens
        why = f"coord: {req.task} landed"
        moved = yield OffLoop(lambda: branches.move(svc, req.target, req.after, req.before, why))
        if isinstance(moved, Refusal):
            return moved
        event = TargetMoved(
            agent=req.agent, task=req.task, target=branches.short(req.target), before=req.before,
            after=req.after, why=f"{req.task} landed", paths=[c.path for c in req.changes[:1000]],
            fencing_tokens=tokens,
        )
        return _landed((yield decide(lambda tx: tx.record(event))), rq.Landed(
            task=req.task, target=req.target, before=req.before, after=req.after,
            fencing_tokens=tokens,
        ))
    finally:
        svc.landing.discard(req.task)


def land_back(svc: Service, req: rq.LandBack) -> Steps:
    """See `requests.LandBack`."""
    why = f"coord: {req.task} taken back"
    moved = yield OffLoop(lambda: branches.move(svc, req.target, req.before, req.after, why))
    if isinstance(moved, Refusal):
        return moved
    event = TargetMoved(
        agent=req.agent, task=req.task, target=branches.short(req.target), before=req.after,
        after=req.before, why=f"{req.task} was taken back: {req.why}", paths=[],
        fencing_tokens=[],
    )
    return _landed((yield decide(lambda tx: tx.record(event))), rq.Landed(
        task=req.task, target=req.target, before=req.after, after=req.before, fencing_tokens=[],
    ))


def _landed(recorded: Refusal | None, landed: rq.Landed) -> rq.Landed | Refusal:
    return recorded if isinstance(recorded, Refusal) else landed


def _carry_past(tx: Tx, tokens: Sequence[int]) -> None:
    """Let the leases that it lands under outlive the moving of the branch, whatever their bound."""
    end = tx.later(LANDING_MS)
    until = [
        (lease.fencing_token, end) for lease in tx.each_of(LeaseRow, "lease_by_token", tokens)
        if lease.expires_at < end
    ]
    if until:
        tx.record(ev.LeaseRenewed(agent="coord", until=until))


def work_in(svc: Service, tx: Tx, actor: Actor, req: rq.TaskWorktree) -> rq.WorkedIn:
    """See `requests.TaskWorktree`."""
    task = claimed_task(tx, req.agent, req.task)
    try:
        located = tx.looked.place(req.worktree, literal=True)
    except Refusal:
        located = None
    place = located.worktree if located is not None else None
    if located is None or place is None or located.path != place:
        raise Refusal(
            Code.INVALID, f"{req.worktree} is not a linked worktree of this repository. Nothing "
            "was changed.", next="`git worktree list` shows them.",
        )
    rows = [
        row for row in tx.each(LeaseRow, "leases_of_task", task.task_id)
        if row.locked_by == req.agent and row.kind != "key" and row.expires_at > tx.now
        and not _has_copy(tx, row, place)
    ]
    tx.looked.require(_needed(svc, row, place) for row in rows)
    agents.acting(tx, actor, req.agent)
    replies = []
    for row in rows:
        content, baselines = _baseline(svc, tx, row, place)
        tx.record(
            ev.LeasePlaced(
                fencing_token=row.fencing_token, agent=req.agent, resource=row.file_path,
                lease_kind=row.kind, task=task.task_id, worktree=place, content_hash=content,
                baselines=baselines,
            )
        )
        replies.append(lease_reply(msgspec.structs.replace(row, content_hash=content)))
    return rq.WorkedIn(task=tasks.reply(tx, task), worktree=place, leases=replies)


def _has_copy(tx: Tx, row: LeaseRow, place: str) -> bool:
    """Whether its holder has a lease of its own on the copy in that working tree already."""
    return row.worktree != place and any(
        other.locked_by == row.locked_by and other.worktree == place
        and other.file_path == row.file_path
        for other in tx.each(LeaseRow, "leases_at_scope", row.scope))


def must_land_first(svc: Service, tx: Tx, task: TaskRow) -> None:
    """An agent may not end its task as done before its work has landed: its leases would go.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    for row in tx.each(LeaseRow, "leases_of_task", task.task_id):
        if row.locked_by == task.claimed_by and svc.is_launched_worktree(row.worktree):
            raise Refusal(
                Code.BAD_TRANSITION,
                f"{task.task_id} is worked on in a worktree of its own, and what was done there "
                "has not landed yet; it stays claimed.",
                next="Just end, with exit code 0: the launch lands the work and finishes the task.",
                state=task.state,
            )


def _lawful(svc: Service, view: View, req: rq.LandCheck | rq.Land) -> tuple[int, ...]:
    """The tokens it may land under.

    Raises:
        Refusal: why it may not.
    """
    if len(req.changes) > PATHS_MAX:
        raise Refusal(
            Code.LIMIT, f"{req.task} changes {len(req.changes):,} paths; the limit is "
            f"{PATHS_MAX:,}. Nothing of it landed.", next="Merge its branch by hand.",
        )
    task = claimed_task(view, req.agent, req.task)
    if task.claim_until is not None and view.now >= task.claim_until:
        raise Refusal(
            Code.STALE_TOKEN,
            f"The claim on {task.task_id} ended at {task.claim_until}, and its leases with it, so "
            "another may have begun to change its files. Nothing of it landed.",
            next="Look at its branch and merge it by hand, or let the task be done afresh.",
        )
    facts = _facts(svc, view, req)
    unleased = [c for c in facts.changes if rule.tokens_for(facts, c) is None]
    others = {c.path: who for c in unleased[:OTHERS_MAX] if (who := _holder(view, c)) is not None}
    free = frozenset(
        c.path for c in unleased if c.path not in others
        and lands_free(svc, as_resource(c.path, "file", c.scope)) and _holder(view, c) is None)
    answer = rule.decide(replace(facts, others=others, free=free))
    if isinstance(answer, Refusal):
        raise answer
    return answer


def _facts(svc: Service, view: View, req: rq.LandCheck | rq.Land) -> rule.Facts:
    fold = svc.fold_case
    rows = view.each(LeaseRow, "leases_of_holder", req.agent)
    return rule.Facts(
        agent=req.agent, task=req.task, target=branches.short(req.target) or "its target",
        now=view.now,
        changes=[rule.Change(
            c.path, path_scope(c.path, fold), c.submodule,
            tuple(resource(f"{c.path}::{region}", "region", fold_case=fold).scope
                  for region in c.regions), c.merged, c.clash) for c in req.changes],
        leases=[
            rule.Right(r.fencing_token, as_resource(r.file_path, r.kind, r.scope), r.mode,
                       r.expires_at)
            for r in rows
        ],
        began_with=[
            (r.fencing_token, resource(r.resource, _kind(r.kind), fold_case=fold))
            for r in req.began_with
        ],
        moved=[path_scope(path, fold) for path in req.moved],
        dirty=req.dirty, misfits=req.misfits,
    )


def _kind(text: str) -> Kind:
    for kind in KINDS:
        if text == kind:
            return kind
    raise Refusal(Code.INVALID, f"{text[:40]!r} is no kind of resource.")


def _holder(view: View, change: rule.Change) -> str | None:
    asked = as_resource(change.path, "file", change.scope)
    for row in leases_near(view, asked):
        if row.expires_at > view.now and rule.covers(
            as_resource(row.file_path, row.kind, row.scope), change
        ):
            return row.locked_by
    return None


def claimed_task(view: View, agent: str, name: str) -> TaskRow:
    """The task, which this agent has claimed.

    Raises:
        Refusal: UNKNOWN_TASK, BAD_TRANSITION, NOT_HOLDER.
    """
    task = tasks.find(view, name)
    if task.state != "claimed":
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{task.task_id} is {told_state(task.state)}, not claimed; nothing was done.",
            state=task.state,
        )
    if task.claimed_by != agent:
        raise Refusal(
            Code.NOT_HOLDER, f"{task.task_id} is claimed by {task.claimed_by}, not by {agent}; "
            "nothing was done.", holder=task.claimed_by,
        )
    return task


def _needed(svc: Service, row: LeaseRow, root: str) -> Content | Part | Below:
    if row.kind == "region":
        path = resource_names.path_of(row.file_path, row.kind)
        return Part(f"{root}/{path}", resource_names.region_of(row.file_path))
    if row.kind == "file":
        return Content(f"{root}/{row.file_path}")
    return Below(root, row.file_path, row.kind, row.scope, svc.settings.review.files_max)


def _baseline(svc: Service, tx: Tx, row: LeaseRow,
              root: str) -> tuple[str | None, list[tuple[str, str]] | None]:
    """The content that the holder starts from there; the bytes are kept (invariant 6)."""
    need = _needed(svc, row, root)
    if not isinstance(need, Below):
        content = (tx.looked.part(need.path, need.name) if isinstance(need, Part)
                 else tx.looked.content(need.path))
        tx.keep_found(content)
        return content.hash, None
    return None, list(tx.looked.below(need).files.items())


#: How many places in the queue are returned at once.
LISTED_MAX = 1000


def queue(svc: Service, tx: Tx, actor: Actor, req: rq.LandQueue) -> rq.Landing:
    """See `requests.LandQueue`."""
    task = claimed_task(tx, req.agent, req.task)
    facts = {"agent": req.agent, "task": task.task_id, "target": branches.short(req.target)}
    tx.record(LandingBegun(**facts) if req.turn else LandingQueued(**facts))
    row = tx.first(LandingRow, "landing_get", task.task_id)
    assert row is not None  # it was recorded a moment ago
    return _reply(row)


def listing(svc: Service, view: View, actor: Actor, req: rq.Landings) -> rq.LandingList:
    """See `requests.Landings`."""
    limit = min(req.limit, LISTED_MAX)
    rows = view.each(LandingRow, "landings_list", limit + 1, req.skip)
    return rq.LandingList(items=[_reply(row) for row in rows[:limit]],
                          next=req.skip + limit if len(rows) > limit else None)


def _reply(row: LandingRow) -> rq.Landing:
    return rq.Landing(
        task=row.task_id, title=row.title, agent=row.agent, target=row.target,
        state="waiting" if row.began_at is None else "landing", queued_at=row.queued_at,
        began_at=row.began_at,
    )
