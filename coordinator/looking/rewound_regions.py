"""A file as it is, but for some of its regions, which are as they were.

Works on bytes and their regions alone: told by the grammar where that can tell them, else by the
lines that they had. Opens no file. What it cannot tell apart it does not guess: it says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from coordinator.looking.file_regions import FileRegions, find
from coordinator.regions.outline import Outline, Region
from coordinator.regions.rewound_lines import Earlier, put_back
from coordinator.words.resource_names import HEADER

#: Two texts of one definition, of which the name alone was changed, are as alike (0 to 1); and one
#: of which more was. What is longer (bytes) is compared by its lines.
ALIKE, LIKE, ALIKE_BYTES_MAX = 0.9, 0.5, 4_000


class Then(NamedTuple):
    """A region as it was.

    Attributes:
        name: what it was called.
        was: its bytes; None: it was not there.
        whole: those of its file when it was so, if they are kept.
    """

    name: str
    was: bytes | None
    whole: bytes | None = None


def rewound(regions: FileRegions, path: str, data: bytes, parts: Sequence[Then],
            others: Collection[str] | None = None) -> bytes | None:
    """The file as it is, but for these regions (what was leased last comes first), which are as
    they were. `others`: what others have leased meanwhile, where that is known.

    One that is not there any more comes back to where it was in the whole, in the place of what is
    new there; else to the end of what contained it. Of a file with nothing of the whole left in it,
    that is what it was. None: it is broken, and what was done in these regions cannot be told from
    what was done in others.
    """
    parts = _with_one_beginning(regions, path, parts)
    for together in _apart(parts):
        changed = [one for one in together if one.was != regions.part(path, data, one.name)]
        if changed:
            back = _put_back(regions, path, data, changed,
                             _whole_for(regions, path, changed, parts), others)
            if back is None:
                return None
            data = back
    return data


def _with_one_beginning(regions: FileRegions, path: str, parts: Sequence[Then]) -> list[Then]:
    """The same; what an older one of these had become when it was leased once more, by its new
    name, was not there when the work on it began."""
    return [one._replace(was=None) if any(
        _has_become(regions, path, older, one) for older in parts[n + 1:]) else one
        for n, one in enumerate(parts)]


def _has_become(regions: FileRegions, path: str, old: Then, new: Then) -> bool:
    if (old.was is None or old.whole is None or new.was is None or new.whole is None
            or HEADER in (old.name, new.name)
            or regions.found(path, new.whole, old.name) is not None):
        return False
    for name in _with_around(new.name):
        text = regions.part(path, new.whole, name)
        if (text is not None and regions.found(path, old.whole, name) is None
                and _is_alike(old.was, text, LIKE)):
            return True
    return False


def _with_around(name: str) -> Iterator[str]:
    """A name, and those of what it is a part of."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _whole_for(regions: FileRegions, path: str, changed: Sequence[Then],
               parts: Sequence[Then]) -> bytes | None:
    """The last content of the file in which all that was there is found; else the first."""
    wholes = [one.whole for one in parts if one.whole is not None]
    return next((whole for whole in wholes if all(
        one.was is None or regions.found(path, whole, one.name) is not None
        for one in changed)), wholes[-1] if wholes else None)


def _apart(parts: Sequence[Then]) -> list[list[Then]]:
    """The same in their order, those together of which none is a part of another."""
    out: list[list[Then]] = []
    for one in parts:
        if not out or any(f"{one.name}.".startswith(f"{other.name}.")
                          or f"{other.name}.".startswith(f"{one.name}.") for other in out[-1]):
            out.append([])
        out[-1].append(one)
    return out


