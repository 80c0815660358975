"""The facts of a file in any language whose meaning is read. Pure: the same bytes give the same
facts. Loads grammars, so it runs where a fault in one may end the process."""

from __future__ import annotations

from coordinator.meaning import reading
from coordinator.meaning.facts import Facts
from coordinator.meaning.languages import row_of

FILE_BYTES_MAX = reading.FILE_BYTES_MAX


def facts_of(path: str, data: bytes) -> Facts:
    """What is known of a file with this name and these bytes. Whatever they are, there is an
    answer."""
    row = row_of(path)
    if row is None:
        return reading.read(data)
    from coordinator.meaning import tree_reading  # where all is Python, no grammar is needed

    return tree_reading.read(data, row)
