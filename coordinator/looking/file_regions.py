"""What a file's bytes are in regions, for those who look: one of them, what an edit would change,
what differs between two contents, how the file would be if some of them were as before.

Owns a process for the grammars and the outlines that it has told, by the content's name: what a
content is divided into never changes. Opens no file, and decides nothing.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import OrderedDict
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from threading import Event, Lock, Thread
from typing import NamedTuple

import msgspec

from coordinator.files.content import digest
from coordinator.looking.facts import Parts
from coordinator.meaning.languages import is_known
from coordinator.regions.differences import changed
from coordinator.regions.languages import language_of
from coordinator.regions.outline import Outline, Region
from coordinator.regions.process import Outlines
from coordinator.regions.rewound_lines import Earlier, put_back
from coordinator.rules.edits import Edit, candidate
from coordinator.rules.function_bodies import is_body_alone
from coordinator.words.resource_names import HEADER

#: Languages in which a definition outside of all others reads alone as it does in its file.
PIECEWISE = frozenset({
    "python", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "c-sharp",
})
#: A file of so many bytes is divided in a moment.
SMALL_BYTES = 16 * 1024
#: Outlines that are remembered; one takes some hundred bytes a region.
OUTLINES_MAX = 200
#: Two texts of one definition, of which the name alone was changed, are as alike (0 to 1); what is
#: longer (bytes) is not compared.
ALIKE, ALIKE_BYTES_MAX = 0.9, 4_000
#: A part of a file: the region's name, and its bytes, or None where there is none.
Part = tuple[str, bytes | None]


class FileRegions:
    """One process for the grammars, started when it is first needed. (`proposed` and `expect` are
    for one thread; the rest for any.)"""

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
        """The regions of a file with this name and these bytes; `nested`: also those inside of
        functions."""
        language = language_of(path, data[:200]) or ""
        key = digest(data), language, nested
        while True:
            with self._lock:
                known = self._known.get(key)
                if known is not None:
                    self._known.move_to_end(key)
                    return known
                asked = self._asked.get(key)
                if asked is None:
                    mine = self._asked[key] = Event()
                    break
            asked.wait()  # somebody else has just asked the same
        try:
            known = self._outlines.of(data, language, nested=nested)
            with self._lock:
                self._known[key] = known
                if len(self._known) > OUTLINES_MAX:
                    self._known.popitem(last=False)
            return known
        finally:
            with self._lock:
                del self._asked[key]
            mine.set()

    def part(self, path: str, data: bytes, name: str) -> bytes | None:
        """The bytes of a region with all that it contains; None: there is none of that name.

        `<header>` is about the order of the whole file, so it has the whole file's bytes; so has a
        region of a file that is not divided.
        """
        span = self.span(path, data, name)
        return None if span is None else data[span[0]:span[1]]

    def span(self, path: str, data: bytes, name: str) -> tuple[int, int] | None:
        """Where these bytes begin and end."""
        outline = self.outline(path, data)
        if name == HEADER or outline.note:
            return 0, len(data)
        found = _find(outline, name) or self._nested(path, data, name)
        return None if found is None else (found.start, found.end)

    def names(self, path: str, data: bytes) -> list[str]:
        """The names of the regions; empty where the file is not divided."""
        outline = self.outline(path, data, nested=True)
        return [] if outline.note else outline.names()

    def proposed(self, path: str, data: bytes, edits: Sequence[Edit]) -> Parts:
        """What these edits would change."""
        made, name = candidate(data, edits), digest(data)
        if made is None:
            return Parts(None, name)
        within = self._changed_within(path, data, made, name)
        if within is not None:
            self._expected = path, made
            names, outward = within
        else:
            names = self._changed(path, data, made)
            outward = names is None or _outward(
                path, names, self.outline(path, data), data, self.outline(path, made), made)
        return Parts(names, name, outward and is_known(path))

    def prepare(self, path: str, data: bytes) -> None:
        """Divide what will be asked about next, beside whoever asks now; what is small is divided
        at once when it is asked about."""
        if len(data) > SMALL_BYTES:
            Thread(target=self.outline, args=(path, data), daemon=True).start()

    def changed(self, path: str, before: bytes, after: bytes, *,
                header: bool = True) -> tuple[list[str] | None, bool]:
        """The regions that differ (None: the whole file), and whether the second cannot be read
        where the first could. Without `header`, only definitions count."""
        within = self._changed_within(path, before, after)
        if within is not None:
            return within[0], False
        old, new = self.outline(path, before), self.outline(path, after)
        return changed(old, before, new, after, header=header), new.broken and not old.broken

    def header(self, path: str, data: bytes) -> list[tuple[int, int]]:
        """Where the code outside of all definitions stands, without pieces that are blank, and
        without a byte order mark."""
        own = next(one for one in self.outline(path, data).regions if one.name == HEADER)
        first = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
        pieces = [(max(first, start), end) for start, end in own.spans]
        return [(start, end) for start, end in pieces if data[start:end].strip()]

    def misread(self, path: str, before: bytes, after: bytes) -> str:
        """What is wrong with the second that the grammar does not tell, where nothing is with the
        first."""
        language = language_of(path, after[:200])
        wrong = self._outlines.errors(after, language) if language == "python" else ""
        return "" if wrong and self._outlines.errors(before, language) else wrong

    def expect(self) -> None:
        """Divide what the last proposed edit will leave, while nobody waits."""
        expected, self._expected = self._expected, None
        if expected is not None:
            self.outline(*expected)

    def between(self, path: str, before: bytes, data: bytes) -> Parts:
        """What differs, in whatever order it stands."""
        return Parts(self._changed(path, before, data, in_order=False), digest(data))

    def rewound(self, path: str, data: bytes, parts: Sequence[Part],
                whole: bytes | None = None) -> bytes | None:
        """The file as it is, but for these regions, which are as they are given. One that is not
        there any more comes back to where it was in `whole`, an earlier content of the file, in the
        place of what is new there; else to the end of what contained it. Of a file with nothing of
        `whole` left in it, that is what it was. None: it is broken, and what was done in these
        regions cannot be told from what was done in others."""
        names = {name for name, _ in parts}
        outline = self.outline(path, data)
        old = None if whole is None else self.outline(path, whole)
        if whole is not None and old is not None and _is_unsure(old, outline, names) and (
                not _is_plain(old, whole, outline, data, names)):
            back = self._by_lines(path, data, parts, whole)
            if back is not None and not _keeps(old, outline, data, self.outline(path, back), back,
                                               parts):
                back = None
            there, before = ({one.name for one in found.regions} for found in (outline, old))
            # (What is new in the place of one that is gone may be another's.)
            unsure = outline.broken or old.broken or any(
                name not in there and ("." in name or there - before) for name in names)
            if back is not None or (unsure and not _is_another(old, outline, names)):
                return back
        if whole is not None and old is not None and names and _is_another(old, outline, names):
            return whole
        if HEADER in names or outline.note:
            whole = next((was for name, was in parts if name == HEADER or outline.note), None)
            return data if whole is None else whole
        pieces: list[tuple[int, int, int, bytes]] = []
        for number, (name, was) in enumerate(parts):
            if _is_covered(name, names - {name}):
                continue  # it is a part of that one
            found = _find(outline, name) or self._nested(path, data, name)
            if found is not None:
                pieces.append((found.start, found.end, number, was or b""))
            elif was:
                place = None if old is None or whole is None else _slot(
                    old, whole, outline, data, name)
                if place is not None and not any(
                        one[0] < place.end and place.start < one[1] for one in pieces):
                    pieces.append((place.start, place.end, number, place.before + was))
                    continue
                at = _end_of_container(outline, name, len(data))
                pieces.append((at, at, number, _apart(data, at) + was))
        for start, end, _, was in sorted(pieces, reverse=True):
            data = data[:start] + was + data[end:]
        return data

    def _by_lines(self, path: str, data: bytes, parts: Sequence[Part],
                  whole: bytes) -> bytes | None:
        """The same where the grammar cannot tell where these regions are now: by the lines that
        they had in `whole`."""
        names = {name for name, _ in parts}
        earlier, new = [], []
        for name, was in parts:
            if _is_covered(name, names - {name}):
                continue
            found = _find(self.outline(path, whole), name) or self._nested(path, whole, name)
            if found is not None:
                earlier.append(Earlier(found.start, found.end, was or b"",
                                       found.kind == "section"))
            elif was is not None:
                return None
            else:
                new.append(name.rpartition(".")[2].encode())
        return put_back(whole, data, earlier, new)

    def _changed_within(self, path: str, before: bytes, after: bytes,
                        name: str | None = None) -> tuple[list[str] | None, bool] | None:
        """The same where all that differs is within one definition, of which alone the grammar is
        asked: a file has many; and whether others see it. None: so it cannot be told.

        What reads as one definition by itself, from its first byte to its last, reads as that in
        its place, too: what is around it is the same, and nothing is left open.
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

    def _nested(self, path: str, data: bytes, name: str) -> Region | None:
        return _find(self.outline(path, data, nested=True), name) if "." in name else None

    def _changed(self, path: str, before: bytes, after: bytes,
                 in_order: bool = True) -> list[str] | None:
        if before == after:
            return []
        return changed(self.outline(path, before), before, self.outline(path, after), after,
                       in_order=in_order)


