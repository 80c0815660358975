"""The report of a time of work, gathered from the log in one pass: waits, files, refusals, agents.

The time in which a waiter's request was open is lost, because its agent did nothing else. So is the
time in which an agent had no task because others held what ready tasks need (`idle_agents`). A
refusal that changes nothing and queues nobody leaves no event, so it is not counted. Nothing is
changed.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coordinator.kernel.core import Actor, Service, last_before
from coordinator.kernel.writing import journal
from coordinator.slices.story.idle_agents import Idle, IdleAgents, Waiting, WaitQueue
from coordinator.slices.story.lanes import LANES_ALONE, Begun, Lanes, find_waypoint
from coordinator.store.ledger import View
from coordinator.store.rows import LogRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Code, Refusal

#: Lines of a list at most.
LIMIT_MAX = 1000
#: Events that are read at once.
AT_ONCE = 2000
#: No instant is later.
NEVER = "9999"


@dataclass
class Gathered:
    """Sums so far, all in milliseconds."""

    now_ms: int = 0
    events: int = 0
    queue: WaitQueue = field(default_factory=WaitQueue)
    held: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    pairs: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(
        lambda: [0, 0, 0]))
    files: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    wanted_by: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    agents: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    refused: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    idle: IdleAgents = field(default_factory=IdleAgents)
    #: What was leased before the time of the report: (agent, resource) by token.
    earlier: dict[int, tuple[str, str]] = field(default_factory=dict)

    def begin_near(self, view: View, since: str, lanes: Lanes | None) -> int:
        """Take what had begun at the nearest waypoint before an instant, and let `lanes` take it;
        after which event the log has to be read from there."""
        waypoint = find_waypoint(view, last_before(view, since))
        if waypoint is None:
            return 0
        event, begun = waypoint
        self.now_ms, self.idle, self.earlier = begun.now_ms, begun.idle, begun.leases
        if lanes is not None:
            lanes.open = begun.lanes
        return event

    def take_earlier(self, instant: str, kind: str, data: dict[str, Any]) -> None:
        """One event from before: what is so at the beginning, and nothing counts of it."""
        self.now_ms = from_iso(instant)
        if kind == "lease_granted" and not journal.is_own(data["agent"]):
            self.earlier[data["fencing_token"]] = data["agent"], data["resource"]
        elif kind in ("lease_released", "lease_lapsed"):
            self.earlier.pop(data["fencing_token"], None)
        elif kind == "agent_registered":
            self.idle.registered(data)
        elif kind == "agent_state" and data["state"] == "gone":
            self.idle.gone(data["agent"])
        elif kind in ("task_added", "task_edited"):
            self.idle.task(data)
        elif kind == "task_changed":
            self.idle.task_changed(data)
        elif kind == "claim_waits":
            self.idle.waits(data)

    def take(self, instant: str, kind: str, data: dict[str, Any]) -> None:
        """One event, in its order."""
        self._pass_time(from_iso(instant))
        self.events += 1
        taking = getattr(self, f"_{kind}", None)
        if taking is not None:
            taking(data, instant)

    def _pass_time(self, now_ms: int) -> None:
        if self.now_ms:
            for ended in self.idle.pass_time(self.now_ms, now_ms, (
                    *((agent, name) for agent, name, _ in self.held.values()),
                    *self.earlier.values()), self.queue.agents()):
                self._was_idle(ended)
        self.now_ms = now_ms

    def _was_idle(self, ended: tuple[str, Idle] | None) -> None:
        if ended is None:
            return
        agent, idle = ended
        self.agents[agent]["waited"] += idle.ms
        self.agents[agent]["stood"] += idle.ms
        for holder, ms in idle.holders.items():
            pair = self.pairs[agent, holder]
            pair[0] += 1
            pair[1] += ms
            pair[2] += ms
        for name, ms in idle.names.items():
            self.files[name]["waited"] += ms
            self.wanted_by[name].add(agent)

    def _agent_registered(self, data: dict[str, Any], instant: str) -> None:
        self.idle.registered(data)

    def _agent_state(self, data: dict[str, Any], instant: str) -> None:
        if data["state"] == "gone":
            self._was_idle(self.idle.gone(data["agent"]))

    def _claim_waits(self, data: dict[str, Any], instant: str) -> None:
        self.idle.waits(data)

    def _task_added(self, data: dict[str, Any], instant: str) -> None:
        self.idle.task(data)

    def _task_edited(self, data: dict[str, Any], instant: str) -> None:
        self.idle.task(data)

    def _acquisition_refused(self, data: dict[str, Any], instant: str) -> None:
        agent, holders = data["agent"], data["holders"]
        self.refused[Code.LOCKED.value] += 1
        self.agents[agent]["refused"] += 1
        for holder in holders:
            self.pairs[agent, holder][0] += 1
        for name in data["resources"]:
            self.files[name]["refused"] += 1
            self.wanted_by[name].add(agent)
        self.queue.note_refusal(data, self.now_ms)

    def _gives_way(self, data: dict[str, Any], instant: str) -> None:
        self.refused[Code.DEADLOCK.value] += 1

    def _write_lost(self, data: dict[str, Any], instant: str) -> None:
        self.refused[Code.VERSION_CHANGED.value] += 1
        self.files[data["resource"]]["refused"] += 1
        self.wanted_by[data["resource"]].add(data["agent"])

    def _candidate_judged(self, data: dict[str, Any], instant: str) -> None:
        if data["outcome"] in Code.__members__ and data.get("remedy") != "none":
            self.refused[data["outcome"]] += 1

    def _waiter_queued(self, data: dict[str, Any], instant: str) -> None:
        self.queue.enter(data, self.now_ms)

    def _waiter_changed(self, data: dict[str, Any], instant: str) -> None:
        self.queue.change(data, self.now_ms)

    def _waiter_left(self, data: dict[str, Any], instant: str) -> None:
        self._leave(data["acquisition_id"])

    def _leave(self, acquisition: str) -> None:
        waiting = self.queue.leave(acquisition, self.now_ms)
        if waiting is not None:
            self._waited(waiting)

    def _waited(self, waiting: Waiting) -> None:
        spent = self.now_ms - waiting.since_ms
        mine = self.agents[waiting.agent]
        mine["waited"] += spent
        mine["stood"] += waiting.stood_ms
        for holder in waiting.holders:
            pair = self.pairs[waiting.agent, holder]
            pair[1] += spent
            pair[2] += waiting.stood_ms
        for name in waiting.resources:
            self.files[name]["waited"] += spent
            self.wanted_by[name].add(waiting.agent)

    def _lease_granted(self, data: dict[str, Any], instant: str) -> None:
        agent, name = data["agent"], data["resource"]
        if journal.is_own(agent):
            return
        self.held[data["fencing_token"]] = agent, name, self.now_ms
        self.agents[agent]["grants"] += 1
        self.files[name]["grants"] += 1
        self.wanted_by[name].add(agent)

    def _lease_moved(self, data: dict[str, Any], instant: str) -> None:
        if (lease := self.held.get(data["fencing_token"])) is not None:
            self.held[data["fencing_token"]] = lease[0], data["resource"], lease[2]

    def _lease_released(self, data: dict[str, Any], instant: str) -> None:
        self._ended(data["fencing_token"], self.now_ms)

    def _lease_lapsed(self, data: dict[str, Any], instant: str) -> None:
        self._ended(data["fencing_token"], min(self.now_ms, from_iso(data["expired_at"])))

    def _ended(self, token: int, ms: int) -> None:
        self.earlier.pop(token, None)
        if (lease := self.held.pop(token, None)) is not None:
            agent, name, since = lease
            self.agents[agent]["held"] += max(0, ms - since)
            self.files[name]["held"] += max(0, ms - since)

    def _task_changed(self, data: dict[str, Any], instant: str) -> None:
        self._was_idle(self.idle.task_changed(data))
        verb = data["verb"]
        self.tasks[verb] += 1
        whose = {"claim": "claimed", "done": "done", "fail": "failed", "exhaust": "failed",
                 "flag": "in_review"}
        agent = data.get("claimed_by") if verb == "claim" else data.get("agent")
        if verb in whose and agent:
            self.agents[agent][whose[verb]] += 1

    def end(self, now_ms: int) -> None:
        """Count open leases and waits up to now."""
        self._pass_time(max(now_ms, self.now_ms))
        for ended in self.idle.end():
            self._was_idle(ended)
        for token in list(self.held):
            self._ended(token, self.now_ms)
        for acquisition in list(self.queue.places):
            self._leave(acquisition)


@dataclass(frozen=True)
class Window:
    """The time that is asked about, in UTC; `since` None: from the first event on."""

    since: str | None
    until: str
    end: str  # `until`, but no later than now


def read_window(view: View, op: str, since: str | None, until: str | None) -> Window:
    """The window between two instants, as a request gives them.

    Raises:
        Refusal: INVALID: no instants, or the first is the later one.
    """
    first, last = read_instant(op, "since", since), read_instant(op, "until", until) or view.now
    if first is not None and first > last:
        raise Refusal(Code.INVALID, f"{op}: `since` is later than " + (
            "`until`." if until else "now."), next="Give an earlier instant.", field="since")
    return Window(first, last, min(last, view.now))


def gather(view: View, window: Window, lanes: Lanes | None = None) -> tuple[Gathered, str | None]:
    """Gather a window of the log, and the instant at which it begins; None if never. `lanes` also
    takes every event up to the window's end."""
    gathered, first = Gathered(), ""
    last = gathered.begin_near(view, window.since, lanes) if window.since is not None else 0
    final = last_before(view, iso(from_iso(window.until) + 1))
    while rows := view.each(
            LogRow, "report_events", last, window.until, AT_ONCE, lanes is not None, final):
        for row in rows:
            last, instant, kind, facts = row.seq, row.at, row.kind, msgspec.json.decode(row.data)
            if lanes is not None:
                lanes.take(last, from_iso(str(instant)), str(kind), facts)
                if kind in LANES_ALONE:
                    continue
            if window.since is not None and str(instant) < window.since:
                gathered.take_earlier(str(instant), str(kind), facts)
                continue
            if window.since is not None and not first:
                gathered.now_ms = from_iso(window.since)
            first = first or str(instant)
            gathered.take(str(instant), str(kind), facts)
        view.rest()
    gathered.end(from_iso(window.end))
    return gathered, window.since or first or None


