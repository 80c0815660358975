"""Dividing contents into regions for a look: one region, the changes of an edit, the differences
between two contents.

The module owns a process for the grammars, and the outlines by the names of contents, because the
outline of a content never changes. It opens no file and decides nothing.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import OrderedDict
from collections.abc import Sequence
from threading import Event, Lock, Thread

import msgspec

from coordinator.files.content import digest
from coordinator.looking.facts import Parts
from coordinator.regions import json_commas
from coordinator.regions.differences import changed
from coordinator.regions.languages import has_meaning, language_of
from coordinator.regions.outline import Outline, Region, bare
from coordinator.rules.edits import Edit, candidate
from coordinator.rules.function_bodies import is_body_alone
from coordinator.source.outlines import Outlines
from coordinator.words.resource_names import HEADER

#: Languages in which an outermost definition reads alone as it does in its file.
PIECEWISE = frozenset({
    "python", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "c-sharp",
})
#: A file of so many bytes is divided in a moment.
SMALL_BYTES = 16 * 1024
#: How many outlines are remembered; one takes some hundred bytes a region.
OUTLINES_MAX = 200


class FileRegions:
    """One process for the grammars, started when it is first needed. `proposed` and `expect` are
    for one thread; the other methods are for any."""

    def __init__(self) -> None:
        self._outlines = Outlines()
        self._lock = Lock()
        self._asked: dict[tuple[str, str, bool], Event] = {}
        self._known: OrderedDict[tuple[str, str, bool], Outline] = OrderedDict()
        self._expected: tuple[str, bytes] | None = None

    def close(self) -> None:
        """End the process."""
        self._outlines.close()

    def outline(self, path: str, data: bytes, *, nested: bool = False) -> Outline:
        """Return the regions of this file and bytes. `nested`: also those inside of functions."""
        language = language_of(path, data[:200]) or ""
        key = digest(data), language, nested
        while True:
            with self._lock:
                known_outline = self._known.get(key)
                if known_outline is not None:
                    self._known.move_to_end(key)
                    return known_outline
                asked = self._asked.get(key)
                if asked is None:
                    mine = self._asked[key] = Event()
                    break
            asked.wait()  # another thread has just asked the same
        try:
            known_outline = self._outlines.of(data, language, nested=nested)
            with self._lock:
                self._known[key] = known_outline
                if len(self._known) > OUTLINES_MAX:
                    self._known.popitem(last=False)
            return known_outline
        finally:
            with self._lock:
                del self._asked[key]
            mine.set()

    def part(self, path: str, data: bytes, name: str) -> bytes | None:
        """Return the bytes of a region with everything inside it; None if no region has this name.

        `<header>` is about the order of the whole file, so it has the whole file's bytes. So has a
        region of a file that is not divided. In JSON the comma behind a region is not part of it.
        """
        span = self.span(path, data, name)
        if span is None or name == HEADER:
            return None if span is None else data
        outline = self.outline(path, data)
        return data if outline.note else bare(outline, data[span[0]:span[1]])

    def span(self, path: str, data: bytes, name: str) -> tuple[int, int] | None:
        """Return the beginning and end of a region, including any comma."""
        outline = self.outline(path, data)
        if name == HEADER or outline.note:
            return 0, len(data)
        region = find(outline, name) or self._nested(path, data, name)
        return None if region is None else (region.start, region.end)

    def names(self, path: str, data: bytes) -> list[str]:
        """Return the names of the regions; empty if the file is not divided."""
        outline = self.outline(path, data, nested=True)
        return [] if outline.note else outline.names()

    def proposed(self, path: str, data: bytes, edits: Sequence[Edit]) -> Parts:
        """Return the regions that these edits would change."""
        made, name = candidate(data, edits), digest(data)
        if made is None:
            return Parts(None, name, unplaced=True)
        within = self._changed_within(path, data, made, name)
        if within is not None:
            self._expected = path, made
            names, outward = within
        else:
            names = self._changed(path, data, made)
            outward = names is None or _outward(
                path, names, self.outline(path, data), data, self.outline(path, made), made)
        return Parts(names, name, outward and has_meaning(path))

    def prepare(self, path: str, data: bytes) -> None:
        """Divide a file for later questions, in a thread beside the present request. A small file
        is divided when it is asked for."""
        if len(data) > SMALL_BYTES:
            Thread(target=self.outline, args=(path, data), daemon=True).start()

    def changed(self, path: str, before: bytes, after: bytes, *,
                header: bool = True) -> tuple[list[str] | None, bool]:
        """Return the regions that differ (None: the whole file), and whether the second cannot be
        read although the first could. Without `header`, only definitions count."""
        within = self._changed_within(path, before, after)
        if within is not None:
            return within[0], False
        old, new = self.outline(path, before), self.outline(path, after)
        return changed(old, before, new, after, header=header), new.broken and not old.broken

    def header(self, path: str, data: bytes) -> list[tuple[int, int]]:
        """Return the places of code outside definitions, without blanks and a byte order mark."""
        own = next(region for region in self.outline(path, data).regions if region.name == HEADER)
        first = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
        pieces = [(max(first, start), end) for start, end in own.spans]
        return [(start, end) for start, end in pieces if data[start:end].strip()]

    def misread(self, path: str, before: bytes, after: bytes) -> str:
        """Return an error of the second content that the grammar misses, if the first has none."""
        language = language_of(path, after[:200])
        wrong = self._outlines.errors(after, language) if language == "python" else ""
        return "" if wrong and self._outlines.errors(before, language) else wrong

    def expect(self) -> None:
        """Divide the result of the last proposed edit, while no request waits."""
        expected, self._expected = self._expected, None
        if expected is not None:
            self.outline(*expected)

    def between(self, path: str, before: bytes, data: bytes) -> Parts:
        """Return the regions that differ, in any order."""
        return Parts(self._changed(path, before, data, in_order=False), digest(data))

    def _changed_within(self, path: str, before: bytes, after: bytes,
                        name: str | None = None) -> tuple[list[str] | None, bool] | None:
        """Return the changed regions, and whether other code sees the change, if all differences
        are inside one definition; None if they are not. Only it is parsed.

        Bytes that read as one definition alone, from the first to the last, read as that in their
        place, too: the text around them is the same, and no bracket is left open.
        """
        outline = self._known.get((name or digest(before),
                                   language_of(path, before[:200]) or "", False))
        if outline is None or outline.note or outline.broken or outline.language not in PIECEWISE:
            return None
        same = _common(before, after)
        rest = _common(before[same:][::-1], after[same:][::-1])
        around = _top_around(outline, same, len(before) - rest)
        if around is None:
            return None
        start, end = around.start, around.end
        old, new = before[start:end], after[start:end + len(after) - len(before)]
        was = _cut(outline, start, end)
        now = self._outlines.of(new, outline.language)
        if now.note or now.broken or [region.name for region in now.regions
                                      if _is_top(now, region)] != [HEADER, around.name]:
            return None
        names = changed(was, old, now, new)
        return names, names is None or _outward(path, names, was, old, now, new)

    def find_region(self, path: str, data: bytes, name: str) -> Region | None:
        """Return the region of this name, even inside of functions; None if no region has it."""
        return find(self.outline(path, data), name) or self._nested(path, data, name)

    def _nested(self, path: str, data: bytes, name: str) -> Region | None:
        return find(self.outline(path, data, nested=True), name) if "." in name else None

    def _changed(self, path: str, before: bytes, after: bytes,
                 in_order: bool = True) -> list[str] | None:
        if before == after:
            return []
        return changed(self.outline(path, before), before, self.outline(path, after), after,
                       in_order=in_order)


def _common(data: bytes, two: bytes) -> int:
    """Count the bytes that both begin with."""
    low, high = 0, min(len(data), len(two))
    while low < high:  # compared in halves: slices are compared faster than bytes in a loop
        middle = (low + high + 1) // 2
        if data[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _top_around(outline: Outline, start: int, end: int) -> Region | None:
    """Return the outermost definition around these bytes, if its own ends are not among them."""
    for region in outline.regions:
        if (region.start < start and end < region.end and region.kind in ("function", "class")
                and _is_top(outline, region) and "#" not in region.name):
            return region
    return None


def _cut(outline: Outline, start: int, end: int) -> Outline:
    """Return the outline of these bytes alone, which are one definition with its inside."""
    def moved(region: Region) -> Region:
        return msgspec.structs.replace(
            region, start=region.start - start, end=region.end - start,
            spans=[(a - start, b - start) for a, b in region.spans])

    header = next(region for region in outline.regions if region.name == HEADER)
    inside = [moved(region) for region in outline.regions if region.name != HEADER
              and start <= region.start and region.end <= end]
    empty = msgspec.structs.replace(header, start=0, end=0, spans=[])
    return msgspec.structs.replace(outline, regions=[empty, *inside], size=end - start)


def _is_top(outline: Outline, region: Region) -> bool:
    return not any(other.name != HEADER and other is not region and other.start <= region.start
                   and region.end <= other.end for other in outline.regions
                   if other.kind == "class")


def _outward(path: str, names: Sequence[str], was: Outline, before: bytes, now: Outline,
             after: bytes) -> bool:
    """Whether other code may see a change of these regions."""
    for name in names:
        old, new = find(was, name), find(now, name)
        if old is None or new is None or not is_body_alone(
                path, before[old.start:old.end], after[new.start:new.end]):
            return True
    return False


def with_commas(path: str, before: bytes, made: bytes) -> bytes:
    """Return a file made of another's regions and further ones, with the commas between them that
    JSON requires, if the other file had them so."""
    if language_of(path, before[:200]) != "json" or json_commas.mended(before) != before:
        return made
    return json_commas.mended(made)


def find(outline: Outline, name: str) -> Region | None:
    """Return the region of an outline with this name; None if no region has it."""
    return next((region for region in outline.regions if region.name == name), None)
