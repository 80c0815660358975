"""Does a commit, or what is taken into git's index, concern nobody else? Answered at once.

A git that agents run, and git's hooks of commits, ask this before anything else: sh and a bare
interpreter do it in a fraction of what the whole check (git_guard/) takes to start. "No" is never
said here: wherever others hold something of it, or the question is not a plain one, the whole check
is asked for, which weighs it and has the words.

    TOP NUL SUBCOMMAND NUL <what git says that it would take in> NUL <git's exit code>
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

import msgspec

from coordinator.daemon.hook_protocol import Answer
from coordinator.daemon.request_router import RequestRouter
from coordinator.rules import git_listings
from coordinator.words import requests as rq

log = logging.getLogger("coord.git")
#: The codes of an answer: nobody else's; the whole check has to tell.
NOBODYS, WEIGH = 0, 20
#: Files of one question.
FILES_MAX = 500
#: How what git says is read, and with which codes it has then said all: 1 is "nothing to commit",
#: and "some of these are ignored".
_READERS: dict[bytes, Callable[[bytes], list[str]]] = {
    b"add": git_listings.added, b"rm": git_listings.added, b"pre-commit": git_listings.staged,
    b"commit": lambda data: git_listings.committed(data)[0],
}
_ENDED = {b"add": (b"0", b"1"), b"rm": (b"0",), b"commit": (b"0", b"1"), b"pre-commit": (b"0",)}
_encode = msgspec.json.Encoder().encode


class GitQuestions:
    """One daemon's. Used from the loop's thread."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    def ask(self, token: str | None, payload: bytes, answer: Callable[[Answer], None],
            caller: int) -> None:
        """Answer one; `caller` is the process that asks."""
        paths = self._paths(payload)
        if paths is None:
            answer(Answer(WEIGH))
            return

        def held(value: Any) -> None:
            if isinstance(value, rq.GuardHeldList) and not value.items:
                answer(Answer(NOBODYS))
            elif isinstance(value, rq.GuardHeldList) and value.agent is None:
                self._router.ask("agent_of_process", _encode({"pid": caller}), None, known)
            else:
                answer(Answer(WEIGH))

        def known(value: Any) -> None:
            agent = value.agent if isinstance(value, rq.ProcessesAgent) else None
            if agent is None:
                answer(Answer(WEIGH))
            else:
                self._check(paths, agent, None, held)

        self._check(paths, None, token, held)

    def _check(self, paths: list[str], agent: str | None, token: str | None,
               then: Callable[[Any], None]) -> None:
        asked = rq.GuardCheck(paths=paths, agent=agent)
        self._router.ask("guard_check", _encode(asked), token, then)

    def _paths(self, payload: bytes) -> list[str] | None:
        """The absolute names of what would be taken in; None: that is not for here to tell."""
        head, _, code = payload.rpartition(b"\0")
        top, name, data = [*head.split(b"\0", 2), b"", b""][:3]
        tree = self._router.service.tree
        root = os.fsdecode(top)
        if root != str(tree.root) and root not in tree.worktrees():
            return None  # another repository's, or one that reaches further than this one
        read = _READERS.get(name)
        if read is None or code not in _ENDED[name]:
            return None  # git was cut off, or could not tell: what it said is not all
        try:
            paths = [f"{root}/{file}" for file in read(data)]
            for path in paths:
                path.encode()
        except ValueError:  # (a name that is not UTF-8, too)
            return None
        return paths if len(paths) <= FILES_MAX else None
