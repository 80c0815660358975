"""The facts of a file in any language whose meaning is read. Pure: the same bytes give the same
facts. Loads grammars, so it runs where a fault in one may end the process."""

from __future__ import annotations

from coordinator.meaning import reading, tree_reading
from coordinator.meaning.facts import Facts
from coordinator.meaning.languages import row_of

FILE_BYTES_MAX = reading.FILE_BYTES_MAX


def facts_of(path: str, data: bytes) -> Facts:
    """What is known of a file with this name and these bytes. Whatever they are, there is an
    answer."""
    row = row_of(path)
    return reading.read(data) if row is None else tree_reading.read(data, row)
