"""What is wrong with a request that cannot be read, in words: which field, and what it must be.

Translates what the decoder says; decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import msgspec

from coordinator.words.refusals import Code, Refusal

_TYPES = {"int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false",
          "array": "a list", "object": "an object with fields", "null": "null"}
_AT = re.compile(r" - at `(?:key in )?\$(.*)`$")
_BOUND = re.compile(r"Expected `(\w+)`(?: of length)? (>=|<=|>|<) (-?\d+)")
_TYPE = re.compile(r"Expected `(.+)`, got `(\w+)`")
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def refusal(operation: str, request: type[Any], bad: Exception) -> Refusal:
    """INVALID for a request that does not fit its shape."""
    field, said = sentence(bad)
    fields = ", ".join(one.name for one in msgspec.structs.fields(request))
    next_ = f"Repeat it with another `{field}`." if field else (
        f"`{operation}` takes: {fields}." if fields else f"`{operation}` takes no field.")
    return Refusal(Code.INVALID, f"{operation}: {said} Nothing was done.",
                   next=next_, field=_meant(field, str(bad)) or None)


def _meant(field: str, said: str) -> str:
    """The field that is wrong, also where it is one that lacks, or that there is not."""
    found = re.match(r"Object (?:missing required|contains unknown) field `(.+?)`", said)
    return ".".join(filter(None, (field, found[1]))) if found is not None else field


def no_operation(name: str, known: Iterable[str]) -> Refusal:
    """INVALID for an operation that there is not."""
    near = get_close_matches(name[:60], list(known), 1)
    return Refusal(
        Code.INVALID, f"There is no operation called {name[:60]!r}.",
        next=(f"Did you mean `{near[0]}`? " if near else "") + "Over HTTP GET /openapi.json lists "
        "them; the documents do under operations.")


def no_request(bad: Exception) -> Refusal:
    """INVALID for a line on the socket that is no request."""
    said = sentence(bad)[1] if isinstance(bad, msgspec.ValidationError) else f"{bad}."
    return Refusal(Code.INVALID, f"Not a request line: {said}", next=(
        'Send one JSON object a line, like {"id": 1, "op": "locks", "params": {}}.'))


def no_json(operation: str, bad: Exception) -> Refusal:
    """INVALID for what is no JSON object at all."""
    return Refusal(Code.INVALID, f"{operation}: not JSON: {bad}. Nothing was done.",
                   next="Send one JSON object, as UTF-8 and not compressed.")


def sentence(bad: Exception) -> tuple[str, str]:
    """The field that is wrong (empty: none of them), and what is wrong, in a sentence."""
    said = str(bad)
    found = _AT.search(said)
    field = _name(found[1]) if found is not None else ""
    return field, _sentence(field, _AT.sub("", said))


def _sentence(field: str, said: str) -> str:
    named = f"`{field}`" if field else "the request"
    missing = re.fullmatch(r"Object missing required field `(.+)`", said)
    if missing is not None:
        return f"{f'{named} lacks' if field else 'it lacks'} the field `{missing[1]}`."
    unknown = re.fullmatch(r"Object contains unknown field `(.+)`", said)
    if unknown is not None:
        return f"it has no field `{unknown[1]}`."
    bound = _BOUND.match(said)
    if bound is not None:
        what = f"{_BOUNDS[bound[2]]} {int(bound[3]):,}"
        if bound[1] in ("array", "object"):
            return f"{named} must have {what} {'entry' if bound[3] == '1' else 'entries'}."
        return f"{named} must be {what}{' characters long' if bound[1] == 'str' else ''}."
    wrong = _TYPE.match(said)
    if wrong is not None:
        kinds = " or ".join(_TYPES.get(one.strip(), one.strip()) for one in wrong[1].split("|"))
        return f"{named} must be {kinds}, not {_TYPES.get(wrong[2], wrong[2])}."
    odd = re.fullmatch(r"Invalid enum value (.+)", said)
    if odd is not None:
        return f"{named} cannot be {odd[1]}."
    return f"{named}: {said}."


def _name(path: str) -> str:
    """`.resources[0]` as `resources[0]`; `[...]` is one of a list."""
    return path.removeprefix(".").replace("[...]", "")
