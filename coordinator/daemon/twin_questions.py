"""Recognising one event that two hooks report: one of the agent's settings and one of a plugin.

With both, each call would be leased twice, and each message and each end would count twice. So the
first hook is served. The second prints the refusal of the first, if there is one, and nothing else.
Questions are remembered for seconds, in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from coordinator.daemon.hook_protocol import Answer

Told = Callable[[Answer], None]
#: The end of a profile's name in the question of a plugin's hook.
PLUGIN = "+plugin"
#: How long after the answer the other hook's question is still the same event (ms). Both hooks
#: start at once, but a slow machine may be late with one of them.
TWIN_MS = 20_000
#: Questions that are remembered.
ASKED_MAX = 500


@dataclass(slots=True)
class _Asked:
    doors: set[str]
    waiting: list[Told] = field(default_factory=list)
    answer: Answer | None = None
    at: int = 0


class TwinQuestions:
    """The questions of one daemon's hooks. Used in the loop's thread. `now_ms`: Unix ms."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._asked: dict[bytes, _Asked] = {}

    def ask(self, name: str, token: str | None, payload: bytes,
            answer: Told) -> tuple[str, Told | None]:
        """The name without the plugin's mark, and what to call with the answer. That is None if the
        other hook has asked this already: `answer` then gets the other's result."""
        profile, _, event = name.partition(":")
        door = PLUGIN if profile.endswith(PLUGIN) else ""
        name = profile.removesuffix(PLUGIN) + (f":{event}" if event else "")
        data = blake2b(payload, digest_size=16).digest()
        key = b"\0".join((data, name.encode("utf-8", "replace"),
                          (token or "-").encode("utf-8", "replace")))
        asked = self._asked.get(key)
        if asked is not None and door not in asked.doors and self._is_new(asked):
            asked.doors.add(door)
            if asked.answer is not None:
                answer(_same(asked.answer))
            else:
                asked.waiting.append(answer)
            return name, None
        self._forget()
        asked = self._asked[key] = _Asked({door})
        return name, lambda reply: self._answered(asked, reply, answer)

    # ------------------------------------------------------------ inside

    def _answered(self, asked: _Asked, reply: Answer, answer: Told) -> None:
        asked.answer, asked.at = reply, self._now_ms()
        waiting, asked.waiting = asked.waiting, []
        answer(reply)
        for twin in waiting:
            twin(_same(reply))

    def _is_new(self, asked: _Asked) -> bool:
        return asked.answer is None or self._now_ms() - asked.at <= TWIN_MS

    def _forget(self) -> None:
        """Forget the oldest questions; unanswered ones stay."""
        for key, asked in list(self._asked.items())[: max(0, len(self._asked) - ASKED_MAX + 1)]:
            if asked.answer is not None:
                del self._asked[key]


def _same(answer: Answer) -> Answer:
    """What the other hook prints: a refusal again, otherwise nothing."""
    return Answer(answer.code, answer.out,
                  answer.err) if answer.code or '"deny"' in answer.out else Answer(0)

