"""What could not be done now is tried again after a rest, and is a dead letter in the end.

Each kind has attempts, a rest between them and a limit. It keeps a table, events and words of its
own: a subclass tells what they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from coordinator.kernel.core import Actor, Service, ms
from coordinator.kernel.holders import notices
from coordinator.kernel.json_values import NULL
from coordinator.kernel.unknown_ids import find_by_id
from coordinator.looking.facts import AnyNeed
from coordinator.rules import retrying as rule
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import BlockedStepRow, ChangeRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import counted, quoted

#: How long what is closed is kept (ms): as long as an idempotency key counts.
KEPT_MS = 86_400_000
#: Who acts where a person does and gives no name.
PERSON = "a person"
#: Rows that are forgotten at once.
FORGOTTEN_MAX = 1000

Kept = TypeVar("Kept")
Row = TypeVar("Row", bound=BlockedStepRow | ChangeRow)


class Page(NamedTuple):
    """Where a list of dead letters begins: after this one; and how many are wanted."""

    since: str
    name: str
    limit: int


class DeadKind(ABC, Generic[Kept]):
    """One kind of dead letters. `prefix`: what its ids begin with. A row has a `state`."""

    prefix: str

    @abstractmethod
    def list_newest(self, view: View, page: Page, kind: str | None) -> list[Kept]:
        """The newest dead of them; `kind`: only these."""

    @abstractmethod
    def find(self, view: View, text: str) -> Kept:
        """The row with this id.

        Raises:
            Refusal: UNKNOWN_TASK, UNKNOWN_CHANGE, UNKNOWN_STEP.
        """

    @abstractmethod
    def describe(self, view: View, row: Kept, whole: bool = False) -> rq.DeadLetter:
        """What is told of it; `whole`: with its content."""

    def list_needs(self, row: Kept) -> list[AnyNeed]:
        """What to look at before it is tried again."""
        return []

    @abstractmethod
    def retry(self, svc: Service, tx: Tx, actor: Actor, row: Kept) -> None:
        """A person lets it be tried again, from its first attempt on."""

    @abstractmethod
    def drop(self, tx: Tx, row: Kept) -> None:
        """A person gives it up."""


class About(NamedTuple):
    """What is told of a row. `agent`: who asked for it, and hears what becomes of it; `called`:
    how a sentence goes on after its id; `facts`: what a notice has besides."""

    id: str
    kind: str
    what: str
    agent: str | None
    called: str
    facts: dict[str, str]


class RetryQueue(DeadKind[Row]):
    """One kind that is given out, and tried again until it is done or dead."""

    noun: str  # what one of them is called
    late: str  # the statement that lists those whose attempt lasts too long
    old: str  # the statement that lists those that were closed before an instant
    unknown: Code  # the refusal of an id that none of them has
    transitions: rule.Transitions
    forgotten: Callable[[list[str]], ev.Event]  # the event that these are kept no longer
    shown_by: str  # what shows them, where a transition is refused
    dead_text: str  # what is told of one that is dead
    dropped_text: str  # what is told of one that a person gave up
    unharmed: str  # what a refused answer has left as it was
    person: str | None = None  # how a person who acts is named in the log
    rest_part = 1  # so many times shorter than a task's is its rest
    jitter = 0.0  # see `rules.retrying.rest_ms`

    @abstractmethod
    def get(self, view: View, name: str) -> Row | None:
        """The row of exactly this id."""

    @abstractmethod
    def sum_up(self, row: Row) -> About:
        """What is told of it."""

    @abstractmethod
    def make_moved(self, row: Row, *, why: str, **fields: Any) -> ev.Event:
        """The event of a transition."""

    def find(self, view: View, text: str) -> Row:
        return find_by_id(lambda name: self.get(view, name), text, self.prefix[0], self.noun,
                          self.unknown)

    def describe(self, view: View, row: Row, whole: bool = False) -> rq.DeadLetter:
        about = self.sum_up(row)
        text = view.blob(row.content) if whole else None
        return rq.DeadLetter(
            id=about.id, kind=about.kind, what=about.what, agent=about.agent,
            attempts=row.attempts, why=row.why, since=row.closed_at or row.asked_at,
            content=msgspec.Raw(text) if text is not None else NULL,
        )

    def tell(self, tx: Tx, row: Row, text: str) -> None:
        """Have whoever asked for it hear what became of it."""
        about = self.sum_up(row)
        if about.agent is not None:
            notices.post(tx, about.agent, self.noun, f"{about.id}{about.called} {text}",
                         **{self.noun: about.id}, **about.facts)

    def move(self, tx: Tx, row: Row, verb: str, *, why: str = "", **fields: Any) -> None:
        """Take a row through one transition: giving it begins an attempt, retrying it the count
        anew. `fields`: what else may change, and who does it (`agent`), as its event has it; what
        is not named is empty afterwards.

        Raises:
            Refusal: BAD_TRANSITION.
        """
        state = self.transitions.get((row.state, verb))
        if state is None:
            raise Refusal(
                Code.BAD_TRANSITION, f"{self.sum_up(row).id} is {row.state}, which allows no "
                f"`{verb}`. It stays as it is.", next=self.shown_by, state=row.state,
            )
        attempts = 0 if verb == "retry" else row.attempts + (verb == "give")
        tx.record(self.make_moved(row, state=state, attempts=attempts, why=why, **fields))
        tx.effects.offers = True  # whoever waits for one, or for its end, looks again

    def fail(self, svc: Service, tx: Tx, row: Row, why: str, *, agent: str | None = None) -> None:
        """An attempt is over without success: it rests and is tried again, or is dead."""
        rest = rule.rest_after_failure(self.sum_up(row).id, row.attempts, row.attempts_max,
                                       read_limits(svc, self.rest_part, self.jitter))
        if rest is None:
            self.give_up(tx, row, why, agent=agent)
        else:
            self.move(tx, row, "fail", agent=agent, why=why, not_before=tx.later(rest))

    def give_up(self, tx: Tx, row: Row, why: str, *, agent: str | None = None) -> None:
        """It cannot work, whatever is tried, or was tried too often: a dead letter."""
        self.move(tx, row, "exhaust", agent=agent, why=why)
        self.tell(tx, row, self.dead_text.format(
            attempts=row.attempts, counted=counted(row.attempts, "attempt"), why=quoted(why, 500)))

    def end_late(self, svc: Service, tx: Tx) -> None:
        """End the attempts whose time is over: whoever was given them hangs, or has gone."""
        for row in [self.find(tx, name) for name in tx.values(self.late, tx.now)]:
            self.fail(svc, tx, row, f"{row.given_to} did not answer in time")

    def forget_old(self, tx: Tx) -> None:
        """Forget what was closed a day ago. What is dead stays until a person acts."""
        old = tx.values(self.old, tx.later(-KEPT_MS), FORGOTTEN_MAX)
        if old:
            tx.record(self.forgotten(old))

    def retry(self, svc: Service, tx: Tx, actor: Actor, row: Row) -> None:
        self.move(tx, row, "retry", agent=self.person, why="put back by a person")

    def drop(self, tx: Tx, row: Row) -> None:
        self.move(tx, row, "drop", agent=self.person, why="given up by a person")
        self.tell(tx, row, self.dropped_text)

    def check_attempt(self, row: Row, attempt: int, *, begin: str, go_on: str) -> None:
        """Whether this attempt is the one that somebody is at now. `begin`, `go_on`: what to do
        about one that was never begun, or is over.

        Raises:
            Refusal: STALE_TOKEN.
        """
        name = self.sum_up(row).id
        if attempt > row.attempts:
            last = f"the last was {row.attempts}" if row.attempts else "it was not given yet"
            raise Refusal(Code.STALE_TOKEN, f"There was no attempt {attempt} of {name}: {last}. "
                          f"{self.unharmed}", next=begin)
        if row.given_to is None or row.attempts != attempt:
            raise Refusal(
                Code.STALE_TOKEN, f"Attempt {attempt} of {name} is over: its time had passed, or "
                f"it was asked for again; attempt {row.attempts} is the last. {self.unharmed}",
                next=go_on)


def read_limits(svc: Service, part: int = 1, jitter: float = 0.0) -> rule.Limits:
    """How long something rests between attempts: so many times shorter than a task."""
    limits = svc.settings.backlog
    return rule.Limits(ms(limits.backoff_s) // part, ms(limits.backoff_max_s), jitter)
