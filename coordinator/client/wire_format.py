"""What goes over the wire: one line out, one line in, told apart by their numbers.

Both clients write and read these lines; neither transport is known here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import REQUEST_BYTES_MAX, harmless

PROTOCOL = 1
#: A coordinator that is killed as it starts is started so often; and so often one that was killed
#: just after, before anybody spoke to it.
STARTS = 3
#: A reply that takes longer than this (beyond a request's own wait) means that the daemon hangs.
REPLY_TIMEOUT_S = 120.0
#: How long a broken connection is made anew before the daemon is said to be down.
RECONNECT_S = 10.0


class Answered(msgspec.Struct):
    """One line of the daemon's."""

    id: int | str | None = None
    ok: msgspec.Raw = msgspec.Raw()
    error: dict[str, Any] | None = None
    event: msgspec.Raw = msgspec.Raw()


class Question(NamedTuple):
    """What is asked, and how.

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
    """How often a client has hung up on what it had asked, on all its connections."""

    def __init__(self) -> None:
        self.count = 0
        #: Nothing is asked any more.
        self.for_good = False


decode = msgspec.json.Decoder(Answered).decode
encode = msgspec.json.Encoder().encode


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
