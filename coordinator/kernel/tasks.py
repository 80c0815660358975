"""One task: finding it, moving it from state to state, showing it. All moves go through `move`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from coordinator.kernel.core import Service
from coordinator.kernel.leasing.overlapping import HOLDERS_TOLD_MAX, NearReviewRow, holders_of, near
from coordinator.kernel.retry_queue import read_limits
from coordinator.kernel.unknown_ids import find_by_id
from coordinator.rules import backlog as rule
from coordinator.rules import leases as lease_rule
from coordinator.rules import pools as pool_rule
from coordinator.rules.globs import overlaps
from coordinator.rules.retrying import rest_after_failure
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import InStateRow, LeaseRow, NeedRow, NumberedRow, TaskRow
from coordinator.words import requests as rq
from coordinator.words.file_names import shown
from coordinator.words.purposes import CLAIM
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource, task_resource
from coordinator.words.texts import alternatives

#: Tasks that one transaction tells of the end of what they come after.
RIPPLE_MAX = 200
#: How a task gets to the state that is due.
_VERBS = {"ready": "unblock", "blocked": "block", "pending": "wait"}


def find(view: View, text: str) -> TaskRow:
    """The task called `T-12`, `t-12`, `12` or `T12`.

    Raises:
        Refusal: UNKNOWN_TASK.
    """
    return find_by_id(lambda name: view.first(TaskRow, "task_get", name), text, "T", "task",
                      Code.UNKNOWN_TASK)


def named(view: View, text: str | None) -> str | None:
    """The id of a task that something is to be about; None: of none.

    Raises:
        Refusal: UNKNOWN_TASK.
    """
    return None if text is None else find(view, text).task_id


def find_only_claim(view: View, *agents: str | None) -> str | None:
    """The one task that an agent works on, or else the next of these: what is leased meanwhile
    belongs to it, and ends with it. None: there is not one. A claim whose time is over is none, or
    what is leased now would end with it at once."""
    for agent in filter(None, agents):
        claims = [task for task in view.each(TaskRow, "tasks_of_holder", agent)
                  if task.claim_until is None or task.claim_until > view.now]
        if claims:
            return claims[0].task_id if len(claims) == 1 else None
    return None


def move(tx: Tx, task: TaskRow, verb: str, *, agent: str | None = None, why: str = "",
         **changes: Any) -> str:
    """Take a task through one transition; the state it is in afterwards.

    What is not named in `changes` stays, but a claim ends with every move other than `claim`.
    Where what it comes after is not done (any more), it is not ready but waits for that.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    after = _change(tx, task, verb, agent=agent, why=why, **changes)
    if after == "ready":
        after = _follow(tx, find(tx, task.task_id), "what it comes after is not done")
    if _tells_others(task.state, after):
        _ripple(tx, [(task.task_id, 0)])
    return after