def _common(one: bytes, two: bytes) -> int:
    """How many bytes they begin with alike."""
    low, high = 0, min(len(one), len(two))
    while low < high:  # compared in halves: slices are compared faster than bytes in a loop
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _top_around(outline: Outline, start: int, end: int) -> Region | None:
    """The definition outside of all others in which these bytes lie, its first line and its last
    bytes not among them."""
    for region in outline.regions:
        if (region.start < start and end < region.end and region.kind in ("function", "class")
                and _is_top(outline, region) and "#" not in region.name):
            return region
    return None


def _cut(outline: Outline, start: int, end: int) -> Outline:
    """The outline of these bytes alone, which are one definition with all that it contains."""
    def moved(region: Region) -> Region:
        return msgspec.structs.replace(
            region, start=region.start - start, end=region.end - start,
            spans=[(a - start, b - start) for a, b in region.spans])

    header = next(one for one in outline.regions if one.name == HEADER)
    inside = [moved(one) for one in outline.regions if one.name != HEADER
              and start <= one.start and one.end <= end]
    empty = msgspec.structs.replace(header, start=0, end=0, spans=[])
    return msgspec.structs.replace(outline, regions=[empty, *inside], size=end - start)


def _is_top(outline: Outline, region: Region) -> bool:
    return not any(other.name != HEADER and other is not region and other.start <= region.start
                   and region.end <= other.end for other in outline.regions
                   if other.kind == "class")