def carry(view: View, up_to: int) -> Begun:
    """Everything that has begun and not ended after an event, from the nearest earlier waypoint."""
    gathered, lanes = Gathered(), Lanes(sys.maxsize)
    ends_at = view.value("event_at", up_to)
    last = gathered.begin_near(view, ends_at, lanes) if ends_at is not None else 0
    while rows := view.each(LogRow, "report_events", last, NEVER, AT_ONCE, True, up_to):
        for row in rows:
            last, facts = row.seq, msgspec.json.decode(row.data)
            lanes.take(last, from_iso(row.at), row.kind, facts)
            gathered.take_earlier(row.at, row.kind, facts)
    return Begun(gathered.now_ms, lanes.open, gathered.idle, gathered.earlier)


def report(svc: Service, view: View, actor: Actor, req: rq.Report) -> rq.ReportReply:
    """See `requests.Report`.

    Raises:
        Refusal: INVALID: no instants, or the first is the later one.
    """
    window = read_window(view, "report", req.since, req.until)
    return summarize(*gather(view, window), window, req.limit)


def summarize(gathered: Gathered, begun: str | None, window: Window,
              limit: int) -> rq.ReportReply:
    """The gathered report as a reply."""
    most = min(limit, LIMIT_MAX)
    return rq.ReportReply(
        since=begun, until=window.end, events=gathered.events,
        span_s=_s(from_iso(window.end) - from_iso(begun)) if begun else 0.0,
        waited=_pairs(gathered)[:most], files=_files(gathered)[:most],
        agents=_agents(gathered)[:most],
        refusals=[rq.RefusedCount(code=code, count=count)
                  for code, count in gathered.refused.most_common()],
        waited_s=_s(sum(agent["waited"] for agent in gathered.agents.values())),
        stood_s=_s(sum(agent["stood"] for agent in gathered.agents.values())),
        tasks=dict(sorted(gathered.tasks.items())),
    )


