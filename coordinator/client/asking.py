"""What the blocking and the asynchronous client share: idempotency, retries, and the wire format.

A request is one line and a reply is one line; a number ties them together. The generated methods
build on this module. `Client` and `AsyncClient` own the connections.
"""

from __future__ import annotations

import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import REQUEST_BYTES_MAX, harmless

if TYPE_CHECKING:  # a connection alone starts without them
    from coordinator.words import requests as rq

R = TypeVar("R")
T = TypeVar("T")
PROTOCOL = 1
#: A coordinator that is killed as it starts is started so often; and so often one that was killed
#: just after, before anybody spoke to it.
STARTS = 3
#: A reply that takes longer than this (beyond a request's own wait) means that the daemon hangs.
REPLY_TIMEOUT_S = 120.0
#: How long a client tries to connect again before it calls the daemon down.
RECONNECT_S = 10.0

#: Operations that take their time where much has to be done (seconds).
SLOW_S = {"compact": 3600.0, "review_decide": 600.0, "review_undo": 600.0}
#: Requests that may be sent twice without harm if the connection breaks before the answer. Not
#: `acquire`: the second answer would say that the lease was held before, and no body of `lease`
#: would give it back.
REPEATABLE = frozenset({"renew", "heartbeat", "join", "sweep"})
encode = msgspec.json.Encoder().encode


class Answered(msgspec.Struct):
    """One line of the daemon's."""

    id: int | str | None = None
    ok: msgspec.Raw = msgspec.Raw()
    error: dict[str, Any] | None = None
    event: msgspec.Raw = msgspec.Raw()


class Question(NamedTuple):
    """A request, and how it is sent.

    Attributes:
        again: it may be sent once more when the connection breaks while it is answered.
        key: the idempotency key that it is asked under.
        mark: the count of hang-ups from which on it is not to be asked.
        prepares: it may make `.coord`, and start a coordinator, where there is no `.coord` yet.
    """

    op: str
    params: bytes
    timeout_s: float
    again: bool
    key: str | None
    mark: int
    prepares: bool


class HangUps:
    """How often a client has hung up on its questions, on all its connections."""

    def __init__(self) -> None:
        self.count = 0
        #: Whether all later questions are refused.
        self.for_good = False

    def add(self, for_good: bool) -> None:
        """The client hangs up now."""
        self.for_good |= for_good
        self.count += 1


decode = msgspec.json.Decoder(Answered).decode


def write_line(question: Question, number: int, token: str | None) -> bytes:
    """A question as it is sent.

    Raises:
        Refusal: INVALID: a text in it is no Unicode; LIMIT: it is too long to be sent.
    """
    fields: dict[str, Any] = {"id": number, "op": question.op, "v": PROTOCOL}
    if token is not None:
        fields["token"] = token
    if question.key is not None:
        fields["key"] = question.key
    try:
        head = encode(fields)[:-1]
    except UnicodeEncodeError as bad:
        raise no_unicode(fields, bad) from None
    line = head + b',"params":' + question.params + b"}\n"
    if len(line) > REQUEST_BYTES_MAX:
        raise Refusal(Code.LIMIT, f"A request over {REQUEST_BYTES_MAX:,} bytes. Nothing was done.")
    return line


def ends_before(refusal: Refusal, again: bool) -> bool:
    """Whether a coordinator that ends has refused this, and the next one can be asked the same.
    `again`: it takes effect once, however often it is asked."""
    begun = refusal.facts.get("begun")
    return refusal.code is Code.SHUTTING_DOWN and (begun is False or (begun is True and again))


def no_unicode(fields: dict[str, Any], bad: UnicodeEncodeError) -> Refusal:
    """INVALID, for the first of the fields that cannot be written as UTF-8."""
    field = next((name for name, value in fields.items() if not _is_unicode(value)), "")
    shown = harmless(bad.object[max(0, bad.start - 100) : bad.start + 100])
    return Refusal(
        Code.INVALID, f"`{field}`: {shown!r} is not valid UTF-8. Nothing was done.",
        next="Repeat it in UTF-8.", field=field)


def _is_unicode(value: Any) -> bool:
    try:
        encode(value)
    except UnicodeEncodeError:
        return False
    return True


def encoded(request: rq.Request[Any]) -> bytes:
    """A request as it goes over the wire.

    Raises:
        Refusal: INVALID: JSON has no such number (infinity would go as null: as nothing said), or
            a text in it is no Unicode.
    """
    for field in request.__struct_fields__:
        value = getattr(request, field)
        if isinstance(value, float) and not math.isfinite(value):
            raise Refusal(Code.INVALID, f"{request.op}: `{field}` must be a number, not {value}. "
                          "Nothing was done.", next=f"Repeat it with another `{field}`.",
                          field=field)
        if isinstance(value, bytes) or (isinstance(value, list | tuple)
                                        and any(isinstance(item, bytes) for item in value)):
            raise Refusal(Code.INVALID, f"{request.op}: `{field}` must be text, not bytes. "
                          "Nothing was done.", next="Decode it first.", field=field)
    try:
        # One line each: a request laid out in several has line feeds between its parts.
        return encode(request).replace(b"\n", b" ")
    except UnicodeEncodeError as bad:  # a word of the command line, say, with such a byte in it
        raise no_unicode(
            {name: getattr(request, name) for name in request.__struct_fields__}, bad) from None


