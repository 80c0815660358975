"""A retry queue on disk for postponed steps: a blocked program puts them in, a worker runs them.

    queue = StepQueue(client)
    with acquire_agent_lock(user_id, client=client, step="book", arguments={…},
                            on_blocked=queue.put):
        …

    StepQueue(client).run({"book": book})       # in this process or another

The coordinator keeps each step and gives it out when its time has come and its keys are free. After
each failed attempt the step rests longer, and at last it becomes a dead letter (`coord dead list`).
The module owns the worker's loop. A step may run twice, because a worker may die after it, so it
must be a step that may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from coordinator.client.asking import json
from coordinator.client.client import Client
from coordinator.client.owner import ASK_S, WorkLoop
from coordinator.frameworks.postponing import StepPostponed
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: How many characters of a failure are reported.
WHY_CHARS_MAX = 500


class StepQueue:
    """Postponed steps of one client's repository.

    Args:
        client: the agent that puts steps off, or runs them.
        attempts: the number after which a step is a dead letter.
        give: how long one attempt may take (seconds) before another is due.
    """

    def __init__(self, client: Client, *, attempts: int = 10, give: float = 60.0) -> None:
        self._client, self._attempts, self._give = client, attempts, give
        self._loop = WorkLoop(client)

    def put(self, step: StepPostponed, /) -> None:
        """Keep a step (`on_blocked=queue.put`).

        Raises:
            Refusal: INVALID: it has no name, or its arguments are no JSON; LIMIT.
        """
        if not step.step or step.arguments is None:
            raise Refusal(
                Code.INVALID, "A step without a name, or with arguments that are no JSON, cannot "
                "be run by anybody later. It was not kept.",
                next="Give `step=` and `arguments=` when you ask for the lease.",
            )
        self._client.call(rq.StepAdd(
            agent=self._client.name(), name=step.step, resources=list(step.resources),
            arguments=json(step.arguments, "arguments"),
            delay_s=step.retry_after_s, attempts_max=self._attempts,
            why=step.refusal.message[:WHY_CHARS_MAX]))

    def stop(self) -> None:
        """From another thread: end after the running step, a moment later. A wait for a step ends
        at once with the client's `hang_up` after it."""
        self._loop.stop()

    def run(self, functions: Mapping[str, Callable[..., Any]], *, wait: float | None = None) -> int:
        """Run steps of these names, each with its arguments, until `stop()`. Returns how many were
        done. An attempt that ends too late does not count: the step is run again, or was by
        another.

        Args:
            wait: end when none has come for so long (seconds); default: never.

        Raises:
            Refusal: SHUTTING_DOWN, DAEMON_DOWN: the coordinator ended, and no other could be
                reached.
        """
        names, done = list(functions), 0

        def ask(mark: int) -> rq.Step:
            return self._client.call(rq.StepNext(
                agent=self._client.name(), names=names, wait_s=ASK_S if wait is None else wait,
                give_s=self._give), mark=mark)

        for step in self._loop.pieces(ask, while_any=wait is not None):
            done += self._serve(functions[step.name], step)
        return done

    def _serve(self, function: Callable[..., Any], step: rq.Step) -> int:
        agent = self._client.name()
        try:
            function(**(msgspec.json.decode(step.content) or {}))  # (null: it has none)
        except Exception as failed:
            why = f"{type(failed).__name__}: {failed}"[:WHY_CHARS_MAX]
            self._answer(rq.StepFail(agent=agent, step=step.step, attempt=step.attempts, why=why))
            return 0
        return self._answer(rq.StepDone(agent=agent, step=step.step, attempt=step.attempts))

    def _answer(self, answer: rq.StepDone | rq.StepFail) -> int:
        """Whether it counted, 1 or 0: one that comes too late changes nothing."""
        try:
            self._client.call(answer)
        except Refusal as refusal:
            if refusal.code not in (Code.STALE_TOKEN, Code.BAD_TRANSITION):
                raise
            return 0
        return 1
