"""Claims: taking a task with its leases, finishing it, giving it back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from coordinator.kernel import blackboard, tasks, unlanded_work, unserved
from coordinator.kernel.core import Actor, Service, check_at_rest, check_wait, listed, ms
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing import grant, lapse, redirect, task_locks, waiting_line
from coordinator.kernel.leasing.blockers import Asking, Blockers, find_blockers
from coordinator.kernel.leasing.located import Wanted, locate
from coordinator.kernel.leasing.overlapping import holders_of
from coordinator.looking.facts import AnyNeed, Lapsed, Place, Unready
from coordinator.regions.names import nearest
from coordinator.rules import leases as rule
from coordinator.rules.backlog import told_state
from coordinator.rules.globs import overlaps
from coordinator.rules.recovery import REMEDIES
from coordinator.slices.backlog import dispatch, limit_reached
from coordinator.slices.backlog.events import ClaimWaits
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, PlaceRow, ReviewFileRow, ReviewRow, TaskRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.purposes import CLAIM
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import READ, path_of, region_of, task_resource

#: Why a task is given back that was found to need something, by who keeps that.
WHY = {"others": "it needs {}, which others hold", "nobody": "it needs {}, which is free by now",
       "itself": "it says that it needs {}, which it has itself"}

#: How long (seconds) a finished task waits, at most, until the watcher has recorded all writes.
WATCHER_WAIT_S = 0.5


def claim(svc: Service, tx: Tx, actor: Actor, req: rq.TaskClaim) -> rq.Claimed | Refusal:
    """See `requests.TaskClaim`."""
    ttl_ms = grant.checked_ttl(svc, req.ttl_s)
    check_wait(svc, req.wait_s)
    named = tasks.find(tx, req.task) if req.task is not None else None
    agents.may_act(tx, actor, req.agent)
    agents.check_guarded(svc, tx, req.agent)
    worktree = _worktree(tx, req.cwd)
    if named is None:
        chosen = dispatch.choose(svc, tx, req.agent, worktree=worktree)
        agents.acting(tx, actor, req.agent)
        if chosen is None:
            return _nothing(tx, req)
        return _take(svc, tx, req.agent, *chosen, ttl_ms)
    tasks.offer_rested(tx)
    named = tasks.find(tx, named.task_id)
    _close_if_lapsed(tx, named)
    if named.state == "claimed" and named.claimed_by == req.agent and req.reentrant:
        return _held_already(svc, tx, named)
    if named.state != "ready":
        return _not_to_be_had(tx, req, named)
    wanted = dispatch.wanted_by(svc, tx, req.agent, named.task_id, worktree)
    blockers = find_blockers(svc, tx, req.agent, task_locks.with_itself(tx, named.task_id, wanted),
                             Asking(task=named.task_id))
    twice = dispatch.held_for_another(tx, named.task_id, blockers)
    if twice is not None:
        return Refusal(
            Code.TASK_NOT_READY, f"{named.task_id} needs {twice.file_path}, which you hold for "
            f"{twice.task_id}: it would end with that. Nothing was claimed.", state=named.state,
            next=f"Finish {twice.task_id} first: `coord task done {twice.task_id} --agent "
            f"{req.agent}`.")
    other = None
    if blockers.blocked:
        other = redirect.offer(svc, tx, req.agent)
    else:
        grant.check_looked(svc, tx, wanted, blockers)
    agents.acting(tx, actor, req.agent)
    if blockers.blocked:
        asked = redirect.Unserved(req.agent, [located for located, _ in wanted], task=named.task_id)
        return redirect.locked(svc, tx, asked, blockers, other)
    if blockers.closed:
        return grant.quarantined(blockers)
    return _take(svc, tx, req.agent, named, wanted, blockers, ttl_ms)


def _not_to_be_had(tx: Tx, req: rq.TaskClaim, named: TaskRow) -> Refusal:
    """TASK_TAKEN or TASK_NOT_READY."""
    if named.state == "claimed":
        return Refusal(
            Code.TASK_TAKEN, f"{named.task_id} is claimed by {named.claimed_by}; it stays so.",
            holder=named.claimed_by, next=f"`coord task claim --agent {req.agent}` takes another."
            + (" Ask with `reentrant` if it is you who has it."
               if named.claimed_by == req.agent else ""),
        )
    why = tasks.reply(tx, named, full=True).explanation
    return Refusal(
        Code.TASK_NOT_READY,
        f"{named.task_id} is {named.state}" + (f": it {why}." if why else "."),
        state=named.state,
        next=("" if named.state in ("done", "cancelled") else
              f"`coord task show {named.task_id}` says for what; ")
        + f"`coord task claim --agent {req.agent}` takes another.",
    )


def _close_if_lapsed(tx: Tx, task: TaskRow) -> None:
    """Raises:
    Unready: the task's claim has ended and was not closed yet.
    """
    if task.claimed_by is not None and task.claim_until is not None and task.claim_until <= tx.now:
        raise Unready(lapsed=[Lapsed(task.claimed_by, task.task_id)])


def claim_needs(svc: Service, view: View, req: rq.TaskClaim) -> list[AnyNeed]:
    """What to look at before a claim is decided."""
    here = [Place(req.cwd, None, True)] if req.cwd is not None else []
    return [*here, *dispatch.needs(view, req.task)]


def _worktree(tx: Tx, cwd: str | None) -> str | None:
    """The linked worktree of this directory; None if it is the main one, or none at all.

    Raises:
        Unready: it was not looked at.
    """
    if cwd is None:
        return None
    try:
        return tx.looked.place(cwd, literal=True).worktree
    except Refusal:
        return None


def _nothing(tx: Tx, req: rq.TaskClaim) -> Refusal:
    agent = req.agent
    counts = tx.counts("task_counts")
    left = {s: n for s, n in counts.items() if s not in ("done", "cancelled", "dead")}
    rest = limit_reached.rest_of(tx, agent)
    if not left:
        message = "The backlog has no open task."
    elif rest is not None:
        message = (f"{agent} rests until {short(from_iso(rest))}, for its provider's limit is "
                   "reached; it is given nothing before.")
    else:
        parts = ", ".join(f"{n} {state}" for state, n in sorted(left.items()))
        message = f"No task can be started by you now ({parts})."
        if counts.get("ready") and req.wait_s >= 1:  # (the report counts nothing shorter)
            tx.record(ClaimWaits(agent=agent, until=tx.later(round(req.wait_s * 1000))))
    resting = {"rests_until": rest} if rest is not None and left else {}
    return Refusal(Code.NOTHING_TO_DO, message, counts=counts, open=sum(left.values()), **resting)


def _take(
    svc: Service, tx: Tx, agent: str, task: TaskRow, wanted: list[Wanted], blockers: Blockers,
    ttl_ms: int,
) -> rq.Claimed:
    until = tx.later(ttl_ms)
    near = _nearest(tx, wanted)
    acquired = grant.grant(
        svc, tx, agent, wanted, blockers, grant.Terms(ttl_ms, task.task_id, task.title, CLAIM),
    ) if wanted else None
    unserved.take_up(tx, "task", task.task_id)
    tasks.move(
        tx, task, "claim", agent=agent, attempts=task.attempts + 1, claimed_by=agent,
        claimed_at=tx.now, claim_until=until, ttl_ms=ttl_ms,
        claim_max=tx.later(max(ttl_ms, ms(svc.settings.leases.max_hold_s))),
    )
    for part in svc.slices:
        part.claimed(svc, tx, task.task_id)
    if task.partial is not None:
        _let_go_on(tx, task.partial)
    return _claimed(svc, tx, tasks.find(tx, task.task_id), acquired, near)


def _let_go_on(tx: Tx, review: str) -> None:
    """Reassigned work is taken up, or given up: who waited for that looks again."""
    for file in tx.each(ReviewFileRow, "review_files_of", review):
        tx.free(file.path, "file", file.scope)


def _held_already(svc: Service, tx: Tx, task: TaskRow) -> rq.Claimed:
    """The answer to a repeated claim: the same claim."""
    rows = tx.each(LeaseRow, "leases_of_task", task.task_id)
    held = [
        grant.lease_reply(row, token=svc.seal(row.fencing_token), again=True)
        for row in rows if row.locked_by == task.claimed_by and row.expires_at > tx.now
    ]
    first = held[0].acquisition_id if held else ""
    return _claimed(svc, tx, task, rq.Acquired(acquisition_id=first, leases=held, warnings=[]))


def _claimed(svc: Service, tx: Tx, task: TaskRow, acquired: rq.Acquired | None,
             near: Sequence[str] = ()) -> rq.Claimed:
    reply = tasks.reply(tx, task)
    partial = None if task.partial is None else next(
        (shown for part in svc.slices
         if (shown := part.show_partial(svc, tx, task.partial)) is not None), None)
    names = [r.removeprefix(READ) for r in reply.resources]
    held = acquired.leases if acquired else []
    environment, warnings = _describe_surroundings(svc, tx, held)
    return rq.Claimed(
        task=reply,
        acquisition_id=acquired.acquisition_id if acquired else None,
        leases=held,
        excerpts=redirect.written(redirect.excerpts(svc, names, task.title)) if names else [],
        partial=partial,
        warnings=[*acquired.warnings, *_not_there(acquired.leases, near),
                  *_as_wholes(names, acquired.leases),
                  *warnings] if acquired else [],
        tried=blackboard.left(tx, task.task_id, {
            lease.resource: lease.content_hash for lease in held}),
        environment=environment,
    )


def _describe_surroundings(svc: Service, tx: Tx,
                           held: Sequence[rq.Lease]) -> tuple[dict[str, str], list[str]]:
    """The environment variables that go with these leases, and what their holder has to know."""
    names = [lease.resource for lease in held]
    surroundings = [part.describe_surroundings(svc, tx, names) for part in svc.slices]
    return ({name: text for each in surroundings for name, text in each.variables.items()},
            [warning for each in surroundings for warning in each.warnings])


def _nearest(tx: Tx, wanted: Sequence[Wanted]) -> list[str]:
    """The regions that are most like those of these that are not there.

    Raises:
        Unready: their files were not looked at.
    """
    result: dict[str, None] = {}
    for located, _ in wanted:
        if located.resource.kind != "region" or located.inode is None or located.path is None:
            continue
        region = region_of(located.resource.name)
        if tx.looked.part(located.path, region).hash is None:
            path = path_of(located.resource.name, "region")
            result |= {f"{path}::{name}": None for name
                    in nearest(region, tx.looked.names(located.path))}
    return list(result)


def _not_there(held: Sequence[rq.Lease], near: Sequence[str]) -> list[str]:
    """A task may be about a region that is yet to be written; or its name may be mistyped."""
    new = [lease.resource for lease in held if lease.kind == "region"
           and lease.content_hash is None]
    like = f" The nearest: {listed(near)}." if near else ""
    return [f"{listed(new)} {'is' if len(new) == 1 else 'are'} not there yet, and leased as new; "
            f"`coord regions FILE` lists what is.{like}"] if new else []


def _as_wholes(names: Sequence[str], held: Sequence[rq.Lease]) -> list[str]:
    """Notes for kinds of files of which a task names parts although they have none."""
    leased = {lease.resource for lease in held}
    whole = dict.fromkeys(path_of(name, "region") for name in names
                          if "::" in name and name not in leased)
    matches = [path for path in whole if path in leased]
    return [f"{listed(matches)} {'has' if len(matches) == 1 else 'have'} no regions, and "
            f"{'is' if len(matches) == 1 else 'are'} leased as a whole."] if matches else []


def _own_claim(svc: Service, tx: Tx, actor: Actor, agent: str, text: str,
               force: bool | None) -> TaskRow:
    """The task that this agent has claimed. With `force`, any other task; None is then no choice.
    """
    task = tasks.find(tx, text)
    check_at_rest(svc, [task.task_id])
    if force and not actor.operator:
        raise Refusal(Code.UNAUTHORIZED, "Only a person may override with force.",
                      next="Ask the person who runs coord.")
    if task.state != "claimed":
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{task.task_id} is {told_state(task.state)}, not claimed; it stays as it is.",
            state=task.state,
            next=f"`coord task show {task.task_id}` tells more of it.",
        )
    if task.claimed_by != agent and not force:
        raise Refusal(
            Code.NOT_HOLDER, f"{task.task_id} is claimed by {task.claimed_by}, not by {agent}.",
            next=None if force is None else
            f"Ask {task.claimed_by}. (A person may override, typed with `--force`.)",
            holder=task.claimed_by,
        )
    return task


def done(svc: Service, tx: Tx, actor: Actor, req: rq.TaskDone) -> rq.Task:
    """See `requests.TaskDone`."""
    task = _own_claim(svc, tx, actor, req.agent, req.task, req.force)
    if task.claim_until is not None and tx.now >= task.claim_until and not req.force:
        raise Refusal(
            Code.STALE_TOKEN,
            f"The claim on {task.task_id} ended at {task.claim_until}; it was not marked done, "
            "for another may have taken its files since.",
            next=f"`coord task claim {task.task_id}` again, check the files, then finish.",
        )
    if req.landed is None and not actor.operator:
        for part in svc.slices:
            part.check_done(svc, tx, task)
    agents.may_act(tx, actor, req.agent)
    _hear_of_last_writes(svc, tx, task)
    notes = [note for part in svc.slices
             if (note := part.look_at_finished(svc, tx, task, req.landed)) is not None]
    agents.acting(tx, actor, req.agent)
    rows = tx.each(LeaseRow, "leases_of_task", task.task_id)
    if tx.present().task_locks:
        scope = task_resource(task.task_id).scope
        rows += [lease for lease in tx.each(LeaseRow, "leases_at_scope", scope)
                 if lease.task_id != task.task_id]
    for row in rows:
        if row.locked_by == task.claimed_by:
            grant.end(tx, row)
    lapse.leave_line(tx, str(task.claimed_by), task.task_id, "its task is over")
    tasks.move(tx, task, "done", agent=req.agent, result=req.result[:10_000], partial=None)
    for note in notes:
        note()
    return tasks.reply(tx, tasks.find(tx, task.task_id))


def _hear_of_last_writes(svc: Service, tx: Tx, task: TaskRow) -> None:
    """A launched program has just ended: what it wrote in its last instant is recorded while the
    program counts as active.

    Raises:
        Unready: the watcher has not reported it yet.
    """
    row = tx.agent(str(task.claimed_by))
    if row is not None and row.origin == "launch" and svc.wait_for_watcher is not None:
        tx.looked.after(f"what the last program of {task.task_id} has written",
                        partial(svc.wait_for_watcher, WATCHER_WAIT_S, True))


def fail(svc: Service, tx: Tx, actor: Actor, req: rq.TaskFail) -> rq.Task:
    """See `requests.TaskFail`."""
    task = _own_claim(svc, tx, actor, req.agent, req.task, req.force)
    learned: list[tuple[str, str, str, str]] = []
    if req.blocked:
        for located in locate(svc, tx, req.blocked, req.cwd):
            resource = located.resource
            learned.append((resource.name, resource.kind, resource.scope, "exclusive"))
    place = req.unlanded.worktree if req.unlanded is not None else None
    lapse.look_first(svc, tx, str(task.claimed_by), task.task_id, place)
    left = unlanded_work.look_at_unlanded(svc, tx, req.unlanded) if req.unlanded is not None else []
    agents.acting(tx, actor, req.agent)
    if req.outcome in REMEDIES:
        blackboard.note(tx, task, req.agent, req.outcome, "person", [], req.reason)
    if learned:
        tx.record(ev.TaskResourcesLearned(task=task.task_id, agent=req.agent, resources=learned))
        _waits_no_more(tx, str(task.claimed_by), {name for name, *_ in learned})
        keeps = _who_keeps(tx, str(task.claimed_by), learned)
        why = WHY[keeps].format(", ".join(name for name, *_ in learned))
        why += f": {req.reason}" if req.reason else ""
    else:
        keeps, why = "itself", req.reason or "the attempt failed"
    lapse.fail_claim(
        svc, tx, task, tasks.Failure(why[:2000], blocked=keeps != "itself" or req.model_error),
        log_tail=req.log_tail, worktree=place,
        also=None if req.unlanded is None else unlanded_work.keep_unlanded(
            svc, tx, req.unlanded, left),
    )
    return tasks.reply(tx, tasks.find(tx, task.task_id))


def _who_keeps(tx: Tx, agent: str, needed: Sequence[tuple[str, str, str, str]]) -> str:
    """Who keeps what an agent says that it needs: `others`, or `nobody` now. If the agent itself
    has all of it (`itself`), its attempt has failed, because it would say the same again at once.
    """
    own = [rule.as_resource(row.file_path, row.kind, row.scope)
           for row in tx.each(LeaseRow, "leases_of_holder", agent)
           if row.mode == "exclusive" and row.expires_at > tx.now]
    wanted = [(rule.as_resource(name, kind, scope), mode) for name, kind, scope, mode in needed]
    if holders_of(tx, agent, wanted):
        return "others"
    return "itself" if all(any(overlaps(resource, held) for held in own) for resource,
                           _ in wanted) else "nobody"


def outcome(svc: Service, tx: Tx, actor: Actor, req: rq.TaskOutcome) -> rq.Judged:
    """See `requests.TaskOutcome`."""
    task = _own_claim(svc, tx, actor, req.agent, req.task, force=None)
    if req.outcome not in REMEDIES:
        raise Refusal(
            Code.INVALID, f"{req.outcome[:60]!r} is no outcome; nothing was noted. There are "
            f"{', '.join(REMEDIES)}.", next=f"`coord task outcome {task.task_id} VERIFY_FAILED`",
        )
    lapse.look_first(svc, tx, req.agent, task.task_id)
    agents.acting(tx, actor, req.agent)
    return blackboard.judged(svc, tx, task, req.agent, req.outcome, req.note)


def _waits_no_more(tx: Tx, agent: str, names: set[str]) -> None:
    """From now on the task waits for these, whoever takes it then."""
    for waiter in tx.each(WaiterRow, "waiters_of_agent", agent) if tx.present().waiters else ():
        wanted = tx.each(PlaceRow, "waiter_places_of", waiter.acquisition_id)
        if names.issuperset(place.name for place in wanted):
            waiting_line.step_out(tx, waiter, "its task waits for it now")


def retry(svc: Service, tx: Tx, actor: Actor, req: rq.TaskRetry) -> rq.Task:
    """See `requests.TaskRetry`."""
    task = tasks.find(tx, req.task)
    review = tx.first(ReviewRow, "review_get", task.partial) if task.partial is not None else None
    if task.state == "cancelled" and review is not None and review.state == "open":
        # Begun work still waits for its verdict, and nobody could continue before that.
        tasks.move(tx, task, "reopen", attempts=0, why="put back by a person")
    else:
        tasks.move(tx, task, "retry", attempts=0, why="put back by a person")
    return tasks.reply(tx, tasks.find(tx, task.task_id))


def cancel(svc: Service, tx: Tx, actor: Actor, req: rq.TaskCancel) -> rq.Task:
    """See `requests.TaskCancel`."""
    task = tasks.find(tx, req.task)
    check_at_rest(svc, [task.task_id])
    if task.state == "claimed":
        if not req.force:
            raise Refusal(
                Code.BAD_TRANSITION,
                f"{task.task_id} is claimed by {task.claimed_by}; cancelling it needs --force.",
                next=f"`coord task cancel {task.task_id} --force`", state="claimed",
            )
        lapse.fail_claim(svc, tx, task, tasks.Failure("cancelled by a person"))
        task = tasks.find(tx, task.task_id)
    if task.partial is not None:
        _let_go_on(tx, task.partial)
    tasks.move(tx, task, "cancel", why=req.reason or "cancelled by a person", result=req.reason)
    return tasks.reply(tx, tasks.find(tx, task.task_id))

