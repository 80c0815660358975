"""Access to the browser page: one-time codes, and the tokens that pages get for them.

A code is kept in this process alone. It is good for one exchange within `CODE_VALID_S`. A token
belongs to one page and speaks for the operator. Tokens are kept nowhere: each is sealed with a key
that is made for the first page and is deleted when the coordinator ends in order. After a kill the
door opens again at the same port with the same key, so open pages continue. If another program
listens there by then, they end.

A program that listens at the port of a killed coordinator must not receive a token. So a page first
asks for a proof, which only the owner of the key can give. A page may only read, for the operator
or for an agent. What a page may see is kept in this process alone, so such a page ends with a
killed coordinator.

A code reaches the browser as a program's argument, which other users of the machine can list. A
code that comes a second time may have been read there. So it ends every page of the operator, or of
the agent, that asked for it. Codes of one agent never displace those of another.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from coordinator.files import ownership
from coordinator.words.refusals import Code, Refusal

#: How long a code may wait for its page (seconds), and how many of one asker may wait at once.
CODE_VALID_S, CODES_MAX = 60.0, 16
#: Codes that are remembered as used, the newest.
USED_MAX = 10_000
#: The beginning of a page's token. Agents' tokens have no dot.
PREFIX = "page."
#: The beginning of the middle part of a reader's token, which its seal covers; and how many pages
#: of one asker may read at once.
READER, READERS_MAX = "~", 100
KEY_BYTES = 32


class Rights(NamedTuple):
    """What a page may do. `agent_token`: that of the agent that it speaks for; None for the
    operator."""

    agent_token: str | None = None
    reads_only: bool = False


OPERATOR = Rights()


class PageAccess:
    """Codes and tokens of one coordinator.

    Args:
        key_file: where the key is kept while the coordinator lives (0600).
        now: seconds of a clock that only goes forward.
    """

    def __init__(self, key_file: Path, now: Callable[[], float]) -> None:
        self._key_file = key_file
        self._now = now
        self._waiting: dict[bytes, tuple[float, Rights]] = {}
        self._readers: dict[str, Rights] = {}
        self._used: dict[bytes, Rights] = {}
        self._key = b""

    def make_code(self, rights: Rights = OPERATOR) -> str:
        """A code for one page. If too many codes of this asker wait, the oldest becomes invalid."""
        self._drop_expired()
        own = [code for code, (_, waiting) in self._waiting.items()
               if waiting.agent_token == rights.agent_token]
        for code_digest in own[: max(0, len(own) + 1 - CODES_MAX)]:
            del self._waiting[code_digest]
        code = secrets.token_urlsafe(24)
        self._waiting[_digest(code)] = self._now() + CODE_VALID_S, rights
        return code

    def exchange(self, code: str) -> str:
        """A page's token for its code, which is used up.

        Raises:
            OSError: the key cannot be kept.
            Refusal: UNAUTHORIZED: the code was used, is too old, or was never given.
        """
        self._drop_expired()
        digest = _digest(code)
        if digest in self._used:
            self._end_pages(self._used[digest].agent_token)
            raise Refusal(
                Code.UNAUTHORIZED, "This page's code was used before. Nothing was opened, and all "
                "pages of whoever had asked for it were ended, in case somebody else had used it.",
                next="`coord web` opens the page with a fresh code.")
        waiting = self._waiting.pop(digest, None)
        if waiting is None:
            raise Refusal(
                Code.UNAUTHORIZED, "This page's code is unknown here, or older than "
                f"{CODE_VALID_S:g} seconds. Nothing was opened.",
                next="`coord web` opens the page with a fresh code.")
        page, (_, rights) = secrets.token_urlsafe(16), waiting
        self._used[digest] = rights
        if len(self._used) > USED_MAX:
            del self._used[next(iter(self._used))]
        if rights != OPERATOR:
            page = f"{READER}{page}"
            own = self._readers_of(rights.agent_token)
            for earlier in own[: max(0, len(own) + 1 - READERS_MAX)]:
                del self._readers[earlier]
            self._readers[page] = rights
        return f"{PREFIX}{page}.{self._seal(page, self._kept_key(make=True))}"

    def find_rights(self, token: str) -> Rights | None:
        """What the page with this token may do; None if it is no page of this coordinator."""
        if not token.startswith(PREFIX) or not token.isascii():
            return None
        page, _, seal = token.removeprefix(PREFIX).rpartition(".")
        key = self._kept_key(make=False)
        if not page or not key or not hmac.compare_digest(seal, self._seal(page, key)):
            return None
        return self._readers.get(page) if page.startswith(READER) else OPERATOR

    def prove(self, page: str, challenge: str, port: int) -> str:
        """The proof, for a page's challenge, that this is its coordinator. The page's own seal is
        the key, so nothing of another page is disclosed.

        Args:
            page: the middle part of the page's token.
            port: where this coordinator listens; a proof for another port is worth nothing.

        Raises:
            Refusal: UNAUTHORIZED: no page of this coordinator is open.
        """
        key = self._kept_key(make=False)
        if not key:
            raise Refusal(Code.UNAUTHORIZED, "No page of this coordinator is open. Nothing was "
                          "done.", next="`coord web` opens one.")
        message = f"coordinator {port} {challenge}"
        return hmac.digest(self._seal(page, key).encode(), message.encode(), "sha256").hex()

    def end(self) -> None:
        """No token that was given is worth anything from now on."""
        key, self._key = self._kept_key(make=False), b""
        self._waiting.clear()
        self._readers.clear()
        # Another coordinator may be here now, with a key of its own.
        with contextlib.suppress(OSError, Refusal):
            if key and ownership.read(self._key_file) == key:
                self._key_file.unlink(missing_ok=True)

    def _end_pages(self, agent_token: str | None) -> None:
        """End the pages of one asker; None ends those of the operator, and so all."""
        if agent_token is None:
            self.end()
            return
        for page in self._readers_of(agent_token):
            del self._readers[page]

    def _readers_of(self, agent_token: str | None) -> list[str]:
        """Pages of one asker that only read, the oldest first."""
        return [page for page, rights in self._readers.items()
                if rights.agent_token == agent_token]

    def _drop_expired(self) -> None:
        now = self._now()
        self._waiting = {code: kept for code, kept in self._waiting.items() if now < kept[0]}

    def _kept_key(self, *, make: bool) -> bytes:
        """The key in force; empty where no page has entered yet."""
        if not self._key:
            if make:
                ownership.make_once(self._key_file, os.urandom(KEY_BYTES))
            with contextlib.suppress(OSError, Refusal):
                self._key = ownership.read(self._key_file) or b""
        return self._key

    @staticmethod
    def _seal(page: str, key: bytes) -> str:
        return hmac.digest(key, page.encode(), "sha256").hex()


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "surrogateescape")).digest()
