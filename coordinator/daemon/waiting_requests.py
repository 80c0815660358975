"""Requests that are not answered yet: what the router keeps of each. Decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from coordinator.daemon.writer import Answer
from coordinator.operations.listing import Operation
from coordinator.service.answered import Once


class WaitingRequest:
    """A request for something to do (a task, a change), or a reading that waits for what it
    reads."""

    __slots__ = ("answer", "deadline", "gone", "once", "operation", "refusal", "request", "timer",
                 "token")

    def __init__(self, operation: Operation, request: Any, token: str | None, answer: Answer,
                 deadline: float, gone: Callable[[], bool], once: Once | None = None) -> None:
        self.operation = operation
        self.request = request
        self.token = token
        self.answer = answer
        self.deadline = deadline
        self.gone = gone
        self.once = once
        self.refusal: Any = None
        self.timer: asyncio.TimerHandle | None = None
