"""Access to the browser page: one-time codes, and the tokens that pages get for them.

A code is kept in this process alone. A page exchanges it once, within `CODE_VALID_S`, for a token
of its own. Tokens are kept nowhere: each is sealed with a key that is made for the first page. An
operator's page may do all that the operator may, and survives a kill: the next coordinator opens
the same port with the same key. If it cannot have that port, it deletes the key, and the page ends.
A coordinator that stops in order deletes the key, too.

A page of an agent only reads, and so does a page that the operator opens for reading. The rights of
these pages are kept in this process alone, so they end when it is killed. Another program may then
listen at the port, and must not receive a token. So a page first asks for a proof, which only the
owner of the key can give.

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

#: How long a code may wait for its page (seconds), and how many codes of one agent may wait.
CODE_VALID_S, CODES_MAX = 60.0, 16
#: Used codes that are remembered.
USED_MAX = 10_000
#: The beginning of a page's token. Agents' tokens have no dot.
PREFIX = "page."
#: The beginning of a reading page's name, which the seal of its token covers; and how many such
#: pages an agent, or the operator, may have at once.
READER, READERS_MAX = "~", 100
KEY_BYTES = 32


class Rights(NamedTuple):
    """What a page may do. `agent_token`: the token of the agent whose page it is; None for the
    operator's page."""

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
        """Make a code for one page. If too many codes of the same agent wait, the oldest ends."""
        self._drop_expired()
        own = [code for code, (_, waiting) in self._waiting.items()
               if waiting.agent_token == rights.agent_token]
        for code_digest in own[: max(0, len(own) + 1 - CODES_MAX)]:
            del self._waiting[code_digest]
        code = secrets.token_urlsafe(24)
        self._waiting[_digest(code)] = self._now() + CODE_VALID_S, rights
        return code

    def exchange(self, code: str) -> str:
        """Use up a code, and make the token of its page.

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
            own = self._list_readers(rights.agent_token)
            for earlier in own[: max(0, len(own) + 1 - READERS_MAX)]:
                del self._readers[earlier]
            self._readers[page] = rights
        return f"{PREFIX}{page}.{self._seal(page, self._read_key(make=True))}"

    def find_rights(self, token: str) -> Rights | None:
        """What the page with this token may do; None if it is no page of this coordinator."""
        if not token.startswith(PREFIX) or not token.isascii():
            return None
        page, _, seal = token.removeprefix(PREFIX).rpartition(".")
        key = self._read_key(make=False)
        if not page or not key or not hmac.compare_digest(seal, self._seal(page, key)):
            return None
        return self._readers.get(page) if page.startswith(READER) else OPERATOR

    def prove(self, page: str, challenge: str, port: int) -> str:
        """Prove to a page that this is its coordinator. The proof's key is the page's own seal, so
        it discloses nothing of another page.

        Args:
            page: the middle part of the page's token.
            port: where this coordinator listens; a proof for another port is worth nothing.

        Raises:
            Refusal: UNAUTHORIZED: no page of this coordinator is open.
        """
        key = self._read_key(make=False)
        if not key:
            raise Refusal(Code.UNAUTHORIZED, "No page of this coordinator is open. Nothing was "
                          "done.", next="`coord web` opens one.")
        message = f"coordinator {port} {challenge}"
        return hmac.digest(self._seal(page, key).encode(), message.encode(), "sha256").hex()

    def end(self) -> None:
        """Make all tokens and waiting codes invalid."""
        key, self._key = self._read_key(make=False), b""
        self._waiting.clear()
        self._readers.clear()
        # The file may be another coordinator's by now, with a key of its own.
        with contextlib.suppress(OSError, Refusal):
            if key and ownership.read(self._key_file) == key:
                self._key_file.unlink(missing_ok=True)

    def _end_pages(self, agent_token: str | None) -> None:
        """End the pages of an agent. For the operator (None) all pages end, for they share the key.
        """
        if agent_token is None:
            self.end()
            return
        for page in self._list_readers(agent_token):
            del self._readers[page]

    def _list_readers(self, agent_token: str | None) -> list[str]:
        """Names of the pages of an agent, or of the operator, that only read: the oldest first."""
        return [page for page, rights in self._readers.items()
                if rights.agent_token == agent_token]

    def _drop_expired(self) -> None:
        now = self._now()
        self._waiting = {code: entry for code, entry in self._waiting.items() if now < entry[0]}

    def _read_key(self, *, make: bool) -> bytes:
        """The key; empty if no page has got a token yet. `make`: make it then."""
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
