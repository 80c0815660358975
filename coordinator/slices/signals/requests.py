"""Leaving hints on tasks and resources, and reading them."""

from __future__ import annotations

from coordinator.words.requests.base import Count, Number, Reply, Request
from coordinator.words.texts import Line, Name


class Signal(Reply):
    subject: str  # `task:T-3`, or the resource's name
    name: str
    strength: float  # how strong it is, at the instant of the answer
    half_life_s: float
    at: str
    agent: str | None  # the agent that added to it last; None: coord itself
    note: str


class SignalList(Reply):
    items: list[Signal]
    next: str | None = None
    subject: str | None = None  # that was asked for, by its name from the root


class SignalAdd(Request[Signal]):
    """Leave a hint on a task or a resource, or add to the one there. It fades by half with each
    half-life, orders tasks of one priority at dispatch, and never blocks anybody."""

    op = "signal_add"
    http = ("POST", "/v1/signals")
    agent: Name
    subject: Name  # T-3, or a resource
    name: Name  # `priority`, `saturation`, `warning`, …, or a word of one's own
    strength: Number = 1.0  # how strong it is: more than 0, at most 10
    half_life_s: Number | None = None  # seconds; default: `signals.half_life_s`
    note: Line = ""
    cwd: Name | None = None


class Signals(Request[SignalList]):
    """Hints with their strength now, those that are as good as gone left out; `subject`: on this
    one, and on all below it."""

    op = "signals"
    http = ("GET", "/v1/signals")
    writes = False
    subject: Name | None = None
    name: Name | None = None
    limit: Count = 200
    after: Name | None = None
    cwd: Name | None = None
