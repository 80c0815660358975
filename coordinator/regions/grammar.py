"""Grammars and queries, compiled when they are first needed, and kept.

The only module that loads grammars. They are native code: a fault in a grammar ends its process. So
they run in the worker (`coordinator.source`), in benchmarks and in tests.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import NamedTuple

from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from coordinator.regions.languages import languages, read_queries

#: Patterns below this line of a query begin at the root: tried at each node, they would be slow.
AT_ROOT = "\n; At the root:\n"
Captures = dict[str, list[Node]]


class Grammar(NamedTuple):
    """A row of the table, ready for use.

    Attributes:
        anywhere, top: the query of its regions, as far as it begins anywhere and at the root.
    """

    language: Language
    parser: Parser
    anywhere: Query
    top: Query


@cache
def load(language: str) -> Grammar:
    """Load the grammar of a row of the table, and the query of its regions.

    Raises:
        ImportError: its wheel is missing, or not for this interpreter.
    """
    row = languages()[language]
    module, _, function = row.grammar.partition(":")
    grammar = Language(getattr(_native(module), function)())
    anywhere, _, top = read_queries((row.query,)).partition(AT_ROOT)
    return Grammar(grammar, Parser(grammar), Query(grammar, anywhere), Query(grammar, top))


@cache
def load_meaning(language: str) -> Query:
    """Load the query of a language's meaning.

    Raises:
        ImportError: as `load`.
    """
    syntax = languages()[language].meaning
    assert syntax is not None
    return Query(load(language).language, read_queries(syntax.queries))


def _native(package: str) -> ModuleType:
    """Load the native half of a grammar's package. The other half imports much of Python's library,
    for queries that are never asked for here.

    Raises:
        ImportError
    """
    spec = PathFinder.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    binding = PathFinder.find_spec(f"{package}._binding", folders) if folders else None
    if binding is None or binding.loader is None:  # the package is built in another way
        return importlib.import_module(package)
    module = module_from_spec(binding)
    binding.loader.exec_module(module)
    return module


def parse(data: bytes, language: str) -> Tree:
    """Parse the bytes, and nothing more."""
    return load(language).parser.parse(data)


def match_regions(root: Node, language: str) -> list[tuple[int, Captures]]:
    """Return the matches of its regions' query: the number of each pattern, and its captures."""
    _, _, anywhere, top = load(language)
    cursor = QueryCursor(top)
    cursor.set_max_start_depth(0)
    return [*QueryCursor(anywhere).matches(root),
            *((anywhere.pattern_count + pattern, found) for pattern, found in cursor.matches(root))]


def match_meaning(root: Node, language: str) -> list[Captures]:
    """Return the matches of the query of its meaning."""
    return [captures for _, captures in QueryCursor(load_meaning(language)).matches(root)]
