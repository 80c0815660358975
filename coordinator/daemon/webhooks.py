"""Delivering events to addresses. Each delivery is a step on disk, tried again until it is
answered.

The log holds the events. The requests to one address are made one after the other, those to several
at once, so a slow receiver delays nobody else. Delivery is at least once: after a crash in the
middle the same event is sent again with the same `id`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec

from coordinator.daemon import notifications
from coordinator.daemon.loop_engine import LoopEngine
from coordinator.daemon.webhook_delivery import Delivery, deliver
from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.kernel import blocked_steps
from coordinator.kernel.blocked_steps import STEPS
from coordinator.kernel.core import Service, ms
from coordinator.kernel.event_sentences import make_event_reply
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow, LogRow
from coordinator.words.refusals import Refusal

log = logging.getLogger("coord.webhooks")
#: Events that one transaction notes, and deliveries to one address that one round makes.
AT_ONCE = 100
#: Addresses that are told at the same time.
ADDRESSES_MAX = 32


class Webhooks:
    """One per daemon; used from the loop's thread only.

    Args:
        look: runs a reading of the committed state; a `Refusal` is a value.
    """

    def __init__(self, engine: LoopEngine, service: Service,
                 look: Callable[[Callable[[View], Any]], Any]) -> None:
        self._engine, self._service, self._look = engine, service, look
        self._settings = service.settings.webhooks
        self._at: int | None = None  # the last event that was looked at
        self._noting = False
        #: Addresses that are told now.
        self._sending: set[str] = set()
        self._threads = ThreadPoolExecutor(ADDRESSES_MAX, "coord-webhooks")
        self._secret = b""

    @property
    def wanted(self) -> bool:
        """Whether any address wants events."""
        return bool(self._settings.urls)

    def begin(self) -> None:
        """Go on after the last event that a delivery was noted for; at first, from now on."""
        def last(view: View) -> int:
            noted = view.value("webhook_last")
            return int(noted if noted is not None else (view.value("event_last") or 0))

        last_event = self._look(last)
        self._secret = _read_secret(StateDir(self._service.tree.root)) if self.wanted else b""
        self._at = last_event if isinstance(last_event, int) else None

    def events_came(self) -> None:
        """After a commit: note whom to tell of what."""
        if self._at is None or self._noting:
            return
        message = self._look(lambda view: view.each(
            LogRow, "events_after", self._at, None, None, None, None, AT_ONCE))
        if isinstance(message, Refusal) or not message:
            return
        own = self._look(lambda view: [row.seq for row in message if _of_webhook(view, row)])
        due = [(url, row) for row in message for url, kinds in self._settings.urls.items()
               if row.seq not in own and _wanted(row, kinds)]
        self._at = message[-1].seq
        if due:
            self._noting = True
            self._engine.task(self._engine.write(partial(self._note, due)), self._noted)
        elif len(message) == AT_ONCE:
            self.events_came()

    def tend(self) -> None:
        """Once a second: make the deliveries whose time has come."""
        due = self._look(self._list_due)
        for url, rows in {} if isinstance(due, Refusal) else due.items():
            self._sending.add(url)
            self._engine.task(self._send(rows), partial(self._sent, url))

    def _list_due(self, view: View) -> dict[str, list[BlockedStepRow]]:
        """The deliveries that are due, by address, without those that are under way."""
        oldest = view.each(BlockedStepRow, "steps_due", "webhook", view.now, AT_ONCE, None)
        urls = {*self._settings.urls, *(row.name for row in oldest)} - self._sending
        due = {url: view.each(BlockedStepRow, "steps_due", "webhook", view.now, AT_ONCE, url)
               for url in sorted(urls) if oldest}
        return {url: rows for url, rows in due.items() if rows}

    def _note(self, due: list[tuple[str, LogRow]], tx: Tx) -> None:
        for url, row in due:
            body = {"id": row.seq, "repository": self._service.root,
                    "event": msgspec.to_builtins(make_event_reply(row))}
            blocked_steps.put(self._service, tx, blocked_steps.NewStep(
                "webhook", url, msgspec.json.encode(body), None,
                attempts_max=self._settings.attempts_max, event=row.seq))

    def _noted(self, value: Any) -> None:
        self._noting = False
        self.events_came()  # more may have come meanwhile
        self.tend()

    def _sent(self, url: str, value: Any) -> None:
        self._sending.discard(url)

    async def _send(self, rows: list[BlockedStepRow]) -> None:
        until_ms = ms(self._settings.timeout_s) * 2
        for row in rows:
            begun = await self._engine.write(partial(blocked_steps.begin, row.step_id, until_ms))
            if isinstance(begun, Refusal):
                continue
            body = await self._engine.read(partial(_body, row.content))
            delivery = Delivery(row.name, body or b"null", row.step_id, row.attempts + 1)
            why = await asyncio.get_running_loop().run_in_executor(self._threads, partial(
                deliver, delivery, self._secret, self._settings.timeout_s))

            def end(tx: Tx, row: BlockedStepRow = row, why: Any = why) -> None:
                now = STEPS.find(tx, row.step_id)
                if why is None:
                    STEPS.move(tx, now, "finish")
                else:
                    STEPS.fail(self._service, tx, now, str(why))

            await self._engine.write(end)


def _read_secret(state: StateDir) -> bytes:
    """The secret of the signatures, made at first.

    Raises:
        OSError. Refusal: FOREIGN.
    """
    ownership.make_once(state.webhook_secret, secrets.token_hex(32).encode())
    return (ownership.read(state.webhook_secret) or b"").strip()


def _body(content: str, view: View) -> bytes | None:
    return view.blob(content)


def _wanted(row: LogRow, kinds: list[str]) -> bool:
    if kinds:
        return row.kind in kinds or "*" in kinds
    return notifications.waits(row)


def _of_webhook(view: View, row: LogRow) -> bool:
    """Whether it tells of a delivery: to tell of that would never end."""
    step = msgspec.json.decode(row.data).get("step") if row.kind.startswith("step") else None
    blocked_step = view.first(BlockedStepRow, "step_get", step) if step is not None else None
    return row.kind == "steps_forgotten" or (
        blocked_step is not None and blocked_step.kind == "webhook")
