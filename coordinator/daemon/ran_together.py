"""Which commands ran when a file was changed: of several, nobody knows whose it was.

Owns what is remembered of commands, in memory: those that run, and those that ended a moment ago.
The kernel tells when a file was changed, and not by whom.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coordinator.rules.commands import may_mean

#: How long a command that has ended is remembered (ms), and how many are.
ENDED_MS, COMMANDS_MAX = 60_000, 1_000
#: The kernel's clock for files runs behind by a little (ms).
CLOCK_MS = 10


@dataclass(slots=True, eq=False)
class Ran:
    """A command: whose, from when to when (Unix ms; None: it runs), and its words."""

    owner: str
    began: int
    words: frozenset[str]
    ended: int | None = None


class RanTogether:
    """One daemon's. Used from the loop's thread.

    Args:
        confined: agents whose commands cannot write what others hold; they are not remembered.
    """

    def __init__(self, confined: Callable[[], list[str]] = list) -> None:
        self.confined = confined
        self._commands: deque[Ran] = deque(maxlen=COMMANDS_MAX)

    def begin(self, holder: str, owner: str, began: int, words: frozenset[str]) -> Ran:
        """A command is about to run."""
        while self._commands and (self._commands[0].ended or began) < began - ENDED_MS:
            self._commands.popleft()
        ran = Ran(owner, began, words)
        if not {holder, owner} & set(self.confined()):
            self._commands.append(ran)
        return ran

    def others(self, ran: Ran, path: str, holder: str, at: int | None, now: int) -> list[str]:
        """Who else may have changed this file, of which `holder` writes; `at`: when that was, if
        that is known. Nobody (an empty list) where this command alone names it."""
        rans = list(self._list_runs(ran, holder, at, now))
        naming = [other for other in rans if _names(other, path)]
        if naming or _names(ran, path):
            rans = naming
        return sorted({other.owner for other in rans})

    def _list_runs(self, ran: Ran, holder: str, at: int | None, now: int) -> Iterator[Ran]:
        first, last = (ran.began, now) if at is None else (at - CLOCK_MS, at + CLOCK_MS)
        if at is not None and not ran.began <= last:
            return  # it was changed before this command
        for other in self._commands:
            if (other.owner not in (ran.owner, holder) and other.began <= last
                    and (other.ended is None or other.ended >= first)):
                yield other


def _names(ran: Ran, path: str) -> bool:
    return any(may_mean(word, path) for word in ran.words)
