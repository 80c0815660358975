"""What is wrong with a request that cannot be read, in words: which field, and what it must be.

Translates what the decoder says; decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import msgspec

from coordinator.words import wrong_values
from coordinator.words.refusals import Code, Refusal


def refusal(operation: str, request: type[Any], bad: Exception) -> Refusal:
    """INVALID for a request that does not fit its shape."""
    field, text = wrong_values.sentence(bad)
    fields = ", ".join(field.name for field in msgspec.structs.fields(request))
    among, inner = wrong_values.choices(bad, request), wrong_values.fields(bad, request)
    next_ = f"Choose one of: {', '.join(among)}." if among else (
        f"`{field}` takes: {', '.join(inner)}.") if inner else (
        f"Repeat it with another `{field}`.") if field else (
        f"`{operation}` takes: {fields}." if fields else f"`{operation}` takes no field.")
    return Refusal(Code.INVALID, f"{operation}: {text} Nothing was done.",
                   next=next_, field=_meant(field, str(bad)) or None)


def _meant(field: str, text: str) -> str:
    """The field that is wrong, also where it is one that lacks, or that there is not."""
    match = re.match(r"Object (?:missing required|contains unknown) field `(.+?)`", text)
    return ".".join(filter(None, (field, match[1]))) if match is not None else field


def no_operation(name: str, known: Iterable[str]) -> Refusal:
    """INVALID for an operation that there is not."""
    near = get_close_matches(name[:60], list(known), 1)
    return Refusal(
        Code.INVALID, f"There is no operation called {name[:60]!r}.",
        next=(f"Did you mean `{near[0]}`? " if near else "") + "Over HTTP GET /openapi.json lists "
        "them; the documents do under operations.")


def no_request(bad: Exception) -> Refusal:
    """INVALID for a line on the socket that is no request."""
    return Refusal(Code.INVALID, f"Not a request line: {wrong_values.in_words(bad)}.", next=(
        'Send one JSON object a line, like {"id": 1, "op": "locks", "params": {}}.'))


def no_json(operation: str, bad: Exception) -> Refusal:
    """INVALID for what is no JSON object at all."""
    return Refusal(Code.INVALID, f"{operation}: not JSON: {wrong_values.in_words(bad)}. "
                   "Nothing was done.", next="Send one JSON object, as UTF-8 and not compressed.")
