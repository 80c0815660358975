"""Encoding needs and facts between the coordinator and a process that looks for it.

A frame is four bytes of length (big endian), one byte for its kind, then MessagePack. The answer to
a question is any number of slices of blobs and then the facts. The module defines the form and
sends nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from coordinator.looking.facts import (
    AnyNeed,
    Below,
    Between,
    Bytes,
    Committed,
    Content,
    Fact,
    Identity,
    Ignored,
    Listing,
    Looked,
    Names,
    Overlaid,
    Part,
    Parts,
    Place,
    Proposed,
    Rewound,
    Twins,
)
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located

#: The kinds of frames: a question, bytes to be kept, the facts.
QUESTION, BLOBS, FACTS = b"Q", b"B", b"F"
#: Contents in a slice, and their deflated bytes: one transaction keeps one slice, and other
#: requests run in between.
SLICE_BLOBS, SLICE_BYTES = 8, 128 * 1024
#: The head of a frame.
HEAD = struct.Struct(">I1s")

_Asked = (Place | Content | Below | Identity | Twins | Ignored | Committed | Part | Names | Proposed
          | Between | Overlaid | Rewound)


class _Found(msgspec.Struct, tag_field="is", array_like=True):
    need: _Asked


class _Located(_Found, tag="located", array_like=True):
    fact: Located


class _Bytes(_Found, tag="bytes", array_like=True):
    fact: Bytes


class _Listing(_Found, tag="listing", array_like=True):
    fact: Listing


class _Parts(_Found, tag="parts", array_like=True):
    fact: Parts


class _Names(_Found, tag="names", array_like=True):
    fact: list[str]


class _Text(_Found, tag="text", array_like=True):
    fact: str | None


class _Flag(_Found, tag="flag", array_like=True):
    fact: bool


class _Refused(_Found, tag="refused", array_like=True):
    fact: dict[str, Any]


_Any = _Located | _Bytes | _Listing | _Parts | _Names | _Text | _Flag | _Refused
_encode = msgspec.msgpack.Encoder().encode
_needs = msgspec.msgpack.Decoder(list[AnyNeed])
_facts = msgspec.msgpack.Decoder(list[_Any])


class Blob(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Deflated bytes that have to be kept, empty if they are kept. `size`: before deflating."""

    digest: str
    size: int
    packed: bytes
    mode: int


_blobs = msgspec.msgpack.Decoder(list[Blob])


def frame(what: bytes, body: bytes) -> bytes:
    """Return one frame."""
    return HEAD.pack(len(body), what) + body


def encode_needs(needs: Iterable[AnyNeed]) -> bytes:
    """Encode a question's body."""
    return _encode(list(needs))


def decode_needs(body: bytes) -> list[AnyNeed]:
    """Decode the needs of a question."""
    return _needs.decode(body)


def encode_blobs(blobs: Sequence[Blob]) -> bytes:
    """Encode the body of a slice."""
    return _encode(blobs)


def decode_blobs(body: bytes) -> list[Blob]:
    """Decode the blobs of a slice."""
    return _blobs.decode(body)


def encode_facts(looked: Looked) -> bytes:
    """Encode the facts' body."""
    return _encode([_found(need, fact) for need, (fact, _) in looked.facts.items()])


def decode_facts(body: bytes, looked: Looked, seq: int) -> None:
    """Add the facts of a body. The look began at the log's number `seq`."""
    for refused in _facts.decode(body):
        fact: Fact = Refusal.from_body(refused.fact) if isinstance(refused,
                                                                   _Refused) else refused.fact
        looked.add(refused.need, fact, seq)


def _found(need: AnyNeed, fact: Fact) -> _Any:
    kind: Any = _Text
    if isinstance(fact, Refusal):
        # `Whole` has been taken apart before the question, so no answer has it.
        return _Refused(need, fact.body())  # type: ignore[arg-type]  # any fact may be refused
    for shape, made in ((Located, _Located), (Bytes, _Bytes), (Listing, _Listing),
                        (Parts, _Parts), (bool, _Flag), (list, _Names)):
        if isinstance(fact, shape):
            kind = made
            break
    answer: _Any = kind(need, fact)
    return answer