def _put_back(regions: FileRegions, path: str, data: bytes, parts: Sequence[Then],
              whole: bytes | None, others: Collection[str] | None) -> bytes | None:
    names = {one.name for one in parts}
    outline = regions.outline(path, data)
    old = None if whole is None else regions.outline(path, whole)
    new = {one.name for one in parts if one.was is None} | (
        set() if old is None else _called_otherwise(old, outline, data, parts, others))
    if whole is not None and old is not None and _is_unsure(old, outline, names) and (
            not _is_plain(old, whole, outline, data, names, new, others or ())):
        back = _by_lines(regions, path, data, parts, whole)
        if back is not None and not _keeps(old, outline, data, regions.outline(path, back), back,
                                           names, new):
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
        first = next((one.was for one in parts if one.name == HEADER or outline.note), None)
        return data if first is None else first
    for start, end, _, was in sorted(_pieces(regions, path, data, parts, whole, others or ()),
                                    reverse=True):
        data = data[:start] + was + data[end:]
    return data


def _pieces(regions: FileRegions, path: str, data: bytes, parts: Sequence[Then],
            whole: bytes | None, others: Collection[str]) -> list[tuple[int, int, int, bytes]]:
    """What has to stand where, in place of what: first byte, byte after the last, which of those at
    one place comes first."""
    names = {one.name for one in parts}
    outline = regions.outline(path, data)
    old = None if whole is None else regions.outline(path, whole)
    there, gone = [], []
    for one in parts:
        if _is_covered(one.name, names - {one.name}):
            continue  # it is a part of that one
        found = regions.found(path, data, one.name)
        if found is not None:
            there.append((found, one.was or b""))
        elif one.was:
            place = None if old is None or whole is None else _slot(
                old, whole, outline, data, one.name, others)
            gone.append((place, one.name, one.was))
    pieces: list[tuple[int, int, int, bytes]] = []
    taken: list[_Slot] = []
    for number, (place, name, was) in enumerate(sorted(gone, key=_place_in_whole)):
        same = place is not None and any(one.start == place.start < place.end == one.end
                                         for one in taken)
        if place is not None and (same or _is_free(place, taken, there)):
            taken.append(place)
            pieces.append((place.end if same else place.start, place.end, number,
                           place.before + was))
            continue
        at = _end_of_container(outline, name, len(data))
        pieces.append((at, at, number, _new_line(data, at) + was))
    for found, was in there:
        if was or not any(one.start <= found.start and found.end <= one.end for one in taken):
            pieces.append((found.start, found.end, 0, was))
    return pieces


def _is_free(place: _Slot, taken: Sequence[_Slot],
             there: Sequence[tuple[Region, bytes]]) -> bool:
    """Whether nothing else comes to this place, but what is new there and is to go."""
    return not any(one.start < place.end and place.start < one.end for one in taken) and not any(
        found.start < place.end and place.start < found.end
        and (was != b"" or found.name not in place.new) for found, was in there)


def _place_in_whole(one: tuple[_Slot | None, str, bytes]) -> int:
    return -1 if one[0] is None else one[0].was_at


def _by_lines(regions: FileRegions, path: str, data: bytes, parts: Sequence[Then],
              whole: bytes) -> bytes | None:
    """The same where the grammar cannot tell where these regions are now: by the lines that they
    had in `whole`."""
    names = {one.name for one in parts}
    earlier, new = [], []
    for one in parts:
        if _is_covered(one.name, names - {one.name}):
            continue
        found = regions.found(path, whole, one.name)
        if found is not None:
            earlier.append(Earlier(found.start, found.end, one.was or b"",
                                   found.kind == "section"))
        elif one.was is not None:
            return None
        else:
            new.append(one.name.rpartition(".")[2].encode())
    return put_back(whole, data, earlier, new)


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


def _is_plain(old: Outline, whole: bytes, now: Outline, data: bytes, names: Collection[str],
              new: Collection[str], others: Collection[str]) -> bool:
    """Whether these regions are all there, or have only gone: nothing new is in their places, but
    what is `new` of them."""
    if now.note or now.broken or old.broken:
        return False
    there = {one.name for one in now.regions}
    gone = [name for name in names if name not in there]
    if any(_is_covered(one, gone) for one in there) or any(
            one.name not in there and not _is_covered(one.name, names) for one in old.regions):
        return False  # a part of one is left, or another is not there
    slots = [_slot(old, whole, now, data, name, others) for name in gone]
    return all(one is not None and (one.start == one.end or (
        bool(one.new) and one.new.issubset(new))) for one in slots)


