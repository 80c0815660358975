"""The meaning of each field of a request or reply, with its unit, for `/openapi.json` and the
Python client.

The text is read from the place where the field is written (coordinator/words/requests): its remark,
the text below it, or `Attributes:` of its shape. Otherwise `shared_fields.toml` has it. So each
meaning is written once. The module reads this package's own source when it is first asked.
"""

from __future__ import annotations

import ast
import functools
import inspect
import io
import re
import sys
import tokenize
from types import ModuleType
from typing import Any

import msgspec

from coordinator import toml_tables

_ATTRIBUTE = re.compile(r"^(\w+): (.*)$")


def meaning(shape: type[Any], field: str) -> str:
    """The meaning of a field of this shape; empty if it is not described."""
    for kind in shape.__mro__:
        if issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct:
            text = _of_module(kind.__module__).get((kind.__name__, field))
            if text:
                return text
    shared = read_shared()
    return shared.get(f"{shape.__name__}.{field}") or shared.get(field, "")


@functools.cache
def read_shared() -> dict[str, str]:
    """The meanings by name, and by `Shape.field`."""
    return dict(toml_tables.read_packaged("operations/shared_fields.toml"))


class Examples(msgspec.Struct):
    """Examples of fields, by name or by `Shape.field`; and which of them a request shows."""

    shown: list[str]
    nulls: list[str]
    shown_only: dict[str, list[str]]
    examples: dict[str, Any]


@functools.cache
def read_examples() -> Examples:
    """The table `field_examples.toml`."""
    table = msgspec.convert(toml_tables.read_packaged("operations/field_examples.toml"), Examples)
    table.examples |= dict.fromkeys(table.nulls)
    return table


@functools.cache
def _of_module(name: str) -> dict[tuple[str, str], str]:
    """(class, field) -> its description in the source."""
    module: ModuleType = sys.modules[name]
    text = inspect.getsource(module)
    remarks = _remarks(text)
    texts: dict[tuple[str, str], str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            attributes = _attributes(ast.get_docstring(node) or "")
            for number, statement in enumerate(node.body):
                if not (isinstance(statement, ast.AnnAssign)
                        and isinstance(statement.target, ast.Name)):
                    continue
                below = node.body[number + 1] if number + 1 < len(node.body) else None
                field = statement.target.id
                sentence = (_text(below) or remarks.get(statement.end_lineno or 0)
                            or attributes.get(field))
                if sentence:
                    texts[node.name, field] = _sentence(sentence)
    return texts


def _remarks(text: str) -> dict[int, str]:
    """Line -> the remark at its end, continued by the comment lines below it."""
    remarks: dict[int, str] = {}
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type is not tokenize.COMMENT:
            continue
        line, remark = token.start[0], token.string.lstrip("#: ").strip()
        if remark.startswith("noqa"):
            continue
        if token.line.strip().startswith("#"):
            if last == line - 1 and last:
                owner = max(n for n in remarks if n <= last)
                remarks[owner] += " " + remark
                last = line
            continue
        remarks[line] = remark
        last = line
    return remarks


def _attributes(doc: str) -> dict[str, str]:
    """The meanings in a docstring's `Attributes:`."""
    meanings: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(doc.partition("Attributes:")[2]).splitlines():
        match = _ATTRIBUTE.match(line)
        if match:
            name = match[1]
            meanings[name] = match[2]
        elif name:
            meanings[name] += " " + line.strip()
    return meanings


def _text(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(
            node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


def _sentence(text: str) -> str:
    """The text as a sentence: with a capital, unless it begins with an example, and a full stop."""
    first = text[:1].upper() + text[1:] if text[:2].islower() else text
    return first if first.endswith((".", "…", ")")) else first + "."