def _outward(path: str, names: Sequence[str], was: Outline, before: bytes, now: Outline,
             after: bytes) -> bool:
    """Whether others may see a change of these regions."""
    for name in names:
        old, new = _find(was, name), _find(now, name)
        if old is None or new is None or not is_body_alone(
                path, before[old.start:old.end], after[new.start:new.end]):
            return True
    return False


def _find(outline: Outline, name: str) -> Region | None:
    return next((one for one in outline.regions if one.name == name), None)


def _is_covered(name: str, others: Collection[str]) -> bool:
    """Whether a region is one of these, or a part of one."""
    return any(name == other or name.startswith(other + ".") for other in others)


def _is_unsure(old: Outline, now: Outline, names: Collection[str]) -> bool:
    """Whether these regions of a file that was divided may have others in them by now, or have lost
    a part of them: something is not closed, and what follows is read as a part of it; or one is not
    there, and what it was called before does not tell what it has become."""
    if old.note or HEADER in names:
        return False
    there = {one.name for one in now.regions}
    return bool(now.note) or now.broken or old.broken or any(
        one.name not in there and (one.name in names or not _is_covered(one.name, names))
        for one in old.regions)


def _is_plain(old: Outline, whole: bytes, now: Outline, data: bytes,
              names: Collection[str]) -> bool:
    """Whether these regions are all there, or have only gone: nothing new is in their places."""
    if now.note or now.broken or old.broken:
        return False
    there = {one.name for one in now.regions}
    gone = [name for name in names if name not in there]
    if any(_is_covered(one, gone) for one in there) or any(
            one.name not in there and not _is_covered(one.name, names) for one in old.regions):
        return False  # a part of one is left, or another is not there
    slots = [_slot(old, whole, now, data, name) for name in gone]
    return all(one is not None and one.start == one.end for one in slots)


