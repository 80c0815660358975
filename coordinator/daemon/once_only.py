"""Carrying out a request of several transactions once under an idempotency key.

A request of one transaction keeps its answer in that transaction: see `kernel.answered`. A request
of several keeps it in the last one, or in a later one if it is not known which is the last. A
second request under the same key waits for the answer. The module itself carries out no request.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from coordinator.daemon.writer import Answer, Writer
from coordinator.kernel import answered
from coordinator.kernel.answered import Once
from coordinator.kernel.core import Actor, Service, token_hash
from coordinator.kernel.use_cases import Write
from coordinator.kernel.writing import journal
from coordinator.store.ledger import Tx, View
from coordinator.words.refusals import HELD, Code, Refusal


class Later:
    """The place to answer a request that is carried out under an idempotency key."""

    def __init__(self, note: Callable[[Tx, Any], None], begun: Callable[[Tx, str], None],
                 over: Callable[[Any, bool], None]) -> None:
        self._note, self._over = note, over
        #: Called in the transaction from which on the request's files are written, with the name
        #: of that writing. After a crash the writing is finished, and `take_up` answers requests.
        self.begun = begun
        self._noted = False

    def note(self, tx: Tx, value: Any) -> None:
        """Keep the answer in the transaction that made it."""
        self._note(tx, value)
        self._noted = True

    def __call__(self, value: Any) -> None:
        """Answer the request, which was carried out or refused."""
        self._over(value, self._noted)


class OnceOnly:
    """The requests under keys of one daemon. Used in the loop's thread only."""

    def __init__(self, service: Service, look: Callable[[Callable[[View], Any]], Any],
                 writer: Writer) -> None:
        self._service, self._look, self._writer = service, look, writer
        #: (asker, key) -> the request, and the answers that wait for its end.
        self._going: dict[tuple[str | None, str], tuple[Once, list[Answer]]] = {}

    def begin(self, once: Once, token: str | None, answer: Answer) -> Later | None:
        """The place to answer a new request. None if the same request was carried out, or is being
        carried out: `answer` then gets its answer."""
        earlier = self._look(lambda view: self._find_answer(view, once, token))
        if isinstance(earlier, Refusal):
            answer(earlier)
            return None
        asker, earlier_answer = earlier
        if earlier_answer is not None:
            answer(earlier_answer)
            return None
        place = asker, once.key
        going = self._going.get(place)
        if going is not None:
            if going[0] != once:
                answer(Refusal(Code.CONFLICT, "Another request with this idempotency key is being "
                               "carried out. Nothing was done."))
            else:
                going[1].append(answer)
            return None
        self._going[place] = once, [answer]
        return Later(partial(self._note, place), partial(self._begun, place),
                     partial(self._over, place))

    def take_up(self, written: str) -> Answer:
        """The place to answer requests that a crash interrupted while their files were written
        under this name. A repeated request waits for it."""
        asked = self._look(lambda view: answered.awaited(view, written))
        places = []
        for asker, once in asked if isinstance(asked, list) else ():
            place = asker or None, once.key
            if place not in self._going:
                self._going[place] = once, []
                places.append(place)

        def over(value: Any) -> None:
            for place in places:
                self._tell(place, value)

        return over

    def _find_answer(self, view: View, once: Once, token: str | None) -> tuple[str | None, Any]:
        row = view.agent_of(token_hash(token)) if token is not None else None
        asker = row.agent if row is not None else None
        return asker, answered.find_answer(self._service, view, asker, once)

    def _note(self, place: tuple[str | None, str], tx: Tx, value: Any) -> None:
        answered.note(tx, place[0], self._going[place][0], value)

    def _begun(self, place: tuple[str | None, str], tx: Tx, written: str) -> None:
        answered.wait(tx, place[0], self._going[place][0], written)

    def _over(self, place: tuple[str | None, str], value: Any, noted: bool) -> None:
        if not (noted or isinstance(value, Refusal)):
            # The request was carried out, even if its answer cannot be recorded.
            self._writer.submit(partial(self._note, place, value=value),
                                lambda _: self._tell(place, value))
            return
        self._tell(place, value)

    def _tell(self, place: tuple[str | None, str], value: Any) -> None:
        for answer in self._going.pop(place)[1]:
            answer(value)


def decide_once(svc: Service, tx: Tx, actor: Actor, step: Write, once: Once) -> Any:
    """The value of a step under an idempotency key, which is kept in the transaction; or the answer
    that was kept before."""
    before = answered.find_answer(svc, tx, actor.agent, once)
    if before is not None:
        return before
    tx.once = once.key
    try:
        value = step.decide(tx, actor)
    finally:
        tx.once = None
    if not isinstance(value, Refusal):
        answered.note(tx, actor.agent, once, value)
    elif (step.queues and value.code in HELD
            and (place := value.facts.get("acquisition_id")) is not None):
        answered.wait(tx, actor.agent, once, place)
    return value


def note_later(tx: Tx, later: Later, step: Write, value: Any) -> Any:
    """Keep the value of a step of a request that has an idempotency key and several transactions,
    where it is the answer."""
    if not isinstance(value, Refusal):
        begun = journal.begun_by(value)
        if step.last:
            later.note(tx, value)
        elif begun is not None:
            later.begun(tx, begun)
    return value
