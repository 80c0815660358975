"""Finding regions with tree-sitter: the bare parse, the query, and what it has marked.

The only module that loads grammars, which are native code: a fault in one ends its process. So the
coordinator and the command ask by `process`; this runs in `worker` (and in benchmarks and tests).
It keeps compiled queries, and nothing of any file.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache, partial
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import NamedTuple

from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from coordinator.regions import names
from coordinator.regions.languages import languages
from coordinator.regions.outline import Mark, MarkKind, Outline, divide, whole
from coordinator.regions.questions import FILE_BYTES_MAX

#: Files in which more is marked are not divided.
MARKS_MAX = 200_000
_KINDS: tuple[MarkKind, ...] = (
    "function", "method", "class", "namespace", "constants", "block", "key", "section",
)


@cache
def load(language: str) -> tuple[Parser, Query]:
    """The parser and the query of a row of the table.

    Raises:
        ImportError: its wheel is missing, or not for this interpreter.
    """
    row = languages()[language]
    module, _, function = row.grammar.partition(":")
    grammar = Language(getattr(_native(module), function)())
    return Parser(grammar), Query(grammar, row.query_text())


def _native(package: str) -> ModuleType:
    """The native half of a grammar's package. The other half reads in much of Python's library,
    for queries that nobody here asks it for.

    Raises:
        ImportError
    """
    spec = PathFinder.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    binding = PathFinder.find_spec(f"{package}._binding", folders) if folders else None
    if binding is None or binding.loader is None:  # it is built in another way
        return importlib.import_module(package)
    module = module_from_spec(binding)
    binding.loader.exec_module(module)
    return module


def parse(data: bytes, language: str) -> Tree:
    """The bare parse."""
    return load(language)[0].parse(data)


class Read(NamedTuple):
    """A file's outline, and what it was made from; None and nothing where it was not divided."""

    outline: Outline
    tree: Tree | None = None
    marks: Sequence[Mark] = ()


def outline(data: bytes, language: str | None, *, nested: bool = False) -> Outline:
    """The regions of these bytes, found anew. Whatever the bytes are, there is an answer.

    Args:
        language: a name of the table; None, or one that is not in it: one region of kind `file`.
        nested: also the definitions inside of functions.
    """
    return read(data, language, nested=nested).outline


def read(data: bytes, language: str | None, *, nested: bool = False) -> Read:
    """The same, with the tree that it was made from."""
    if language not in languages():
        return Read(whole(data, None, "no language of the table"))
    assert language is not None
    if len(data) > FILE_BYTES_MAX:
        return Read(whole(data, language, f"larger than {FILE_BYTES_MAX:,} bytes"))
    try:
        query = load(language)[1]
    except ImportError:
        return Read(whole(data, language, f"the grammar for {language} is not installed"))
    tree = parse(data, language)
    marks, leads = marked(tree.root_node, query)
    if len(marks) > MARKS_MAX:
        return Read(whole(data, language, f"more than {MARKS_MAX:,} definitions"))
    found_outline = divide(data, language, marks, leads, nested=nested,
                           broken=tree.root_node.has_error)
    if sum(end - start for region in found_outline.regions for start,
           end in region.spans) != len(data):
        return Read(whole(data, language, "it could not be divided without gaps"))
    return Read(found_outline, tree, marks)


def marked(root: Node, query: Query) -> tuple[list[Mark], list[tuple[int, int]]]:
    """What the query marks, the widest for each name, and what is attached to what follows: (start,
    end) of it."""
    best: dict[tuple[int, ...], tuple[int, int, Mark]] = {}
    leads: list[tuple[int, int]] = []
    for pattern, captures in QueryCursor(query).matches(root):
        if "lead" in captures:
            leads += [(node.start_byte, node.end_byte) for node in captures["lead"]]
            continue
        kind = next(kind for kind in _KINDS if kind in captures)
        node = captures[kind][0]
        start, end = node.start_byte, node.end_byte
        named = captures.get("name") or captures.get("path") or [node]
        key = tuple(node.start_byte for node in named) if kind != "block" else (start, end, -1)
        if len(named) > 1:
            key = tuple(sorted(key))
        kept = best.get(key)
        if kept is not None and (kept[0], -kept[1]) >= (end - start, -pattern):
            continue
        best[key] = (end - start, pattern, Mark(
            start, end, kind, _parts(captures, kind), key[0] if kind != "block" else start,
            partial(_around, node),
        ))
    return [mark for _, _, mark in best.values()], leads


def _parts(captures: dict[str, list[Node]], kind: MarkKind) -> list[str]:
    if kind == "block":
        return []
    scope = [names.part(node.text or b"") for node in captures.get("scope", ())]
    if "path" in captures:
        return scope + names.parts(captures["path"][0].text or b"")
    named = sorted(captures.get("name", ()), key=lambda node: node.start_byte)
    if len(named) == 1:
        return [*scope, names.part(named[0].text or b"")]
    return [*scope, names.part(b" ".join(node.text or b"" for node in named))]


def _around(node: Node) -> int:
    """Where the innermost node ends that goes on behind this one."""
    end = node.end_byte
    above = node.parent
    while above is not None and above.end_byte <= end:
        above = above.parent
    return above.end_byte if above is not None else end