def check_body(resources: Sequence[Any], ttl: Any, wait: Any = 0.0, stall: Any = None) -> None:
    """Check the arguments of a body before anything is acquired for it.

    Raises:
        Refusal: INVALID: a resource that is no text, or a time that is no number (seconds).
    """
    for n, resource in enumerate(resources):
        if not isinstance(resource, str | os.PathLike):
            raise _wrong(f"resources[{n}]", "text", resource)
    check_seconds("ttl", ttl)
    check_seconds("wait", wait)
    if stall is not None:
        check_seconds("stall", stall)


def check_seconds(field: str, value: Any) -> None:
    """
    Raises:
        Refusal: INVALID: it is no finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(field, "a number of seconds", value)


def _wrong(field: str, what: str, value: Any) -> Refusal:
    kind = value if isinstance(value, float) else type(value).__name__
    return Refusal(Code.INVALID, f"`{field}` must be {what}, not {kind}. Nothing was done.",
                   next=f"Repeat it with another `{field}`.", field=field)


def how_asked(request: rq.Request[Any], key: str | None) -> tuple[float, bool, str | None]:
    """(the extra time for its answer, beyond a plain one's (seconds); whether it may be sent twice
    without harm; its idempotency key)."""
    kind = type(request)
    wait = getattr(request, "wait_s", 0.0)  # a value that is no number is refused later
    wait_s = float(wait if isinstance(wait, int | float) else 0.0) + SLOW_S.get(kind.op, 0.0)
    repeatable = not kind.writes or kind.op in REPEATABLE
    if key is None and not repeatable:
        # The time comes first, so that the coordinator keeps keys of one moment side by side.
        key = f"{time.time_ns() // 1_000_000:012x}{os.urandom(8).hex()}"
    return wait_s, repeatable, key


class Asking(ABC):
    """The blocking side that asks, and waits for the answer."""

    @abstractmethod
    def call(self, request: rq.Request[R], *, key: str | None = None) -> R:
        """Ask anything."""

    @abstractmethod
    def name(self) -> str:
        """The agent's name."""


class AsyncAsking(ABC):
    """The asynchronous side that asks, and awaits the answer."""

    @abstractmethod
    async def call(self, request: rq.Request[R], *, key: str | None = None) -> R:
        """Ask anything."""

    @abstractmethod
    async def name(self) -> str:
        """The agent's name."""


def here() -> str:
    """The directory that relative paths begin at.

    Raises:
        Refusal: INVALID: it is gone.
    """
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        raise Refusal(
            Code.INVALID, "This program's working directory does not exist any more, so nobody can "
            "tell what a relative path means. Nothing was asked.",
            next="Change to a directory that is there.") from None


def listed(values: Sequence[T]) -> list[T]:
    """A list of these; a path (`pathlib`) as its text. A text would be one of its letters.

    Raises:
        TypeError: it is a text.
    """
    if isinstance(values, str | bytes):
        raise TypeError(f"{values!r} is a text, where a list of them is meant: [{values!r}]")
    return [os.fspath(value) if isinstance(value, os.PathLike) else value for value in values]


def json(value: Any, field: str) -> msgspec.Raw:
    """A value as it goes over the wire, in this field of a request.

    Raises:
        Refusal: INVALID: a number in it is none of JSON's (it would be stored as null), a text in
            it is no Unicode, or it has what JSON has not, or in too many levels.
    """
    if isinstance(value, msgspec.Raw):
        return value
    try:
        text = encode(value)
    except UnicodeEncodeError as bad:
        raise no_unicode({field: value}, bad) from None
    except (TypeError, RecursionError) as bad:
        why = ("it is nested too deeply" if isinstance(bad, RecursionError) else
               str(bad)[:1].lower() + str(bad)[1:])
        raise Refusal(Code.INVALID, f"`{field}` cannot be written as JSON: {why}. Nothing was "
                      "done.", next=f"Repeat it with another `{field}`.", field=field) from None
    if b"null" in text and not _is_finite(msgspec.to_builtins(value)):
        raise Refusal(
            Code.INVALID, f"`{field}` holds a number that JSON does not have (nan, or an infinite "
            "one). Nothing was done.", next="Store None or a text in its place.", field=field)
    return msgspec.Raw(text)


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(_is_finite, value))
