"""When a launched agent rests, and for how long: its model failed, or its provider's limit is
reached.

The coordinator decides about its task meanwhile (`slices/backlog/limit_reached`).
"""

from __future__ import annotations

import time

from coordinator.dialects.limits import LimitTable, rest_asked
from coordinator.launch.attempt import Ended
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock
from coordinator.words.refusals import Code, Refusal

#: How many failures of its model in a row stop an agent; until then it rests, at most so long (s).
SETBACKS_MAX = 6
REST_MAX_S = 300.0


class Resting:
    """One worker's. `setbacks`: how often its model failed in a row. `why`: how its provider said
    that the limit is reached."""

    def __init__(self, table: LimitTable | None) -> None:
        self.setbacks = 0
        self.why = ""
        self._table = table
        self._over_at = 0.0

    @property
    def left_s(self) -> float:
        """For how many seconds more its provider gives it nothing."""
        return max(0.0, self._over_at - time.monotonic())

    @property
    def doing(self) -> str:
        """Its rest in words, for the display; empty if it does not rest."""
        left = self.left_s
        return f"resting {left / 60:.0f} min: its provider's limit" if left else ""

    def begins(self, ended: Ended, output: str) -> bool:
        """Whether an attempt ended because its provider's limit is reached: then it rests from now
        on. An agent that mentions limits while its work continues, or succeeds, does not count."""
        if ended.ok or ended.how != "exited":
            return False
        message = ended.told
        text = output if message is None else (
            f"{message.result}\n{message.model_error}\n{ended.why}")
        asked = rest_asked(self._table, text, SystemClock().now_ms())
        if asked is None:
            return False
        rest_s, self.why = asked
        self._over_at = time.monotonic() + rest_s
        return True

    def told(self, agent: str, output: str) -> rq.LimitReached:
        """Return the report to the coordinator."""
        return rq.LimitReached(agent=agent, for_s=max(0.1, self.left_s), note=self.why,
                               log_tail=output)

    def after_setback(self, first_s: float) -> float:
        """Return how many seconds to wait after its model failed, longer each time.

        Raises:
            Refusal: LIMIT: it failed so often that going on makes no sense.
        """
        self.setbacks += 1
        if self.setbacks >= SETBACKS_MAX:
            raise Refusal(
                Code.LIMIT, f"its model failed {self.setbacks} times in a row; it stops. Its "
                "tasks stay in the backlog.", next="Check the model's key and server.",
            )
        return min(first_s * 2.0 ** (self.setbacks - 1), REST_MAX_S)