def _change(tx: Tx, task: TaskRow, verb: str, *, agent: str | None = None, why: str = "",
            **changes: Any) -> str:
    """Record one transition; the state afterwards. Nobody else is told.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    state = rule.after(task.state, verb)
    if state is None:
        raise Refusal(
            Code.BAD_TRANSITION,
            f"{task.task_id} is {rule.told_state(task.state)}; `{verb}` is for tasks that are "
            f"{alternatives(map(rule.told_state, rule.states_before(verb)))}. It stays as it is.",
            state=task.state,
            next=f"`coord review list --task {task.task_id}`: a verdict decides about it."
            if task.state == "review" else f"`coord task show {task.task_id}` tells more of it.",
        )
    fields: dict[str, Any] = {"partial": task.partial, "result": task.result,
                              "attempts": task.attempts, **changes}
    tx.record(
        ev.TaskChanged(task=task.task_id, verb=verb, state=state, agent=agent, why=why, **fields)
    )
    if state == "ready":
        tx.effects.offers = True
    return state


def _tells_others(before: str, after: str) -> bool:
    """Whether tasks that come after one may now start, wait again, or never."""
    return not {before, after}.isdisjoint(rule.CLOSED | {"blocked"})


def _ripple(tx: Tx, todo: list[tuple[str, int]]) -> None:
    """Tell the tasks that come after these (each from a number on), and those after them in turn.

    A loop, not a recursion, and at most `RIPPLE_MAX` of them in one transaction: what is left is
    recorded, and follows in others.
    """
    waiting = deque(todo)
    while waiting:
        name, after = waiting.popleft()
        while True:
            rows = tx.each(NumberedRow, "task_dependents", name, after, RIPPLE_MAX)
            for row in rows:
                if tx.effects.rippled >= RIPPLE_MAX:
                    for left, number in ((name, after), *waiting):
                        tx.record(ev.RippleLeft(task=left, after=number))
                    return
                dependent, after = row.task_id, row.n
                tx.effects.rippled += 1
                if _moved_along(tx, dependent, name):
                    waiting.append((dependent, 0))
            if len(rows) < RIPPLE_MAX:
                break


def settle(tx: Tx, name: str, why: str) -> None:
    """Take a task to where what it comes after leaves it now; those that come after it follow."""
    before = find(tx, name)
    if _tells_others(before.state, _follow(tx, before, why)):
        _ripple(tx, [(name, 0)])


def _moved_along(tx: Tx, name: str, because: str) -> bool:
    """Let a task follow what it comes after; whether others come after it that have to follow."""
    task = find(tx, name)
    state = _follow(tx, task, f"after {because}")
    tells = state != task.state and _tells_others(task.state, state)
    return tells and tx.has("task_has_dependents", name)


def _follow(tx: Tx, task: TaskRow, why: str) -> str:
    """Take a task to where what it comes after leaves it, unless it is past that; its state."""
    due = due_state(tx, task.task_id)
    verb = _VERBS[due]
    if due == task.state or rule.after(task.state, verb) is None:
        return task.state
    return _change(tx, task, verb, why=why)


def due_state(view: View, name: str) -> str:
    """The state of a task that nobody has claimed, as what it comes after is now."""
    return str(view.value("task_due_state", name))


def go_on_rippling(tx: Tx) -> bool:
    """Tell the next of those that were left; whether there may be more."""
    left = [(row.task_id, row.n) for row in tx.each(NumberedRow, "ripples_some", RIPPLE_MAX)]
    for name, _ in left:
        tx.record(ev.RippleLeft(task=name, after=None))
    _ripple(tx, left)
    return bool(left)


class Failure(NamedTuple):
    """Why an attempt at a task did not succeed.

    Attributes:
        blocked: it does not count, for something kept it from beginning.
        exhausted: whatever attempts it has left, a person is next.
    """

    why: str
    blocked: bool = False
    exhausted: bool = False


def attempt_over(svc: Service, tx: Tx, task: TaskRow, failure: Failure, *, agent: str | None,
                 review: str | None = None) -> str:
    """A claim ended without success: review, backoff, dead letter, or straight back."""
    why = failure.why
    if review is not None:
        return move(tx, task, "flag", agent=agent, why=why, partial=review)
    if failure.blocked:
        return move(tx, task, "defer", agent=agent, why=why, attempts=max(0, task.attempts - 1))
    rest = None if failure.exhausted else rest_after_failure(
        task.task_id, task.attempts, task.attempts_max, read_limits(svc))
    if rest is None and task.partial is not None:
        # Reassigned work that nobody finished: a human looks at it again.
        tx.record(ev.ReviewUndone(review=task.partial, agent=agent, task=task.task_id, by="coord"))
        return move(tx, task, "flag", agent=agent, why=why, partial=task.partial, result=why)
    if rest is None:
        return move(tx, task, "exhaust", agent=agent, why=why, result=why)
    return move(tx, task, "fail", agent=agent, why=why, result=why, not_before=tx.later(rest))


def broke(tx: Tx, task: TaskRow, *, why: str, result: str) -> str:
    """What it finished was found to break something: it is ready again or, with no attempt left, a
    person's; its state. What comes after it waits again, unless it has begun."""
    verb = "exhaust" if task.attempts >= task.attempts_max else "redo"
    return move(tx, task, verb, why=why, result=result)


def offer_rested(tx: Tx) -> int:
    """Failed tasks whose backoff is over are ready again; how many."""
    rested = tx.values("tasks_backed_off", tx.now, 200)
    for name in rested:
        move(tx, find(tx, name), "offer", why="its backoff is over")
    return len(rested)


def reply(view: View, task: TaskRow, *, full: bool = False, quarantine: bool = False) -> rq.Task:
    """A task as it is told; `full` adds who holds what it needs, and which reviews bar it
    (`quarantine`: each open one of its files does)."""
    needed = view.each(NeedRow, "task_resources_of", task.task_id)
    result = rq.Task(
        task=task.task_id, title=task.title, prompt=task.prompt, state=task.state,
        priority=task.priority,
        resources=_name_resources(needed), needs=_name_pools(needed),
        after=view.values("task_after_of", task.task_id),
        attempts=task.attempts, attempts_max=task.attempts_max, not_before=task.not_before,
        claimed_by=task.claimed_by, claimed_at=task.claimed_at, claim_until=task.claim_until,
        partial=task.partial, result=task.result, created_at=task.created_at,
        updated_at=task.updated_at, may=rule.may(task.state),
    )
    held = holder_of(view, task) if task.state not in rule.CLOSED else None
    if held is not None:
        result.locked_by, result.locked_at = held
        row = view.agent(held[0])
        description = row.description if row is not None and not row.is_label else ""
        result.locked_by_name = description or held[0]
    if full:
        wanted = _list_wanted(view, task, needed)
        result.held_by = holders_of(view, task.claimed_by or "", wanted)
        barred = [] if result.held_by or task.state != "ready" else _barred_by(
            view, task, [resource for resource, _ in wanted], quarantine)
        result.explanation = _explanation(view, task, [*result.held_by, *barred])
    return result


