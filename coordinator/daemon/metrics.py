"""The metrics for Prometheus at `GET /metrics`: counts of the state, and counters since the start.

The text is Prometheus' own format. No series names an agent, a file or a task, so the number of
series does not grow with the work. The official library would bring a registry and a server for
these few lines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from coordinator.store.ledger import View
from coordinator.store.writer_cache import Effects
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal

TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Upper bounds of what a commit takes (seconds).
BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
AGENT_STATES = ("active", "stale")
Labels = Mapping[str, str]
Values = Sequence[tuple[Labels, float]]


class Counts:
    """Counters since the start; used from the loop's thread only."""

    def __init__(self) -> None:
        self.refused: Counter[Code] = Counter()
        self.events: Counter[str] = Counter()
        self._commits = [0] * (len(BOUNDS_S) + 1)
        self._commit_s = 0.0

    def refusal(self, value: Refusal) -> None:
        """Somebody was refused."""
        self.refused[value.code] += 1

    def committed(self, effects: Effects) -> None:
        """Count what a transaction has recorded."""
        self.events.update(effects.kinds())

    def commit(self, seconds: float) -> None:
        """One commit, with all that waited for it."""
        self._commits[bisect_left(BOUNDS_S, seconds)] += 1
        self._commit_s += seconds

    def text(self, view: View, health: rq.HealthReply) -> str:
        """All metrics now."""
        counted = view.counts("metrics", view.now)

        def by_state(prefix: str, states: Iterable[str]) -> Values:
            return [({"state": state}, counted.get(f"{prefix}:{state}", 0)) for state in states]

        def total_of(name: str) -> Values:
            return [({}, counted.get(name, 0))]

        rows: list[tuple[str, str, str, Values]] = [
            ("agents", "gauge", "Registered agents, by state.", by_state("agents", AGENT_STATES)),
            ("leases_held", "gauge", "Live leases, by mode.",
             [({"mode": mode}, counted.get(f"leases:{mode}", 0))
              for mode in ("exclusive", "shared")]),
            ("waiters", "gauge", "Acquisitions that stand in line.", total_of("waiters")),
            ("tasks", "gauge", "Tasks, by state.", by_state("tasks", rq.TASK_STATES)),
            ("reviews_open", "gauge", "Reviews that wait for a verdict.", total_of("reviews")),
            ("unlock_requests_pending", "gauge", "Unlock requests that wait for an answer.",
             total_of("requests")),
            ("grants_total", "counter", "Leases granted since the start.",
             [({}, self.events["lease_granted"])]),
            ("refusals_total", "counter", "Requests refused since the start, by code.",
             [({"code": code.value}, self.refused[code]) for code in Code]),
            ("events_total", "counter", "Events recorded since the start, by kind.",
             [({"kind": kind}, count) for kind, count in sorted(self.events.items())]),
            ("log_events", "gauge", "Number of the last event in the log.",
             [({}, health.events)]),
            ("database_bytes", "gauge", "Size of the database's file.", [({}, health.db_bytes)]),
            ("database_wal_bytes", "gauge", "Size of its write-ahead log.",
             [({}, health.wal_bytes)]),
            ("resident_memory_bytes", "gauge", "Memory that the coordinator has.",
             [({}, health.resident_bytes)]),
            ("start_time_seconds", "gauge", "When it started, in seconds since 1970.",
             [({}, from_iso(health.started_at) / 1000)]),
            ("build_info", "gauge", "Its version; always 1.", [({"version": health.version}, 1)]),
        ]
        result: list[str] = []
        for name, kind, help_text, values in rows:
            result += _metric(f"coord_{name}", kind, help_text, values)
        return "\n".join([*result, *self._histogram()]) + "\n"

    def _histogram(self) -> list[str]:
        name = "coord_commit_duration_seconds"
        result = [f"# HELP {name} How long commits took, with all that waited for them.",
                  f"# TYPE {name} histogram"]
        sofar = 0
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), self._commits, strict=True):
            sofar += count
            result.append(f'{name}_bucket{{le="{bound}"}} {sofar}')
        return [*result, f"{name}_sum {self._commit_s:.9f}", f"{name}_count {sofar}"]


def _metric(name: str, kind: str, text: str, values: Values) -> list[str]:
    result = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in values:
        inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        result.append(f"{name}{{{inside}}} {value:.15g}" if inside else f"{name} {value:.15g}")
    return result


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
