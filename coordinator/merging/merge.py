"""The decision: from three versions of a file, and git's merge of them, to one.

Owns the order of attempts. git's own merge comes first. If it is clean and sound, it is the result.
Otherwise `containers` merges the regions, and their merge is the result if it is sound and
complete. Otherwise there are conflicts: those of the merge by region if it has fewer and the rest
of it is sound; otherwise those that git marked; and if git marked none, around the faults.

Pure except for its arguments: git's merge by lines, and the reading of bytes in a process of its
own. Line ends, a byte order mark, and whether the last line has an end are merged apart, so that no
line differs by these alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from coordinator.merging import checks, containers
from coordinator.merging.checks import Fault
from coordinator.merging.items import FILE, Item, items
from coordinator.merging.model import Clash, LineMerge, Lines, Merged, Read, Segments, Side
from coordinator.regions.outline import FILE_BYTES_MAX
from coordinator.regions.reading import Reading

#: Languages in which the rest of a file may be read as a part of a text that is not closed.
DATA = frozenset({"json", "toml", "yaml"})
_BOM = b"\xef\xbb\xbf"
#: As in git, a NUL among so many first bytes makes a file binary.
_BINARY_BYTES = 8000


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a file, apart from its text."""

    bom: bool
    crlf: bool
    ended: bool


def merge(
    base: bytes, ours: bytes, theirs: bytes, *, git: Lines, lines: LineMerge, read: Read,
    sides: tuple[Side, Side] = (Side("ours"), Side("theirs")),
) -> Merged:
    """Merge three versions of one file.

    Args:
        git: git's own merge of the three, with its markers.
        lines: git's merge, for parts of them.
        read: reads the facts of a text's bytes.
        sides: the names in conflicts: ours, theirs.
    """
    taken = _take_side(base, ours, theirs)
    if taken is not None:
        return Merged(taken, "git")
    own = _own(git)
    versions = (base, ours, theirs)
    if any(map(_is_no_text, versions)):
        return own
    readings = [read(version) for version in versions]
    note = next(filter(None, (reading.outline.note for reading in readings)), "")
    if note:
        return replace(own, notes=(f"not divided: {note}",)) if git.conflicts else own
    faults = [] if git.conflicts else checks.sound(readings, read(git.data))
    if not git.conflicts and not faults:
        return own
    unread = _say_unread(readings)
    if unread:
        return replace(own, notes=(f"{unread}, so nothing could be shown right",))
    merged = _Regions(versions, readings, lines, read, sides).merge()
    notes = (*(f"git's merge is clean, but {fault.why}" for fault in faults), *merged.notes)
    if merged.by == "regions":
        return replace(merged, notes=notes)
    if faults:
        return _mark_faults(git.data, versions, faults, lines, read, sides, notes)
    if 0 < merged.markers <= git.conflicts:
        return replace(merged, notes=notes)
    return replace(own, conflicts=merged.conflicts, notes=notes)