def _name_resources(needed: Sequence[NeedRow]) -> list[str]:
    return [f"shared:{need.name}" if need.mode == "shared" else need.name
            for need in needed if not _is_of_pool(need)]


def _name_pools(needed: Sequence[NeedRow]) -> list[str]:
    return pool_rule.list_needs((need.name, need.mode) for need in needed)


def _is_of_pool(need: NeedRow) -> bool:
    return pool_rule.read_need(need.name, need.mode) is not None


def _list_wanted(view: View, task: TaskRow,
                 needed: Sequence[NeedRow]) -> list[tuple[Resource, str]]:
    """What it needs, with the mode. Of a pool any value will do, so the pool is left out until the
    task was found to wait for it."""
    exhausted = view.value("ready_parked_on", task.task_id)
    return [(lease_rule.as_resource(need.name, need.kind, need.scope), need.mode)
            for need in needed if not _is_of_pool(need) or need.scope == exhausted]


def _barred_by(view: View, task: TaskRow, wanted: Sequence[Resource], quarantine: bool
               ) -> list[str]:
    """Sentences on reviews of what it needs: nobody begins on that before the verdict."""
    matches = {}
    for asked in wanted:
        for row in near(view, NearReviewRow, "reviews_near", asked):
            if ((row.state == "reassigned" and row.task_id == task.task_id)
                    or not (row.unkept or quarantine)
                    or not overlaps(asked, lease_rule.as_resource(row.path, "file", row.scope))):
                continue
            review = row.review_id
            matches[review] = (f"the review {review} of {shown(row.path)} waits for a verdict "
                               f"(`coord review show {review}`)")
    return list(matches.values())[:HOLDERS_TOLD_MAX]


def _explanation(view: View, task: TaskRow, held_by: list[str]) -> str:
    if task.state in ("pending", "blocked"):
        missing = [
            f"{row.name} ({row.state})"
            for row in view.each(InStateRow, "task_dependencies", task.task_id)
            if row.state != "done"
        ]
        return "waits for " + ", ".join(missing)
    if task.state == "failed":
        return f"rests until {task.not_before}, then is offered again"
    if task.state == "review":
        return f"waits for the verdict on {task.partial}"
    if task.state == "ready" and held_by:
        return "ready, but " + "; ".join(held_by)
    return ""


#: The fencing token of a lease that is only a claim.
NO_TOKEN = 0


def task_of(scope: str) -> str:
    """The id in the scope of a task."""
    return scope.split("/")[2]


def as_lease(view: View, scope: str) -> LeaseRow | None:
    """The claim of the task with this scope, as a lease; None if nobody has claimed it. When others
    ask for the task itself (`task:T-3`), its agent holds it. That follows from the claim and is
    stored nowhere. What the task needs stays leased until it ends (`grant.take_over`)."""
    task = view.first(TaskRow, "task_get", task_of(scope))
    if task is None or task.claimed_by is None:
        return None
    until = task.claim_until or view.now
    return LeaseRow(
        fencing_token=NO_TOKEN, file_path=task_resource(task.task_id).name,
        locked_by=task.claimed_by, locked_at=task.claimed_at or view.now,
        task_description=task.title, expires_at=until, kind="key", mode="exclusive", scope=scope,
        slot="", inode=None, worktree=None, content_hash=None, acquisition_id="",
        task_id=task.task_id, ttl_ms=task.ttl_ms or 1, max_until=task.claim_max or until,
        purpose=CLAIM,
    )


def holder_of(view: View, task: TaskRow) -> tuple[str, str] | None:
    """The holder of a task and since when, by its claim or by a lease on it."""
    if task.claimed_by is not None and task.claimed_at is not None:
        return task.claimed_by, task.claimed_at
    for row in view.each(LeaseRow, "leases_at_scope", task_resource(task.task_id).scope):
        if row.expires_at > view.now:
            return row.locked_by, row.locked_at
    return None
