"""JSON that is kept for somebody: checked, bounded, under a name that tells nothing of it."""

from __future__ import annotations

import hashlib

import msgspec

from coordinator.kernel.core import Service
from coordinator.rules import state as rule
from coordinator.store.ledger import Tx
from coordinator.words.refusals import Code, Refusal
from coordinator.words.wrong_values import in_words

#: JSON is nested no deeper than this.
DEPTH_MAX = 100
NULL = msgspec.Raw(b"null")


def check_json(svc: Service, raw: msgspec.Raw, what: str) -> bytes:
    """JSON text without white space, checked and bounded.

    Raises:
        Refusal: INVALID, LIMIT.
    """
    try:
        text = msgspec.json.format(bytes(raw), indent=-1)
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise Refusal(Code.INVALID, f"`{what}` is not JSON: {in_words(bad)}. Nothing was "
                      "written.") from None
    if text.count(b"[") + text.count(b"{") > DEPTH_MAX and not rule.depth(value, DEPTH_MAX):
        raise Refusal(
            Code.LIMIT, f"`{what}` is nested deeper than {DEPTH_MAX}. Nothing was written.",
            next="Store its parts under keys of their own.",
        )
    return check_size(svc, text, what)


def check_size(svc: Service, text: bytes, what: str) -> bytes:
    """The text, if it is no longer than a value may be (bytes).

    Raises:
        Refusal: LIMIT.
    """
    most = svc.settings.state.value_bytes_max
    if len(text) > most:
        raise Refusal(
            Code.LIMIT, f"The {what} has {len(text)} bytes; {most} are the most "
            "(state.value_bytes_max). Nothing was written.",
            next="Store its parts under keys of their own, or keep it in a file.", limit=most,
        )
    return text


def keep_json(svc: Service, tx: Tx, text: bytes) -> str:
    """Keep a text in `blobs`; its name there, which tells nothing of it without coord's secret."""
    content = f"state:{hashlib.blake2b(text, key=svc.secret[:64], digest_size=32).hexdigest()}"
    tx.keep_text(content, text)
    return content
