"""Looks at regions of files: the content of one, the changes of an edit, the differences.

Owns how such a need is answered from a file's bytes. Reads no file itself, and keeps no bytes: the
`Looker` that owns it passes in both functions.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

from coordinator.files.content import digest, is_executable
from coordinator.looking.facts import (
    Between,
    Bytes,
    Fact,
    Names,
    Overlaid,
    Part,
    Parts,
    Proposed,
    Rewound,
)
from coordinator.looking.file_regions import FileRegions
from coordinator.looking.rewound_regions import Then, rewound

#: An edit of a larger file (bytes) counts as one of the whole file, to save time.
PROPOSED_BYTES_MAX = 1 << 20
#: The permission bits that a part of a file is kept with.
PLAIN_MODE = 0o644
_OfRegions = Part | Names | Proposed | Between | Overlaid | Rewound
_ABSENT, _UNREADABLE = Bytes(None), Bytes("unreadable")


class RegionLooker:
    """The region part of one looker.

    Args:
        text: returns a plain file's bytes and permission bits, by its absolute path; otherwise a
            `Bytes`.
        keep: turns bytes, with the permission bits of their file, into a fact.
        content: returns the bytes of this hash, if they are kept.
    """

    def __init__(
        self, text: Callable[[str], tuple[bytes, int] | Bytes],
        keep: Callable[[bytes, int], Bytes], content: Callable[[str], bytes | None],
    ) -> None:
        self._text, self._keep, self._content = text, keep, content
        self._regions = FileRegions()

    def close(self) -> None:
        """End the process for the grammars, if there is one."""
        self._regions.close()

    def rest(self) -> None:
        """Use the time while no request waits."""
        self._regions.expect()

    def fact(self, need: _OfRegions, path: str) -> Fact:
        """Answer a need about the file at this absolute path."""
        if isinstance(need, Part | Rewound | Names) and need.of is not None:
            before = self._content(need.of)
            if before is None:
                return [] if isinstance(need, Names) else _UNREADABLE
            return self._of_text(need, path, before,
                                 0o755 if is_executable(need.of) else PLAIN_MODE)
        found = self._text(path)
        if isinstance(found, Bytes):  # no file, or no text
            return self._of_no_text(need, found)
        return self._of_text(need, path, *found)

    def _of_text(self, need: _OfRegions, path: str, data: bytes, mode: int) -> Fact:
        """Answer a need about this content of the file, with these permission bits."""
        if isinstance(need, Names):
            return self._regions.names(path, data)
        if isinstance(need, Proposed):
            if len(data) > PROPOSED_BYTES_MAX:
                return Parts(None, digest(data))
            return self._regions.proposed(path, data, need.edits)
        if isinstance(need, Between):
            before = self._content(need.before)
            return Parts(None) if before is None else self._regions.between(path, before, data)
        if isinstance(need, Part):
            part = self._regions.part(path, data, need.name)
            return _ABSENT if part is None else self._keep(part, PLAIN_MODE)
        if isinstance(need, Overlaid):
            before = self._content(need.before)
            back = None if before is None else self._overlaid(need, path, data, before)
            return _UNREADABLE if back is None else self._keep(back, mode)
        return self._rewound(need, path, data, mode)

    def _overlaid(self, need: Overlaid, path: str, data: bytes, before: bytes) -> bytes | None:
        """Put the regions into the earlier content. A new one gets its place, or the end."""
        parts = [(name, self._regions.part(path, data, name)) for name in need.names]
        made = rewound(self._regions, path, before, [Then(*part, data) for part in parts], ())
        return made if made is not None else rewound(
            self._regions, path, before, [Then(*part) for part in parts])

    def _of_no_text(self, need: _OfRegions, found: Bytes) -> Fact:
        if isinstance(need, Names):
            return []
        if isinstance(need, Proposed | Between):
            return Parts(None, found.hash)
        if isinstance(need, Part | Overlaid):
            return found
        if found.hash is None and all(was is None for _, was in need.parts):
            return _ABSENT
        # A file that is no text has no regions.
        last = need.gone if found.hash is None else need.last
        was = self._content(last) if last is not None else None
        return _UNREADABLE if was is None else self._rewound(need, need.path, was, PLAIN_MODE)

    def _rewound(self, need: Rewound, path: str, data: bytes, mode: int) -> Bytes:
        parts = []
        wholes = [None if whole is None else self._content(whole) for whole in need.wholes]
        for (name, was), whole in zip_longest(need.parts, wholes):
            there = self._regions.part(path, data, name)
            before = None
            if was is not None:
                same = there is not None and digest(there) == was
                before = there if same else self._content(was)
                if before is None:
                    return _UNREADABLE  # its earlier content is not kept
            parts.append(Then(name, before, whole))
        back = rewound(self._regions, path, data, parts, need.others)
        return _UNREADABLE if back is None else self._keep(back, mode)
