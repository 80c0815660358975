"""Signals: hints that agents and coord leave on tasks and resources, and their effect on dispatch.

Hints fade, are bounded, and never block: this module refuses nothing but hints. A task is the
resource `task:T-3`, so every hint has one key.
"""

from __future__ import annotations

import math
import re

from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service, ms
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing.located import locate
from coordinator.looking.facts import AnyNeed, Place
from coordinator.rules import signals as rule
from coordinator.slices.signals.events import SignalLeft, SignalsFaded
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import Row, SignalRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource, is_task, task_resource
from coordinator.words.texts import figures

#: Hints of all kinds that are kept, and on one resource.
SIGNALS_MAX, ON_ONE_MAX = 5_000, 20
#: Blocking resources of one refusal that get a hint.
BLOCKED_MAX = 3
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TASK = re.compile(r"(?:task:)?([Tt]-\d{1,18})")
#: The end of a range of scopes: above all that begins with the scope.
_ABOVE = "\U0010ffff"


def needs(req: rq.SignalAdd | rq.Signals) -> list[AnyNeed]:
    """What to look at before a hint is left."""
    if req.subject is None or _TASK.fullmatch(req.subject):
        return []
    return [Place(req.subject, req.cwd)]


def add(svc: Service, tx: Tx, actor: Actor, req: rq.SignalAdd) -> rq.Signal:
    """See `requests.SignalAdd`."""
    if not _NAME.fullmatch(req.name):
        raise Refusal(
            Code.INVALID, f"{req.name[:60]!r} cannot be a signal's name: 1 to 40 lower-case "
            "letters, digits and `_`, a letter first. Nothing was left.",
            next=f"Use one of {', '.join(rule.MEANINGS)}, or a word of your own.",
        )
    if not (math.isfinite(req.strength) and 0 < req.strength <= rule.STRENGTH_MAX):
        raise Refusal(
            Code.INVALID, f"`strength` is {figures(req.strength)}; it must be more than 0 and "
            f"at most {figures(rule.STRENGTH_MAX)}. Nothing was left.",
            next="Repeat it with a strength like 1.",
        )
    half_life_ms = ms(svc.settings.signals.half_life_s if req.half_life_s is None
                      else min(max(req.half_life_s, 0.0), 1e9))
    if not rule.HALF_LIFE_MIN_MS <= half_life_ms <= rule.HALF_LIFE_MAX_MS:
        raise Refusal(
            Code.INVALID, f"`half_life_s` must be between {rule.HALF_LIFE_MIN_MS // 1000} and "
            f"{rule.HALF_LIFE_MAX_MS // 1000} seconds. Nothing was left.",
            next="Repeat it with a half-life like 600.",
        )
    subject = _subject(svc, tx, req.subject, req.cwd)
    signal = _get(tx, subject.scope, req.name)
    if signal is None:
        _check_room(tx, subject)
    agents.acting(tx, actor, req.agent, moved=False)
    leave(tx, subject, req.name, req.strength, half_life_ms, agent=req.agent, note=req.note)
    row = _get(tx, subject.scope, req.name)
    assert row is not None
    return _reply(tx, row)


def listing(svc: Service, view: View, actor: Actor, req: rq.Signals) -> rq.SignalList:
    """See `requests.Signals`."""
    limit = min(req.limit, 1000)
    if req.subject is not None:
        subject = _subject(svc, view, req.subject, req.cwd)
        scope = subject.scope
        rows = view.each(SignalRow, "signals_at", scope, scope + _ABOVE, SIGNALS_MAX)
    else:
        scope, _, name = (req.after or "").partition(" ")
        rows = view.each(SignalRow, "signals_some", scope, name, limit + 1)
    following = None
    if req.subject is None and len(rows) > limit:
        rows = rows[:limit]
        following = f"{rows[-1].scope} {rows[-1].name}"
    items = [signal for signal in (_reply(view, row) for row in rows)
             if signal.strength >= rule.FAINT and req.name in (None, signal.name)]
    return rq.SignalList(items=items, next=following,
                         subject=None if req.subject is None else subject.name)


# ------------------------------------------------------------ coord's own hints


def refused(svc: Service, tx: Tx, blocked_by: list[Resource], task: str | None) -> None:
    """An agent was refused in the course of this task because of these blockers."""
    if not svc.settings.signals.deposits:
        return
    half_life_ms = ms(svc.settings.signals.half_life_s)
    for resource in blocked_by[:BLOCKED_MAX]:
        _leave_if_room(tx, resource, "files_blocked", half_life_ms, "a refusal")
    if task is not None:
        _leave_if_room(tx, task_resource(task), "files_blocked", half_life_ms, "its work met "
                       + ", ".join(resource.name for resource in blocked_by[:BLOCKED_MAX])[:200])


