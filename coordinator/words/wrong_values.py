"""Wording what a check of types says about a value: which field, and what it must or may be.

The module translates what the decoder says about requests and settings, and decides nothing.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_TYPES = {"int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false",
          "array": "a list", "object": "an object with fields", "null": "null"}
_AT = re.compile(r" - at `(?:key in )?\$(.*)`$")
_BOUND = re.compile(r"Expected `(\w+)`(?: of length)? (>=|<=|>|<) (-?\d+(?:\.\d+)?)")
_TYPE = re.compile(r"Expected `(.+)`, got `(\w+)`")
_OBJECT = re.compile("Object (?:missing required|contains unknown) field ")
_ODD = re.compile(r"Invalid enum value (.+)")
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def sentence(bad: Exception) -> tuple[str, str]:
    """The field that is wrong (empty: none of them), and what is wrong, in a sentence."""
    text = str(bad)
    match = _AT.search(text)
    field = _name(match[1]) if match is not None else ""
    return field, _sentence(field, _AT.sub("", text))


def in_words(bad: Exception) -> str:
    """What is wrong with an unreadable value: a part of a sentence, without a decoder's words."""
    if isinstance(bad, OSError):
        return bad.strerror or str(bad)
    if isinstance(bad, UnicodeDecodeError):
        return f"it is not UTF-8 (byte {bad.start + 1})"
    if isinstance(bad, msgspec.ValidationError):
        return sentence(bad)[1].rstrip(".")
    if isinstance(bad, RecursionError):
        return "it is nested too deeply"
    return str(bad)


def choices(bad: Exception, kind: Any) -> list[str]:
    """The possible values of the field, if its value is none of them; otherwise empty.

    Args:
        kind: the type that it was read as.
    """
    if not _ODD.match(str(bad)):
        return []
    return [str(value) for constraint in _met(bad, kind) for value in _values(constraint)]


def fields(bad: Exception, kind: Any) -> list[str]:
    """The fields of a nested object that lacks a field, or has an unknown one; otherwise empty.
    `kind`: as above."""
    if not _OBJECT.match(str(bad)) or not sentence(bad)[0]:
        return []
    return [field.encode_name for constraint in _met(bad, kind) for field in _fields(constraint)]


def _met(bad: Exception, kind: Any) -> list[msgspec.inspect.Type]:
    """The types of what is wrong."""
    match = _AT.search(str(bad))
    parts = re.findall(r"\.([^.\[\]`]+)|(\[)", match[1]) if match is not None else []
    near = [msgspec.inspect.type_info(kind)]
    for field, _ in parts:
        near = [inner for kind in near for inner in _inside(kind, field)]
    return near


def _fields(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Field]:
    if isinstance(kind, msgspec.inspect.Metadata):
        return _fields(kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        return [field for type_ in kind.types for field in _fields(type_)]
    return list(kind.fields) if isinstance(kind, msgspec.inspect.StructType) else []


def _inside(kind: msgspec.inspect.Type, field: str) -> list[msgspec.inspect.Type]:
    """The types in a field of this type; empty: in one of its entries."""
    if isinstance(kind, msgspec.inspect.Metadata):
        return _inside(kind.type, field)
    if isinstance(kind, msgspec.inspect.UnionType):
        return [inner for type_ in kind.types for inner in _inside(type_, field)]
    if isinstance(kind, msgspec.inspect.StructType) and field:
        return [other_field.type for other_field in kind.fields if other_field.encode_name == field]
    if isinstance(kind, msgspec.inspect.DictType) and not field:
        return [kind.value_type]
    if isinstance(kind, msgspec.inspect.ListType) and not field:
        return [kind.item_type]
    return []


def _values(kind: msgspec.inspect.Type) -> list[Any]:
    if isinstance(kind, msgspec.inspect.UnionType):
        return [value for type_ in kind.types for value in _values(type_)]
    return list(kind.values) if isinstance(kind, msgspec.inspect.LiteralType) else []


def _sentence(field: str, text: str) -> str:
    named = f"`{field}`" if field else "the request"
    missing = re.fullmatch(r"Object missing required field `(.+)`", text)
    if missing is not None:
        return f"{f'{named} lacks' if field else 'it lacks'} the field `{missing[1]}`."
    unknown = re.fullmatch(r"Object contains unknown field `(.+)`", text)
    if unknown is not None:
        return f"{f'{named} has' if field else 'it has'} no field `{unknown[1]}`."
    bound = _BOUND.match(text)
    if bound is not None:
        what = f"{_BOUNDS[bound[2]]} {float(bound[3]):,g}" if float(bound[3]) % 1 else (
            f"{_BOUNDS[bound[2]]} {int(float(bound[3])):,}")
        if bound[1] in ("array", "object"):
            return f"{named} must have {what} {'entry' if bound[3] == '1' else 'entries'}."
        return f"{named} must be {what}{' characters long' if bound[1] == 'str' else ''}."
    wrong = _TYPE.match(text)
    if wrong is not None:
        kinds = " or ".join(_TYPES.get(item.strip(), item.strip()) for item in wrong[1].split("|"))
        return f"{named} must be {kinds}, not {_TYPES.get(wrong[2], wrong[2])}."
    odd = _ODD.fullmatch(text)
    if odd is not None:
        return f"{named} cannot be {odd[1]}."
    return f"{named}: {text}."


def _name(path: str) -> str:
    """`.resources[0]` as `resources[0]`; `[...]` is one of a list."""
    return path.removeprefix(".").replace("[...]", "")