def _pairs(gathered: Gathered) -> list[rq.WaitedFor]:
    made = [rq.WaitedFor(agent=agent, holder=holder, times=times, waited_s=_s(ms),
                         stood_s=_s(stood))
            for (agent, holder), (times, ms, stood) in gathered.pairs.items()]
    return sorted(made, key=lambda waited_for: (-waited_for.waited_s, -waited_for.times,
                                                waited_for.agent, waited_for.holder))


def _files(gathered: Gathered) -> list[rq.HotFile]:
    made = [rq.HotFile(resource=name, grants=file["grants"], refused=file["refused"],
                       agents=len(gathered.wanted_by[name]), held_s=_s(file["held"]),
                       waited_s=_s(file["waited"]))
            for name, file in gathered.files.items()]
    return sorted(made, key=lambda hot_file: (
        -hot_file.waited_s, -hot_file.refused, -hot_file.agents, -hot_file.grants,
        hot_file.resource))


def _agents(gathered: Gathered) -> list[rq.AgentsPart]:
    return [rq.AgentsPart(
        agent=name, claimed=counts["claimed"], done=counts["done"], failed=counts["failed"],
        in_review=counts["in_review"], grants=counts["grants"], refused=counts["refused"],
        held_s=_s(counts["held"]), waited_s=_s(counts["waited"]), stood_s=_s(counts["stood"]),
    ) for name, counts in sorted(gathered.agents.items())]


def _s(ms: int) -> float:
    return round(ms / 1000, 3)


def read_instant(op: str, field_name: str, text: str | None) -> str | None:
    """The instant that a request's field gives, in UTC with milliseconds.

    Raises:
        Refusal: INVALID: it is none.
    """
    if text is None:
        return None
    try:
        return iso(from_iso(text))
    except ValueError:
        raise Refusal(
            Code.INVALID, f"{op}: `{field_name}` is {text[:60]!r}, which is no instant.",
            next="Give it like 2026-11-21T14:32:00Z.",
        ) from None
