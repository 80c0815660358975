"""A lane for each agent: what it did when, gathered from the log event by event.

A lane has periods of six kinds: tasks, leases, waits, thinking, refusals and reviews. `thinking`
follows from silence: the agent had a task or a lease, waited for nothing, and the log has no event
of it. It was at its model, or ran a program.

Waypoints keep what a report and its lanes carry from one event to the next. So a question about a
part of the time reads the log from the nearest waypoint. Nothing is changed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coordinator.kernel.writing import journal
from coordinator.slices.story.idle_agents import IdleAgents, WaitQueue
from coordinator.store.ledger import View
from coordinator.store.rows import Row
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code

#: Kinds of events that lanes take, and that a report has no use for.
LANES_ALONE = frozenset({"review_opened", "review_decided", "review_undone", "review_split",
                         "content_read", "edits_kept", "message_sent", "key_written", "agent_seen"})
#: A shorter silence (ms) is the time between two steps, and no thinking.
THINKING_MS = 2_000
#: How a refused event is called in the catalogue.
CODES = {"acquisition_refused": Code.LOCKED.value, "gives_way": Code.DEADLOCK.value,
         "write_lost": Code.VERSION_CHANGED.value}


#: Which period is open: its kind, and the task, fencing token, acquisition or review.
_Key = tuple[rq.SpanKind, str | int]


class Period(msgspec.Struct, gc=False):
    """A time in which an agent was at one thing. There may be a hundred thousand of them: the
    collector, which stops everybody, has nothing to look for in them."""

    agent: str
    kind: rq.SpanKind
    since_ms: int
    event: int  # which began it
    subject: str  # the task, the resource or the review
    text: str = ""  # its title, or why
    until_ms: int = 0
    resources: list[str] = []
    holders: list[str] = []
    is_open: bool = False  # it went on when the window ended
    count: int = 1  # how many it stands for


@dataclass
class OpenPeriods:
    """Everything that has begun and not ended, carried from one event to the next."""

    now_ms: int = 0
    event: int = 0
    periods: dict[_Key, Period] = field(default_factory=dict)
    queue: WaitQueue = field(default_factory=WaitQueue)
    titles: dict[str, str] = field(default_factory=dict)
    #: Agent -> how many tasks and leases it has, how many places in the queue, and the instant
    #: and the number of the last event that the log has of it.
    busy: dict[str, int] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    last: dict[str, tuple[int, int]] = field(default_factory=dict)


class Lanes:
    """All periods that end after an instant.

    Args:
        since_ms: what had ended by then is left out.
        begun: what was open before the first event that is taken.
    """

    def __init__(self, since_ms: int, begun: OpenPeriods | None = None) -> None:
        self.periods: list[Period] = []
        self.open = begun or OpenPeriods()
        self._since_ms = since_ms
        self._taking: dict[str, Callable[[dict[str, Any]], None]] = {
            "task_added": self._name_task, "task_edited": self._name_task,
            "task_changed": self._change_task, "lease_granted": self._grant,
            "lease_moved": self._move, "lease_released": self._release,
            "lease_lapsed": self._lapse, "waiter_queued": self._enter_queue,
            "waiter_changed": self._note_act, "waiter_left": self._leave_queue,
            "review_opened": self._open_review, "review_undone": self._open_review,
            "review_split": self._split_review, "review_decided": self._decide_review,
            "content_read": self._note_act, "edits_kept": self._note_act,
            "message_sent": self._note_act, "key_written": self._note_act,
            "agent_seen": self._note_act,
        }

    def take(self, event: int, at_ms: int, kind: str, data: dict[str, Any]) -> None:
        """One event, in its order."""
        self.open.now_ms, self.open.event = max(at_ms, self.open.now_ms), event
        if kind in CODES:
            self._refuse(kind, data)
        elif (taking := self._taking.get(kind)) is not None:
            taking(data)

    def end(self, end_ms: int) -> list[Period]:
        """All periods in the order of their beginning; what is still open ends now."""
        self.open.now_ms = max(end_ms, self.open.now_ms)
        ended = len(self.periods)
        for agent in list(self.open.last):
            self._act(agent, self.open.now_ms)
        for silence in self.periods[ended:]:
            silence.is_open = True
        for key in list(self.open.periods):
            self.open.periods[key].is_open = True
            self._close(key, self.open.now_ms)
        return sorted(self.periods, key=lambda period: (
            period.since_ms, period.event, period.agent, period.kind, period.subject))

    # ------------------------------------------------------------ periods

    def _begin(self, key: _Key, agent: str, subject: str, text: str,
               resources: list[str]) -> Period:
        period = self.open.periods[key] = Period(
            agent, key[0], self.open.now_ms, self.open.event, subject, text, resources=resources)
        return period

    def _close(self, key: _Key, until_ms: int) -> Period | None:
        period = self.open.periods.pop(key, None)
        if period is not None:
            self._add(period, until_ms)
        return period

    def _add(self, period: Period, until_ms: int) -> None:
        period.until_ms = max(until_ms, period.since_ms)
        if period.until_ms >= self._since_ms:
            self.periods.append(period)

    def _note_act(self, data: dict[str, Any]) -> None:
        self._act(data["agent"], self.open.now_ms)

    def _act(self, agent: str, at_ms: int) -> None:
        """The log has something of this agent: if it was silent until then, that was thinking."""
        last_ms, event = self.open.last.get(agent, (at_ms, 0))
        silent = at_ms - last_ms >= THINKING_MS
        if silent and self.open.busy.get(agent) and not self.open.waits.get(agent):
            self._add(Period(agent, "thinking", last_ms, event, ""), at_ms)
        self.open.last[agent] = max(at_ms, last_ms), self.open.event

    # ------------------------------------------------------------ events

    def _refuse(self, kind: str, data: dict[str, Any]) -> None:
        agent = data["agent"]
        self._act(agent, self.open.now_ms)
        resources = list(data.get("resources", ())) or [data.get("resource", "")]
        holders = [data["to"]] if kind == "gives_way" else list(data.get("holders", ()))
        now_ms, event = self.open.now_ms, self.open.event
        self._add(Period(agent, "refusal", now_ms, event, resources[0], CODES[kind],
                         resources=resources, holders=holders), now_ms)
        if kind == "acquisition_refused":
            self.open.queue.note_refusal(data, self.open.now_ms)
            self._name_holders(agent)

    def _name_holders(self, agent: str) -> None:
        """Whom a waiter waits for is known by the refusal, which may come after it."""
        for acquisition, waiting in self.open.queue.places.items():
            period = self.open.periods.get(("wait", acquisition))
            if waiting.agent == agent and period is not None:
                period.holders = waiting.holders

    def _name_task(self, data: dict[str, Any]) -> None:
        self.open.titles[data["task"]] = data["title"]

    def _change_task(self, data: dict[str, Any]) -> None:
        task = data["task"]
        taker = data.get("claimed_by") if data["state"] == "claimed" else None
        claimed = self.open.periods.get(("task", task))
        if claimed is not None:
            self._act(claimed.agent, self.open.now_ms)
            if claimed.agent == taker:
                return
            self._close(("task", task), self.open.now_ms)
            _count(self.open.busy, claimed.agent, -1)
        if taker:
            self._act(taker, self.open.now_ms)
            self._begin(("task", task), taker, task, self.open.titles.get(task, ""), [])
            _count(self.open.busy, taker, 1)

    def _grant(self, data: dict[str, Any]) -> None:
        agent, name = data["agent"], data["resource"]
        if not journal.is_own(agent):
            self._act(agent, self.open.now_ms)
            self._begin(("lease", data["fencing_token"]), agent, name,
                        data.get("description", ""), [name])
            _count(self.open.busy, agent, 1)

    def _move(self, data: dict[str, Any]) -> None:
        period = self.open.periods.get(("lease", data["fencing_token"]))
        if period is not None:
            period.subject = data["resource"]
            period.resources = [data["resource"]]

    def _release(self, data: dict[str, Any]) -> None:
        self._end_lease(data["fencing_token"], self.open.now_ms)

    def _lapse(self, data: dict[str, Any]) -> None:
        self._end_lease(data["fencing_token"], min(self.open.now_ms, from_iso(data["expired_at"])))

    def _end_lease(self, token: int, at_ms: int) -> None:
        period = self.open.periods.get(("lease", token))
        if period is not None:
            self._act(period.agent, at_ms)
            self._close(("lease", token), at_ms)
            _count(self.open.busy, period.agent, -1)

    def _enter_queue(self, data: dict[str, Any]) -> None:
        agent, acquisition = data["agent"], data["acquisition_id"]
        self._act(agent, self.open.now_ms)
        if ("wait", acquisition) in self.open.periods:  # it asked again, and keeps its place
            return
        self.open.queue.enter(data, self.open.now_ms)
        waiting = self.open.queue.places[acquisition]
        names = waiting.resources
        self._begin(("wait", acquisition), agent, names[0] if names else "",
                    data.get("description", ""), names).holders = waiting.holders
        _count(self.open.waits, agent, 1)

    def _leave_queue(self, data: dict[str, Any]) -> None:
        acquisition = data["acquisition_id"]
        self.open.queue.leave(acquisition, self.open.now_ms)
        period = self.open.periods.get(("wait", acquisition))
        if period is not None:
            self._act(period.agent, self.open.now_ms)
            self._close(("wait", acquisition), self.open.now_ms)
            _count(self.open.waits, period.agent, -1)

    def _open_review(self, data: dict[str, Any]) -> None:
        self._begin_review(data["review"], data.get("agent"), data.get("summary", ""))

    def _split_review(self, data: dict[str, Any]) -> None:
        whole = self.open.periods.get(("review", data["review"]))
        self._begin_review(data["part"], data.get("agent"), whole.text if whole else "")

    def _begin_review(self, review: str, agent: str | None, summary: str) -> None:
        text = self.open.titles.setdefault(review, summary)
        if agent is not None and ("review", review) not in self.open.periods:
            self._begin(("review", review), agent, review, text, [])

    def _decide_review(self, data: dict[str, Any]) -> None:
        self._close(("review", data["review"]), self.open.now_ms)


def _count(counts: dict[str, int], agent: str, by: int) -> None:
    counts[agent] = counts.get(agent, 0) + by


class Begun(msgspec.Struct):
    """All that had begun and not ended after an event."""

    now_ms: int
    lanes: OpenPeriods
    idle: IdleAgents
    #: Lease -> (agent, resource), by fencing token.
    leases: dict[int, tuple[str, str]]


def pack(begun: Begun) -> bytes:
    """As a waypoint holds it."""
    return zlib.compress(msgspec.msgpack.encode(begun))


class WaypointRow(Row, frozen=True):
    """The nearest waypoint. `size`: bytes of all of it; `begun`: packed."""

    seq: int
    size: int
    begun: bytes


def find_waypoint(view: View, up_to: int) -> tuple[int, Begun] | None:
    """The nearest waypoint up to an event: after which event it is, and what had begun by then.
    None: there is none, or none that this version can read; the log says the same."""
    row = view.first(WaypointRow, "waypoint_begun", up_to)
    if row is None:
        return None
    try:
        return row.seq, msgspec.msgpack.decode(zlib.decompress(row.begun), type=Begun)
    except (zlib.error, msgspec.MsgspecError):
        return None
