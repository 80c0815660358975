"""The facts of a file in any language whose meaning is read. Pure: the same bytes give the same
facts. Loads grammars, so it runs where a fault in a grammar may end the process."""

from __future__ import annotations

from coordinator.meaning import reading, tree_reading
from coordinator.meaning.facts import Facts
from coordinator.regions.languages import language_of, syntax_of

FILE_BYTES_MAX = reading.FILE_BYTES_MAX


def facts_of(path: str, data: bytes) -> Facts:
    """Read the facts of a file with this name and these bytes. Any bytes give an answer."""
    syntax = syntax_of(path)
    if syntax is None:
        return reading.read(data)
    return tree_reading.read(data, language_of(path) or "", syntax)
