"""The time line of a time of work: a bounded number of spans for each agent's lane, and the demand
for each file in each part of the window.

Both are gathered with the report, in one pass over the log. The module also rebuilds one moment
from the log: the state as `status` shows it, and in sentences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from coordinator.kernel.blackboard import CandidateRow
from coordinator.kernel.core import Actor, Service, last_before
from coordinator.rules import recovery
from coordinator.rules.backlog import told_state
from coordinator.slices.story import status
from coordinator.slices.story.lanes import Lanes, Period
from coordinator.slices.story.report import gather, read_instant, read_window, summarize
from coordinator.store.ledger import View
from coordinator.store.rebuild import rebuild
from coordinator.store.rows import LeaseRow, ReviewRow, TaskRow, WaiterRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import one_line, quoted

#: How many spans are returned at most.
SPANS_MAX = 20_000
#: How near spans are that are drawn together first, as a part of the window.
NEAR = 4000
#: Holders that a span names.
HOLDERS_MAX = 8


def timeline(svc: Service, view: View, actor: Actor, req: rq.Timeline) -> rq.TimelineReply:
    """See `requests.Timeline`.

    Raises:
        Refusal: INVALID: no instants, or the first is the later one.
    """
    window = read_window(view, "timeline", req.since, req.until)
    lanes = Lanes(from_iso(window.since) if window.since else 0)
    gathered, begun = gather(view, window, lanes)
    report = summarize(gathered, begun, window, req.limit)
    end_ms = from_iso(window.end)
    begin_ms = from_iso(begun) if begun else end_ms
    periods = lanes.end(end_ms)
    most = min(req.spans, SPANS_MAX)
    shown = draw_together(periods, most, max(1, end_ms - begin_ms))
    return rq.TimelineReply(
        since=begun, until=window.end, spans=[_span(period) for period in shown[:most]],
        together=len(shown) < len(periods), left_out=max(0, len(shown) - most),
        demand=measure_demand(periods, [file.resource for file in report.files], begin_ms, end_ms,
                              req.parts),
        report=report,
    )


def draw_together(periods: Sequence[Period], most: int, window_ms: int) -> list[Period]:
    """The periods, with near ones of one agent and kind as one, until there are no more than
    `most`; what is left then is one period for each agent and kind at least.

    Args:
        periods: in the order of their beginning.
    """
    shown, near_ms = list(periods), max(1, window_ms // NEAR)
    while len(shown) > most:
        shown = _join(periods, near_ms)
        if near_ms > window_ms:
            break
        near_ms *= 2
    return shown


def _join(periods: Iterable[Period], near_ms: int) -> list[Period]:
    joined: list[Period] = []
    last: dict[tuple[str, str], Period] = {}
    for period in periods:
        lane = period.agent, period.kind
        before = last.get(lane)
        if before is None or period.since_ms - before.until_ms > near_ms:
            before = last[lane] = _copy(period)
            joined.append(before)
        else:
            before.until_ms = max(before.until_ms, period.until_ms)
            before.is_open = before.is_open or period.is_open
            before.holders = list(dict.fromkeys([*before.holders, *period.holders]))[:HOLDERS_MAX]
            before.count += 1
    return joined


def _copy(period: Period) -> Period:
    return Period(period.agent, period.kind, period.since_ms, period.event, period.subject,
                  period.text, period.until_ms, period.resources, period.holders, period.is_open)


def _span(period: Period) -> rq.Span:
    return rq.Span(
        agent=period.agent, kind=period.kind, since=iso(period.since_ms),
        until=iso(period.until_ms), event=period.event, subject=period.subject,
        text=period.text, holders=period.holders[:HOLDERS_MAX], open=period.is_open,
        count=period.count)


def measure_demand(periods: Iterable[Period], names: Sequence[str], begin_ms: int, end_ms: int,
                   parts: int) -> list[rq.Demand]:
    """For each name how many agents had it and waited for it, part by part of the window."""
    length_ms = max(1, end_ms - begin_ms) / parts
    wanted = set(names)
    held: dict[str, list[float]] = defaultdict(lambda: [0.0] * parts)
    waited: dict[str, list[float]] = defaultdict(lambda: [0.0] * parts)
    refused: dict[str, list[int]] = defaultdict(lambda: [0] * parts)
    for period in periods:
        for name in period.resources:
            if name not in wanted:
                continue
            if period.kind == "refusal":
                if begin_ms <= period.since_ms <= end_ms:
                    refused[name][_part(period.since_ms - begin_ms, length_ms, parts)] += 1
            elif period.kind in ("lease", "wait"):
                _spread((held if period.kind == "lease" else waited)[name],
                        max(0, period.since_ms - begin_ms),
                        min(end_ms, period.until_ms) - begin_ms, length_ms)
    return [rq.Demand(resource=name, held=_rounded(held[name]), waited=_rounded(waited[name]),
                      refused=refused[name]) for name in names]


def _part(offset_ms: float, length_ms: float, parts: int) -> int:
    return min(parts - 1, int(offset_ms / length_ms))


def _spread(sums: list[float], first_ms: float, last_ms: float, length_ms: float) -> None:
    """Add the time between two offsets to the parts that it covers, as shares of each."""
    if last_ms <= first_ms:
        return
    for part in range(_part(first_ms, length_ms, len(sums)),
                      _part(last_ms, length_ms, len(sums)) + 1):
        begin, end = part * length_ms, (part + 1) * length_ms
        sums[part] += max(0.0, min(last_ms, end) - max(first_ms, begin)) / length_ms


def _rounded(sums: Iterable[float]) -> list[float]:
    return [round(value, 3) for value in sums]


#: How many leases and tasks are told in sentences.
SENTENCES_MAX = 2000


def moment(svc: Service, view: View, actor: Actor, req: rq.Moment) -> rq.MomentReply:
    """See `requests.Moment`.

    Raises:
        Refusal: INVALID: an event and an instant, or no instant, or the log does not reach there.
    """
    first, last = (int(view.value(name) or 0) for name in ("snapshot_seq", "event_last"))
    event, now_ms = _find(view, req, last)
    if not first <= event <= last:
        raise Refusal(
            Code.INVALID, f"The log tells how things were after the events {first} to {last}, not "
            f"after {event}.", next="`coord events` lists them.",
        )
    db, _ = rebuild(view.db, event, view.rest, by_waypoint=True)
    try:
        then = View(db, now_ms)
        return rq.MomentReply(
            event=event, at=then.now, first=first, last=last,
            state=status.status(svc, then, actor, rq.Status(events=0)),
            sentences=list(_sentences(then)))
    finally:
        db.close()


def _find(view: View, req: rq.Moment, last: int) -> tuple[int, int]:
    """The last event before the moment that is asked about, and the moment itself (ms)."""
    if req.event is not None and req.at is not None:
        raise Refusal(Code.INVALID,
                      "moment: `event` and `event_at` are both given. Nothing was told.",
                      next="Give one of them.", field="at")
    if req.event is not None:
        event_at = view.value("event_at", req.event)
        return req.event, from_iso(event_at) if event_at is not None else view.now_ms
    instant = read_instant("moment", "at", req.at)
    if instant is None or instant >= view.now:
        return last, view.now_ms
    now_ms = from_iso(instant)
    return last_before(view, iso(now_ms + 1)), now_ms


def _sentences(view: View) -> Iterator[str]:
    """The state in sentences: everything that nobody has closed."""
    for lease in view.each(LeaseRow, "leases_live", view.now, 0, None, SENTENCES_MAX):
        for_task = f" for {lease.task_id}" if lease.task_id else ""
        for_task += f" in {one_line(lease.worktree)}" if lease.worktree else ""
        yield (f"{lease.locked_by} holds {lease.file_path} ({lease.mode}){for_task} until "
               f"{lease.expires_at[:19]}Z")
    for waiter in view.each(WaiterRow, "waiters_all"):
        yield f"{waiter.agent} stands in line as {waiter.acquisition_id}"
    for task in view.each(TaskRow, "tasks_list", 0, SENTENCES_MAX, 0):
        by = f" by {task.claimed_by}" if task.claimed_by else ""
        yield f"{task.task_id} is {told_state(task.state)}{by}: {quoted(task.title)}"
        for tried in view.each(CandidateRow, "candidates_of", task.task_id):
            yield (f"{task.task_id}, attempt {tried.n} by {tried.agent}: {tried.outcome}"
                   f"{recovery.describe_remedy(tried.remedy)}")
    for review in view.each(ReviewRow, "reviews_list", "open", SENTENCES_MAX, None, None, 0, 0):
        yield f"{review.review_id} is open"
