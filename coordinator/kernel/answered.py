"""Keeping answers, so that a request with an idempotency key takes effect once.

A client whose connection broke does not know whether its request was carried out. It sends the
request again under the same key and gets the first answer. The answer is kept for a day, in the
transaction of the request itself, or of the grant for a queued one. It is kept beside the log,
because it belongs to the conversation and not to the state. Secrets are not kept: lease tokens and
an agent's own token are derived again from the coordinator's secret.

The header and its rules follow the IETF draft "The Idempotency-Key HTTP Header Field".
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from coordinator.kernel.core import Service
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import Row
from coordinator.words.refusals import Code, Refusal

#: How long an answer is kept (ms).
WINDOW_MS = 86_400_000
#: A longer answer (bytes) is not kept; a repetition is told that it was done.
ANSWER_BYTES_MAX = 256 * 1024
#: Answers that are kept; beyond, the oldest go.
ANSWERS_MAX = 100_000
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
#: Stands in a kept answer for what is made again.
_MADE_AGAIN = "made again"
_TOO_LONG = b""


class Once(msgspec.Struct, frozen=True):
    """A request that takes effect once. `key`: chosen by the asker. `digest`: of the request,
    without the time that it waits."""

    key: str
    op: str
    digest: str


def once(svc: Service, key: str, op: str, request: Any) -> Once:
    """The mark of a request.

    Raises:
        Refusal: INVALID: the key cannot be one.
    """
    if not _KEY.fullmatch(key):
        raise Refusal(
            Code.INVALID, "An idempotency key has 1 to 200 printable ASCII characters without "
            "spaces. Nothing was done.", next="Make up one, like a UUID, for each request.",
        )
    if getattr(request, "wait_s", 0.0):
        request = msgspec.structs.replace(request, wait_s=0.0)
    # a repeated request for an outcome comes from the same asker
    if getattr(request, "reentrant", False):
        request = msgspec.structs.replace(request, reentrant=False)
    seal = hashlib.blake2b(msgspec.json.encode(request), key=svc.secret[:64], digest_size=16)
    return Once(key, op, seal.hexdigest())


class AnsweredRow(Row, frozen=True):
    """The answer that a request with an idempotency key was given."""

    op: str
    digest: str
    answer: bytes
    at: str


class AwaitedRow(Row, frozen=True):
    """A request with an idempotency key that waits for its answer."""

    asker: str
    key: str
    op: str
    digest: str


def find_answer(svc: Service, view: View, asker: str | None, asked: Once) -> msgspec.Raw | None:
    """The answer that this asker got to this request before; None if it was not asked, or refused.

    Raises:
        Refusal: CONFLICT: another request had this key.
    """
    row = view.first(AnsweredRow, "answered_get", asker or "", asked.key)
    if row is None or row.at <= view.later(-WINDOW_MS):
        return None
    answer, instant = row.answer, row.at
    if (row.op, row.digest) != (asked.op, asked.digest):
        raise Refusal(
            Code.CONFLICT, f"The idempotency key {asked.key[:60]!r} was used for another request "
            f"(`{row.op}`, {instant[:19]}Z). Nothing was done.",
            next="Make up a new key for each request.",
        )
    if answer == _TOO_LONG:
        raise Refusal(
            Code.CONFLICT,
            f"This request was carried out at {instant[:19]}Z; its answer was too long "
            "to be kept. Nothing was done again.", next="Look at what is so: `coord status`.",
            done=True,
        )
    if _MADE_AGAIN.encode() in answer:
        message = msgspec.json.decode(answer)
        _again(svc, message, asked.key)
        answer = msgspec.json.encode(message)
    return msgspec.Raw(answer)


def note(tx: Tx, asker: str | None, asked: Once, answer: Any) -> None:
    """Keep the answer to a request that was carried out in this transaction."""
    text = msgspec.json.encode(answer)
    if b'token":"' in text:
        plain = msgspec.json.decode(text)
        _hide(plain)
        text = msgspec.json.encode(plain)
    if len(text) > ANSWER_BYTES_MAX:
        text = _TOO_LONG
    tx.write_beside("answered_put", asker or "", asked.key, asked.op, asked.digest, text, tx.now)


def wait(tx: Tx, asker: str | None, asked: Once, acquisition: str) -> None:
    """Keep the answer of a request that is queued at this place when it is granted. Or its files
    are written under this name: then the answer is kept when they are, also after a crash."""
    tx.write_beside("awaited_put", asker or "", asked.key, asked.op, asked.digest, acquisition)


def awaited(tx: View, acquisition: str) -> list[tuple[str, Once]]:
    """The requests that are queued at this place, the newest first, each with its asker."""
    return [(row.asker, Once(row.key, row.op, row.digest))
            for row in tx.each(AwaitedRow, "awaited_of", acquisition)]


def move(tx: Tx, acquisition: str, now: str) -> None:
    """The place is called otherwise from now on."""
    tx.write_beside("awaited_move", acquisition, now)


def wait_no_more(tx: Tx, acquisition: str) -> None:
    """They have their answer: what else comes of the place is none of theirs."""
    tx.write_beside("awaited_end", acquisition)


def forget(tx: Tx) -> None:
    """Forget answers whose time is over, and the oldest where there are too many."""
    tx.write_beside("answered_forget", tx.later(-WINDOW_MS))
    tx.write_beside("answered_trim", ANSWERS_MAX)
    tx.write_beside("awaited_forget")


def agent_token(svc: Service, key: str) -> str:
    """The token of an agent that was registered under an idempotency key: the same each time."""
    return hashlib.blake2b(f"agent\0{key}".encode(), key=svc.secret[:64],
                           digest_size=16).hexdigest()


def _hide(value: Any) -> None:
    """Remove what nobody should read from the database."""
    for part in _parts(value):
        for name in ("lease_token", "token"):
            if isinstance(part.get(name), str):
                part[name] = _MADE_AGAIN


def _again(svc: Service, value: Any, key: str) -> None:
    for part in _parts(value):
        if part.get("lease_token") == _MADE_AGAIN:
            part["lease_token"] = svc.seal(int(part["fencing_token"]))
        if part.get("token") == _MADE_AGAIN:
            part["token"] = agent_token(svc, key)


def _parts(value: Any) -> list[dict[str, Any]]:
    """All objects within JSON. A loop, not a recursion."""
    result, todo = [], [value]
    while todo:
        fields = todo.pop()
        if isinstance(fields, dict):
            result.append(fields)
            todo += fields.values()
        elif isinstance(fields, list):
            todo += fields
    return result