def claimed(svc: Service, tx: Tx, task: str) -> None:
    """Somebody works on it now: should it come back, others may try something else first."""
    if svc.settings.signals.deposits:
        _leave_if_room(tx, task_resource(task), "saturation", ms(svc.settings.signals.half_life_s),
                       "a claim")


def put_off(svc: Service, tx: Tx, task: str, why: str) -> None:
    """A holder would not let go of what the task needs."""
    if svc.settings.signals.deposits:
        _leave_if_room(tx, task_resource(task), "task_not_ready",
                       ms(svc.settings.signals.half_life_s), why)


def leave(tx: Tx, subject: Resource, name: str, strength: float, half_life_ms: int, *,
          agent: str | None = None, note: str = "") -> None:
    """Add to a hint."""
    signal = _get(tx, subject.scope, name)
    left = _now(tx, signal) if signal is not None else 0.0
    tx.record(
        SignalLeft(
            resource=subject.name, scope=subject.scope, name=name,
            strength=round(rule.added(left, strength), 3), half_life_ms=half_life_ms,
            agent=agent, note=note,
        )
    )


def fade(tx: Tx) -> int:
    """Forget what is as good as gone; how many."""
    gone: list[tuple[str, str]] = []
    rows = tx.each(SignalRow, "signals_some", "", "", SIGNALS_MAX)
    gone = [(row.scope, row.name) for row in rows if _now(tx, row) < rule.FAINT]
    if gone:
        tx.record(SignalsFaded(signals=gone))
    return len(gone)


def _leave_if_room(tx: Tx, subject: Resource, name: str, half_life_ms: int, note: str) -> None:
    """A hint of coord's own: where there is no room for it, there is none."""
    if _get(tx, subject.scope, name) is None:
        try:
            _check_room(tx, subject)
        except Refusal:
            return
    leave(tx, subject, name, 1.0, half_life_ms, note=note)


# ------------------------------------------------------------ dispatch


class HintRow(Row, frozen=True):
    """How strong a hint on a ready task was at an instant."""

    task_id: str
    name: str
    strength: float
    half_life_ms: int
    at: str


def rank_ready(svc: Service, tx: Tx, most: int) -> dict[str, float]:
    """The ranks that hints give to the next `most` offered tasks: a task with a higher rank comes
    sooner."""
    weights = svc.settings.signals.weights
    if not any(weights.values()):
        return {}
    by_task: dict[str, list[tuple[str, float]]] = {}
    for hint in tx.each(HintRow, "signals_of_ready", most):
        now = rule.strength_at(hint.strength, hint.half_life_ms, tx.now_ms - from_iso(hint.at))
        by_task.setdefault(hint.task_id, []).append((hint.name, now))
    return {task: rule.bias(hints, weights) for task, hints in by_task.items()}


# ------------------------------------------------------------ parts


def _subject(svc: Service, view: View, text: str, cwd: str | None) -> Resource:
    """The subject of a hint: a task, by its id, or a resource.

    Raises:
        Refusal: UNKNOWN_TASK, INVALID, OUTSIDE_REPO.
        Unready: it was not looked at.
    """
    if match := _TASK.fullmatch(text):
        return task_resource(tasks.find(view, match[1]).task_id)
    resource = locate(svc, view, [text], cwd)[0].resource
    if is_task(resource):
        return task_resource(tasks.find(view, resource.name.split(":")[1]).task_id)
    return resource


def _check_room(view: View, subject: Resource) -> None:
    """Raises:
    Refusal: LIMIT.
    """
    here = view.value("signals_on_scope", subject.scope) or 0
    if here >= ON_ONE_MAX:
        raise Refusal(
            Code.LIMIT, f"{subject.name} has {here} signals; {ON_ONE_MAX} are the most. Nothing "
            "was left.", next="Add to one of them, or wait until they have faded.",
        )
    if (view.value("signal_count") or 0) >= SIGNALS_MAX:
        raise Refusal(
            Code.LIMIT, f"There are {SIGNALS_MAX} signals, which are the most. Nothing was left.",
            next="Wait until some have faded; the sweep forgets those.",
        )


def _get(view: View, scope: str, name: str) -> SignalRow | None:
    return view.first(SignalRow, "signal_get", scope, name)


def _now(view: View, row: SignalRow) -> float:
    return rule.strength_at(row.strength, row.half_life_ms, view.now_ms - from_iso(row.at))


def _reply(view: View, row: SignalRow) -> rq.Signal:
    return rq.Signal(
        subject=row.subject, name=row.name, strength=round(_now(view, row), 3),
        half_life_s=row.half_life_ms / 1000, at=row.at, agent=row.agent, note=row.note,
    )