def _take_side(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the side that is the merge, if one left the file as it was, or both did the same."""
    if ours == base:
        return theirs
    return ours if theirs in (base, ours) else None


def _is_no_text(version: bytes) -> bool:
    return b"\0" in version[:_BINARY_BYTES] or len(version) > FILE_BYTES_MAX


def _say_unread(readings: Sequence[Reading]) -> str:
    """Say which versions cannot be read, and so their merge cannot; otherwise empty."""
    language = readings[0].outline.language
    if language in DATA and len({reading.outline.broken for reading in readings}) > 1:
        return "not all three can be read"
    if any(reading.outline.language == "python"
           and (reading.python is None or not reading.python.parsed) for reading in readings):
        return "not all three are Python"
    return ""


def _own(git: Lines) -> Merged:
    return Merged(git.data, "conflict" if git.conflicts else "git", markers=git.conflicts)


class _Regions:
    """The merge by region of texts that are all divided."""

    def __init__(
        self, versions: tuple[bytes, bytes, bytes], readings: Sequence[Reading],
        lines: LineMerge, read: Read, sides: tuple[Side, Side],
    ) -> None:
        forms = [_form(version) for version in versions]
        self._uniform = None not in forms
        self._form = _Form(False, False, True)
        self._texts: Sequence[bytes] = versions
        self._readings = readings
        self._lines = lines
        self._read = read
        self._sides = sides
        if self._uniform:
            was, mine, other = (form for form in forms if form is not None)
            self._form = _Form(
                _pick(was.bom, mine.bom, other.bom), _pick(was.crlf, mine.crlf, other.crlf),
                _pick(was.ended, mine.ended, other.ended),
            )
            self._texts = [_plain(version) for version in versions]
            self._readings = [
                reading if text == raw else read(text)
                for text, raw, reading in zip(self._texts, versions, readings, strict=True)
            ]

    def merge(self) -> Merged:
        """Return a clean merge, or conflicts with markers. `conflict` without markers means that
        the regions cannot be merged."""
        if not self._uniform:
            return Merged(b"", "conflict", notes=("its lines do not all end alike",))
        made = [items(text, reading)
                for text, reading in zip(self._texts, self._readings, strict=True)]
        listed = [entry for entry in made if entry is not None]
        if len(listed) < 3:
            return Merged(b"", "conflict", notes=("its regions are not on lines of their own",))
        done = self._merged(listed, containers.Notes())
        if done.by == "conflict" and any("before it is bound" in note for note in done.notes):
            again = self._merged(listed, containers.Notes(settles=True))
            return again if again.by == "regions" else done
        return done

    def _merged(self, listed: Sequence[Sequence[Item]], noted: containers.Notes) -> Merged:
        segments = containers.merge(listed, self._lines, noted, FILE)
        if segments is None:
            return Merged(b"", "conflict", notes=("both sides arranged the file anew",))
        clashes = [clash for clash in segments if isinstance(clash, Clash)]
        if not clashes:
            data = _resolved(segments, "ours")
            faults = self._faults(data, noted, listed)
            if faults:
                return Merged(b"", "conflict", notes=tuple(
                    f"merged by region {fault.why}" for fault in faults))
            return Merged(self._formed(data), "regions")
        for side in ("ours", "theirs"):
            if checks.sound(self._readings, self._read(_resolved(segments, side))):
                return Merged(b"", "conflict", clashes)
        data, markers = render(segments, self._lines, self._sides)
        return Merged(self._formed(data), "conflict", clashes, markers)

    def _faults(
        self, data: bytes, noted: containers.Notes, listed: Sequence[Sequence[Item]],
    ) -> list[Fault]:
        result = self._read(data)
        faults = checks.sound(self._readings, result)
        if not noted.renames:
            faults += checks.kept(self._readings, result)
        without: list[Sequence[Item] | None] = [None] * 4
        made = items(data, result)
        faults += checks.imports_renamed(listed)
        if result.outline.language == "python":
            faults += checks.imported_once(listed, made or ())
        if noted.imports:
            without = [*listed, made]
        return faults + checks.complete(self._texts, data, without, noted.shared)

    def _formed(self, data: bytes) -> bytes:
        form = self._form
        if not form.ended:
            data = data.removesuffix(b"\n")
        if form.crlf:
            data = data.replace(b"\n", b"\r\n")
        return _BOM + data if form.bom else data


def _resolved(segments: Segments, side: str) -> bytes:
    return b"".join(clash if isinstance(clash, bytes) else getattr(clash, side) for clash
                    in segments)


def render(segments: Segments, lines: LineMerge, sides: tuple[Side, Side]) -> tuple[bytes, int]:
    """Return the text with markers around the conflicts, and the number of marked conflicts."""
    result: list[bytes] = []
    count = 0
    for clash in segments:
        if isinstance(clash, bytes):
            result.append(clash)
            continue
        labels = (f"{sides[0].line()}: {clash.name}", f"base: {clash.name}",
                  f"{sides[1].line()}: {clash.name}: {clash.why}")
        merged = lines(clash.base, clash.ours, clash.theirs, labels)
        if merged.conflicts:
            result.append(merged.data)
            count += merged.conflicts
        else:
            result.append(_by_hand(clash, lines, labels))
            count += 1
    return b"".join(result), count


def _by_hand(clash: Clash, lines: LineMerge, labels: tuple[str, str, str]) -> bytes:
    size = lines.marker_size
    ours, base, theirs = (label.encode("utf-8", "surrogateescape") for label in labels)
    result = [b"<" * size + b" " + ours + b"\n", clash.ours]
    if lines.shows_base:
        result += [b"|" * size + b" " + base + b"\n", clash.base]
    result += [b"=" * size + b"\n", clash.theirs, b">" * size + b" " + theirs + b"\n"]
    return b"".join(result)


def _mark_faults(
    data: bytes, versions: Sequence[bytes], faults: Sequence[Fault], lines: LineMerge, read: Read,
    sides: tuple[Side, Side], notes: tuple[str, ...],
) -> Merged:
    """Mark the faults that a check found in git's clean result."""
    why = faults[0].why
    form = _form(data)
    segments = _blame_items(data, versions, faults, read)
    if segments is not None and form is not None:
        clashes = [clash for clash in segments if isinstance(clash, Clash)]
        text, count = render(segments, lines, sides)
        if form.crlf:
            text = text.replace(b"\n", b"\r\n")
        return Merged(_BOM + text if form.bom else text, "conflict", clashes, count, notes)
    ended = [version if version.endswith(b"\n") or not version else version + b"\n" for version
             in versions]
    text = _by_hand(Clash(FILE, why, *ended), lines,
                    (sides[0].line(), "base", f"{sides[1].line()}: {why}"))
    return Merged(text, "conflict", (Clash(FILE, why, *versions),), 1, notes)


def _blame_items(
    data: bytes, versions: Sequence[bytes], faults: Sequence[Fault], read: Read,
) -> Segments | None:
    """Return the items of a result, with conflicts where faults name one; None if unknown."""
    words = [name for fault in faults for name in fault.names]
    if not words or None in map(_form, (*versions, data)):
        return None
    texts = [_plain(version) for version in (*versions, data)]
    listed: list[Sequence[Item]] = []
    for text in texts:
        made = items(text, read(text))
        if made is None:
            return None
        listed.append(made)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(_last(word))}(?!\w)" for word in words)
                         .encode())
    return _mark_blamed(listed, pattern, faults[0].why)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _mark_blamed(
    listed: Sequence[Sequence[Item]], pattern: re.Pattern[bytes], why: str,
) -> Segments | None:
    """Return the items of a result. Items with one of these names that differ between the sides
    become conflicts. None if there are none."""
    by_name = [{item.key or item.text: item for item in other_items} for other_items in listed[:3]]
    segments: Segments = []
    found = False
    for item in listed[3]:
        base, ours, theirs = (names.get(item.key or item.text) for names in by_name)
        same = ours is not None and theirs is not None and ours.text == theirs.text
        if not same and pattern.search(item.text):
            found = True
            segments.append(Clash(item.name, why, *(
                item.text if item is not None else b"" for item in (base, ours, theirs))))
        else:
            segments.append(item.text)
        segments.append(item.blank)
    return segments if found else None


def _form(data: bytes) -> _Form | None:
    """Return the form of a file; None if its lines do not all end alike."""
    crlf, all_ = data.count(b"\r\n"), data.count(b"\n")
    if crlf not in (0, all_):
        return None
    return _Form(data.startswith(_BOM), bool(crlf), data.endswith(b"\n") or not data)


def _plain(data: bytes) -> bytes:
    data = data.removeprefix(_BOM).replace(b"\r\n", b"\n")
    return data if data.endswith(b"\n") or not data else data + b"\n"


def _pick(base: bool, ours: bool, theirs: bool) -> bool:
    return theirs if ours == base else ours