def _keeps(old: Outline, now: Outline, data: bytes, then: Outline, back: bytes,
           names: Collection[str], new: Collection[str]) -> bool:
    """Whether what was put back by its lines has taken nothing of others with it: where the file
    can be read, their regions are there as they are (but those that are new of these); else those
    that were there before."""
    before, after = {one.name for one in old.regions}, {one.name: one for one in then.regions}
    for one in now.regions:
        if one.name == HEADER or _is_covered(one.name, names) or any(
                _is_covered(name, [one.name]) for name in names):
            continue
        if one.name not in after:
            if one.name in before and not then.broken:
                return False
            if not now.broken and not _is_covered(one.name, new):
                return False
        elif not now.broken and (data[one.start:one.end].strip()
                                 != back[after[one.name].start:after[one.name].end].strip()):
            return False
    return True


def _called_otherwise(old: Outline, now: Outline, data: bytes, parts: Sequence[Then],
                      others: Collection[str] | None) -> set[str]:
    """What is new and is one of these regions, which is not there any more, by another name. Where
    it is not known what others have leased, only what is plainly that."""
    before, there = ({one.name for one in outline.regions} for outline in (old, now))
    gone = [one.was for one in parts if one.was and one.name not in there]
    least = ALIKE if others is None else LIKE
    return {one.name for one in now.regions
            if one.name not in before and not _is_covered(one.name, others or ())
            and any(_is_alike(was, data[one.start:one.end], least) for was in gone)}


def _is_alike(one: bytes, other: bytes, least: float) -> bool:
    """Whether the one is as much the other."""
    if max(len(one), len(other)) > ALIKE_BYTES_MAX:
        return SequenceMatcher(None, one.splitlines(), other.splitlines()).ratio() >= least
    return SequenceMatcher(None, one.strip(), other.strip(), autojunk=False).ratio() >= least


class _Slot(NamedTuple):
    """Where a region comes back to: the bytes that it takes the place of, and what has to stand
    before it. `was_at`: where it was; `new`: what is there by now, and was not."""

    start: int
    end: int
    was_at: int
    before: bytes = b""
    new: frozenset[str] = frozenset()


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


def _slot(old: Outline, whole: bytes, now: Outline, data: bytes, name: str,
          others: Collection[str]) -> _Slot | None:
    """Where a top definition that is gone was, between those that are still there; None: that
    cannot be told. (What others have leased there has not become of it.)"""
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
    theirs = [one for one in new if _is_covered(one.name, others)]
    new = [one for one in new if one not in theirs]
    if any(min(one.start for one in new) < one.start < max(one.end for one in new)
           for one in theirs if new):
        return None
    if new:  # what it has become, most likely
        return _Slot(min(one.start for one in new), max(one.end for one in new), was[at].start,
                     new=frozenset(one.name for one in new))
    if after is not None:
        return _Slot(end, end, was[at].start)
    return _Slot(start, start, was[at].start,
                 _blanks(whole[:was[at].start])[len(_blanks(data[:start])):])


def _blanks(text: bytes) -> bytes:
    """The white space at its end, which belongs to the definition before it."""
    return text[len(text.rstrip()):]


def _end_of_container(outline: Outline, name: str, size: int) -> int:
    above = name.rpartition(".")[0]
    while above:
        found = find(outline, above)
        if found is not None:
            return found.end
        above = above.rpartition(".")[0]
    return size


def _new_line(data: bytes, at: int) -> bytes:
    """What has to stand before a line that is put here."""
    return b"" if at == 0 or data[at - 1] == 0x0A else b"\n"