def _keeps(old: Outline, now: Outline, data: bytes, then: Outline, back: bytes,
           parts: Sequence[Part]) -> bool:
    """Whether what was put back by its lines has taken nothing of others with it: where the file
    can be read, their regions are there as they are (but one that is plainly one of these, called
    otherwise); else those that were there before."""
    names = {name for name, _ in parts}
    before, after = {one.name for one in old.regions}, {one.name: one for one in then.regions}
    for one in now.regions:
        if one.name == HEADER or _is_covered(one.name, names) or any(
                _is_covered(name, [one.name]) for name in names):
            continue
        if one.name not in after:
            if one.name in before and not then.broken:
                return False
            if not now.broken and not any(was and _is_alike(
                    was, data[one.start:one.end]) for _, was in parts):
                return False
        elif not now.broken and (data[one.start:one.end].strip()
                                 != back[after[one.name].start:after[one.name].end].strip()):
            return False
    return True


def _is_alike(one: bytes, other: bytes) -> bool:
    """Whether the one is the other, but for a little."""
    if max(len(one), len(other)) > ALIKE_BYTES_MAX:
        return False
    return SequenceMatcher(None, one.strip(), other.strip(), autojunk=False).ratio() >= ALIKE


class _Slot(NamedTuple):
    """Where a region comes back to: the bytes that it takes the place of, and what has to stand
    before it."""

    start: int
    end: int
    before: bytes = b""


def _tops(outline: Outline) -> list[Region]:
    """The definitions outside of all others, in their order."""
    return sorted((one for one in outline.regions if one.name != HEADER and "." not in one.name),
                  key=lambda one: one.start)


def _is_another(old: Outline, now: Outline, names: Collection[str]) -> bool:
    """Whether nothing is left of a file that was divided: neither these regions nor others."""
    if old.note or HEADER in names:
        return False
    there = {one.name for one in now.regions} - {HEADER}
    return bool(now.note) or not there.intersection(one.name for one in old.regions)


def _slot(old: Outline, whole: bytes, now: Outline, data: bytes, name: str) -> _Slot | None:
    """Where a top definition that is gone was, between those that are still there; None: that
    cannot be told."""
    was, there = _tops(old), {one.name: one for one in _tops(now)}
    at = next((n for n, one in enumerate(was) if one.name == name), None)
    if at is None:
        return None
    before = next((one for one in reversed(was[:at]) if one.name in there), None)
    after = next((one for one in was[at + 1:] if one.name in there), None)
    if before is None and after is None:
        return None
    start = there[before.name].end if before is not None else 0
    end = there[after.name].start if after is not None else len(data)
    known = {one.name for one in was}
    new = [one for one in there.values()
           if one.name not in known and start <= one.start and one.end <= end]
    if new:  # what it has become, most likely
        return _Slot(min(one.start for one in new), max(one.end for one in new))
    if after is not None:
        return _Slot(end, end)
    return _Slot(start, start, _blanks(whole[:was[at].start])[len(_blanks(data[:start])):])


def _blanks(text: bytes) -> bytes:
    """The white space at its end, which belongs to the definition before it."""
    return text[len(text.rstrip()):]


def _end_of_container(outline: Outline, name: str, size: int) -> int:
    above = name.rpartition(".")[0]
    while above:
        found = _find(outline, above)
        if found is not None:
            return found.end
        above = above.rpartition(".")[0]
    return size


def _apart(data: bytes, at: int) -> bytes:
    """What has to stand before a line that is put here."""
    return b"" if at == 0 or data[at - 1] == 0x0A else b"\n"
