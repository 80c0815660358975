"""A request that takes several transactions, and work beside them: its parts, in order.

A `Course` asks its driver for each part (`Aside`: beside the loop, `Write`: in a transaction), so
that the daemon and the tests run the same. Carries nothing out itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from coordinator.looking.facts import AnyNeed, Looked
from coordinator.service.core import Actor
from coordinator.store.ledger import Tx, View


class Beside(Protocol):
    """What a part that runs beside the loop is given."""

    view: View
    """On a connection of its own."""

    def report(self, job: Callable[[Tx], Any]) -> None:
        """Have this written down soon; nobody waits for it."""

    def halted(self) -> bool:
        """Whether the coordinator is about to stop."""

    def piece(self) -> AbstractContextManager[object]:
        """A piece of the work on the disk is done in it; a rest may follow (`files.pace`)."""


class Aside(NamedTuple):
    """A part that looks at the disk, or writes to it: for a worker."""

    run: Callable[[Beside], Any]


class Look(NamedTuple):
    """A part that looks at these before anything is decided; answers a `Looked`."""

    needs: Sequence[AnyNeed]


class Write(NamedTuple):
    """A part that is a transaction. `last`: what it gives is the answer to the whole, which is
    noted in the same transaction where the request has an idempotency key."""

    job: Callable[[Tx], Any]
    last: bool = False


class AsWho(NamedTuple):
    """The same where it matters who asks. It goes by `looked`, and by what it looks at itself."""

    job: Callable[[Tx, Actor], Any]
    looked: Looked | None = None
    last: bool = False


class Pause(NamedTuple):
    """Nothing, for so long (seconds)."""

    seconds: float


#: Asks for its parts one after the other, is given what each answered (a `Refusal` too), and
#: returns the answer to the whole.
Part = Aside | Look | Write | AsWho | Pause
Course = Generator[Part, Any, Any]
