"""A file as it is, except for some of its regions, which are put back to an earlier state.

The module works on bytes and their regions: by the grammar where it can read them, otherwise by the
lines that they had. It opens no file. If it cannot tell regions apart, it says so and does not
guess.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import NamedTuple

from coordinator.looking.file_regions import FileRegions, find, with_commas
from coordinator.regions.outline import Outline, Region, bare
from coordinator.regions.rewound_lines import Earlier, put_back
from coordinator.words.resource_names import HEADER

#: The least likeness (0 to 1) of two texts of one definition if only the name was changed, and if
#: more was. Longer texts (bytes) are compared by their lines.
ALIKE, LIKE, ALIKE_BYTES_MAX = 0.9, 0.5, 4_000


class Then(NamedTuple):
    """A region as it was.

    Attributes:
        name: its name then.
        was: its bytes; None if it did not exist.
        whole: its file's bytes at that time, if they are kept.
    """

    name: str
    was: bytes | None
    whole: bytes | None = None


def rewound(regions: FileRegions, path: str, data: bytes, parts: Sequence[Then],
            others: Collection[str] | None = None) -> bytes | None:
    """Put these regions back to their earlier state, the last leased one first. `others`: the names
    that other agents have leased meanwhile, if known.

    A region that is gone comes back to its place in the whole, instead of new regions there;
    otherwise to the end of its container. If a file has no region of the whole left, the whole
    comes back. None if the file is broken, and work in these regions cannot be told from others'.
    """
    parts = _with_one_beginning(regions, path, parts)
    for together in _group_turns(parts):
        changed = [earlier for earlier in together if not _is_same(
            earlier.was, regions.part(path, data, earlier.name))]
        if changed:
            back = _put_back(regions, path, data, changed,
                             _whole_for(regions, path, changed, parts), others)
            if back is None:
                return None
            data = back
    return data


def _is_same(was: bytes | None, now: bytes | None) -> bool:
    """Whether a region is unchanged, except for blank lines below it (the next region's)."""
    return was == now or (was is not None and now is not None and was.rstrip() == now.rstrip())


def _with_one_beginning(regions: FileRegions, path: str, parts: Sequence[Then]) -> list[Then]:
    """Return the parts. If an older part was renamed before it was leased again by its new name,
    the new name did not exist when the work began."""
    return [earlier._replace(was=None) if any(
        _has_become(regions, path, older, earlier) for older in parts[n + 1:]) else earlier
        for n, earlier in enumerate(parts)]


def _has_become(regions: FileRegions, path: str, old: Then, new: Then) -> bool:
    if (old.was is None or old.whole is None or new.was is None or new.whole is None
            or HEADER in (old.name, new.name)
            or regions.find_region(path, new.whole, old.name) is not None):
        return False
    for name in _with_around(new.name):
        text = regions.part(path, new.whole, name)
        if (text is not None and regions.find_region(path, old.whole, name) is None
                and _is_alike(old.was, text, LIKE)):
            return True
    return False


def _with_around(name: str) -> Iterator[str]:
    """Yield a name, and the names of the regions around it."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _whole_for(regions: FileRegions, path: str, changed: Sequence[Then],
               parts: Sequence[Then]) -> bytes | None:
    """Return the file's last content that has all regions that existed; otherwise the first."""
    wholes = [part.whole for part in parts if part.whole is not None]
    return next((whole for whole in wholes if all(
        earlier.was is None or regions.find_region(path, whole, earlier.name) is not None
        for earlier in changed)), wholes[-1] if wholes else None)


def _group_turns(parts: Sequence[Then]) -> list[list[Then]]:
    """Group the parts that can be put back at once. Of a part and its container, the newer comes
    first. A part that an older container covers is left out."""
    result: list[list[Then]] = []
    turns: list[tuple[Then, int]] = []
    for n, earlier in enumerate(parts):
        if any(_is_covered(earlier.name, [older.name]) for older in parts[n + 1:]) or (
                earlier.was is None and any(other.was is None and other.name != earlier.name
                                            and _is_covered(earlier.name, [other.name])
                                            for other in parts)):
            continue
        turn = 1 + max((position for newer,
                        position in turns if _is_covered(newer.name, [earlier.name])
                        or _is_covered(earlier.name, [newer.name])), default=-1)
        turns.append((earlier, turn))
        if turn == len(result):
            result.append([])
        result[turn].append(earlier)
    return result


def _put_back(regions: FileRegions, path: str, data: bytes, parts: Sequence[Then],
              whole: bytes | None, others: Collection[str] | None) -> bytes | None:
    leased = others or ()
    by_names = partial(_by_names, regions, path, data, parts, whole, others=leased)
    if whole is None:
        return by_names({})
    names = {part.name for part in parts}
    outline, old = regions.outline(path, data), regions.outline(path, whole)
    if not _is_unsure(old, outline, names) or _is_plain(old, whole, outline, data, names):
        return by_names({})
    become = _find_names_now(old, whole, outline, data, parts, others)
    new = _list_new(parts) | set(become.values())
    back = _by_lines(regions, path, data, parts, whole)
    if back is not None and _keeps_others(old, outline, data, regions.outline(path, back), back,
                                          names, new):
        return back
    if _is_another(old, outline, parts, leased):
        return whole
    if others is not None and not _is_unread(old, outline):
        back = by_names(become)
        if back is not None and _is_right(regions, path, data, back, parts, new):
            return back
    return None if _may_be_taken(old, outline, names) else by_names(become)


def _names(outline: Outline) -> set[str]:
    return {region.name for region in outline.regions}


def _list_new(parts: Sequence[Then]) -> set[str]:
    """Return the names of parts that did not exist then."""
    return {part.name for part in parts if part.was is None}


def _is_unread(old: Outline, now: Outline) -> bool:
    """Whether either content cannot be read as its language."""
    return bool(now.note) or now.broken or old.broken


def _may_be_taken(old: Outline, now: Outline, names: Collection[str]) -> bool:
    """Whether another agent's region may be in the place of one that is gone."""
    there = _names(now)
    is_more = not there <= _names(old)
    return now.broken or old.broken or any(
        name not in there and ("." in name or is_more) for name in names)


def _is_apart(name: str, others: Collection[str]) -> bool:
    """Whether a region is none of these, not inside any, and not around any."""
    return name != HEADER and not _is_covered(name, others) and not any(
        _is_covered(other, [name]) for other in others)


def _is_right(regions: FileRegions, path: str, data: bytes, back: bytes, parts: Sequence[Then],
              new: Collection[str]) -> bool:
    """Whether these regions are as they were, and all others as they are."""
    then, names = regions.outline(path, back), {part.name for part in parts}
    if then.note or then.broken:
        return False
    if any((regions.part(path, back, part.name) or b"").strip() != (part.was or b"").strip()
           for part in parts):
        return False
    for region in regions.outline(path, data).regions:
        if not _is_apart(region.name, {*names, *new}):
            continue
        left = regions.part(path, back, region.name)
        if left is None or left.strip() != (regions.part(path, data, region.name) or b"").strip():
            return False
    return True


def _by_names(regions: FileRegions, path: str, data: bytes, parts: Sequence[Then],
              whole: bytes | None, become: Mapping[str, str], *,
              others: Collection[str]) -> bytes | None:
    """Put back the regions that are found by their name, or by their present name."""
    outline = regions.outline(path, data)
    if whole is not None and _is_another(regions.outline(path, whole), outline, parts, others):
        return whole
    wholes = [part.was for part in parts if part.name == HEADER or outline.note]
    if wholes or outline.note:
        first = next(iter(wholes), None)
        return data if first is None else first
    back = data
    pieces = _list_pieces(regions, path, data, parts, whole, become)
    for start, end, _, was in sorted(pieces, reverse=True):
        back = back[:start] + was + back[end:]
    return with_commas(path, data, back)


#: A returning region: the first and last byte that it replaces, its earlier place, and its bytes.
_Piece = tuple[int, int, int, bytes]


def _list_pieces(regions: FileRegions, path: str, data: bytes, parts: Sequence[Then],
                 whole: bytes | None, become: Mapping[str, str]) -> Iterator[_Piece]:
    names = {part.name for part in parts}
    old = None if whole is None else regions.outline(path, whole)
    for part in parts:
        if _is_covered(part.name, names - {part.name}):
            continue  # it is inside another part
        region = regions.find_region(path, data, become.get(part.name, part.name))
        if region is None:
            if part.was:
                yield _bring_back(old, whole, regions.outline(path, data), data,
                                  part.name, part.was, become)
        elif part.was is not None or part.name not in become.values():
            was = part.was or b""
            yield region.start, region.end, 0, was if _is_followed(old, whole, part) else _ending(
                was, data, region)


def _bring_back(old: Outline | None, whole: bytes | None, now: Outline, data: bytes, name: str,
                was: bytes, become: Mapping[str, str]) -> _Piece:
    """Return the piece that brings back a region that is gone."""
    place = None if old is None or whole is None else _slot(old, whole, now, data, name, become)
    if place is None:
        position = _end_of_container(now, name, len(data))
        place = _Slot(position, 0, _new_line(data, position))
    text = place.before + was
    if not was.endswith(b"\n") and now.language != "json":
        text += _line_end(data, place.at)
    return place.at, place.at, place.was_at, text


def _by_lines(regions: FileRegions, path: str, data: bytes, parts: Sequence[Then],
              whole: bytes) -> bytes | None:
    """Put back regions by the lines that they had in `whole`, if the grammar cannot find them."""
    names = {earlier.name for earlier in parts}
    earlier, new = [], []
    for part in parts:
        if _is_covered(part.name, names - {part.name}):
            continue
        region = regions.find_region(path, whole, part.name)
        if region is not None:
            earlier.append(Earlier(region.start, region.end, part.was or b"",
                                   region.kind == "section"))
        elif part.was is not None:
            return None
        else:
            new.append(part.name.rpartition(".")[2].encode())
    back = put_back(whole, data, earlier, new)
    return None if back is None else with_commas(path, data, back)


def _is_covered(name: str, others: Collection[str]) -> bool:
    """Whether a region is one of these, or inside one."""
    return any(name == other or name.startswith(other + ".") for other in others)


def _is_unsure(old: Outline, now: Outline, names: Collection[str]) -> bool:
    """Whether these regions of a divided file may now contain others, or have lost a part of
    themselves: a bracket is not closed, so the text after it is read as a part of the region; or a
    region is gone, and its new name is unknown."""
    if old.note or HEADER in names:
        return False
    there = {region.name for region in now.regions}
    return bool(now.note) or now.broken or old.broken or any(
        region.name not in there and (region.name in names or not _is_covered(region.name, names))
        for region in old.regions)


def _is_plain(old: Outline, whole: bytes, now: Outline, data: bytes,
              names: Collection[str]) -> bool:
    """Whether these regions are all there, or are only gone: no new region is in their places."""
    if _is_unread(old, now):
        return False
    there = _names(now)
    gone = [name for name in names if name not in there]
    if any(_is_covered(text, gone) for text in there) or any(
            not _is_covered(name, names) for name in _names(old) - there):
        return False  # a part of a region is left, or another region is missing
    if any("." in name for name in gone):
        return False  # the text between such regions differs from language to language
    slots = [_slot(old, whole, now, data, name, {}) for name in gone]
    return all(slot is not None and not slot.is_taken for slot in slots)


def _keeps_others(old: Outline, now: Outline, data: bytes, then: Outline, back: bytes,
                  names: Collection[str], new: Collection[str]) -> bool:
    """Whether putting back by lines has taken nothing from others. If the file can be read, their
    regions are unchanged, except this holder's new ones. Otherwise their earlier ones are there."""
    before, after = _names(old), {region.name: region for region in then.regions}
    if not (now.broken or then.broken) and not after.keys().isdisjoint(new):
        return False  # the region is there twice
    for region in now.regions:
        if not _is_apart(region.name, names):
            continue
        if region.name not in after:
            if region.name in before and not then.broken:
                return False
            if not now.broken and not _is_covered(region.name, new):
                return False
        elif not now.broken and (bare(now, data[region.start:region.end]).strip() != bare(
                then, back[after[region.name].start:after[region.name].end]).strip()):
            return False
    return True


def _find_names_now(old: Outline, whole: bytes, now: Outline, data: bytes, parts: Sequence[Then],
                    others: Collection[str] | None) -> dict[str, str]:
    """Map each region that is gone to its present name: a new region in its place, or leased with
    it, and like it. A new name of others' missing regions is theirs. If the others' leases are
    unknown, only a clear likeness counts."""
    names = {part.name for part in parts if part.was}
    gone = _list_gone(old, whole, now, parts)
    likes = _list_likes(old, now, data, gone, names, _list_new(parts), others)
    names_now: dict[str, str] = {}
    for *_, was, name in sorted(likes, reverse=True):
        if was not in names_now and name not in names_now.values():
            names_now[was] = name
    return {was: name for was, name in names_now.items() if was in names}


def _list_gone(old: Outline, whole: bytes, now: Outline, parts: Sequence[Then]
               ) -> dict[str, bytes]:
    """Return the earlier regions whose names are gone, with their texts."""
    there = _names(now)
    return {region.name: whole[region.start:region.end] for region in old.regions
            if region.name not in there and region.name != HEADER
            } | {part.name: part.was for part in parts if part.was and part.name not in there}


def _list_likes(old: Outline, now: Outline, data: bytes, gone: Mapping[str, bytes],
                names: Collection[str], mine: Collection[str], others: Collection[str] | None
                ) -> Iterator[tuple[bool, float, bool, str, str]]:
    """Yield new regions that are like one that is gone: whether it is in its place, its likeness (0
    to 1), whether it is one of `mine`, the earlier name and the new one."""
    before = {*_names(old), HEADER}
    new = [region for region in now.regions if region.name not in before]
    for was, text in gone.items():
        first, last = _between(old, now, was, len(data))
        taken = (others or ()) if was in names else mine
        for region in new:
            in_place = first <= region.start and region.end <= last
            if not (in_place or region.name in mine) or _is_covered(region.name, taken):
                continue
            alike = _alike(text, data[region.start:region.end])
            if alike >= (ALIKE if others is None else LIKE):
                yield in_place, alike, region.name in mine, was, region.name


def _is_alike(data: bytes, other: bytes, least: float) -> bool:
    """Whether the two are at least so much alike."""
    return _alike(data, other) >= least


def _alike(data: bytes, other: bytes) -> float:
    if max(len(data), len(other)) > ALIKE_BYTES_MAX:
        return SequenceMatcher(None, data.splitlines(), other.splitlines()).ratio()
    return SequenceMatcher(None, data.strip(), other.strip(), autojunk=False).ratio()


class _Slot(NamedTuple):
    """The place of a returning region. `was_at`: its earlier place; `before`: the bytes to put
    before it; `is_taken`: whether a new region is there."""

    at: int
    was_at: int
    before: bytes = b""
    is_taken: bool = False


def _siblings(outline: Outline, name: str) -> list[Region]:
    """Return the definitions in the same container as this name, in their order."""
    above = name.rpartition(".")[0]
    return sorted((region for region in outline.regions if region.name != HEADER
                   and region.name.rpartition(".")[0] == above), key=lambda region: region.start)


def _is_another(old: Outline, now: Outline, parts: Sequence[Then],
                others: Collection[str]) -> bool:
    """Whether nothing is left of a file that was divided: one of these regions is gone, all other
    earlier regions are gone, and no present region is another agent's."""
    if old.note or any(part.name == HEADER for part in parts):
        return False
    before, there = ({region.name for region in outline.regions} - {HEADER} for outline
                     in (old, now))
    return bool(now.note) or (
        bool(before) and before.isdisjoint(there)
        and any(part.was is not None and part.name not in there for part in parts)
        and not any(_is_covered(name, others) for name in there))


def _between(old: Outline, now: Outline, name: str, size: int) -> tuple[int, int]:
    """Return the bytes between the remaining neighbours of a definition."""
    there = {region.name: region for region in now.regions}
    before, after = _find_neighbours(_siblings(old, name), name, there)
    return before.end if before else 0, after.start if after else size


def _find_neighbours(was: Sequence[Region], name: str, there: Mapping[str, Region]
                     ) -> tuple[Region | None, Region | None]:
    """Return the remaining neighbours of a definition, before and after it."""
    position = next((n for n, region in enumerate(was) if region.name == name), None)
    if position is None:
        return None, None
    names = [region.name for region in was]
    return (next((there[text] for text in reversed(names[:position]) if text in there), None),
            next((there[text] for text in names[position + 1:] if text in there), None))


def _slot(old: Outline, whole: bytes, now: Outline, data: bytes, name: str,
          become: Mapping[str, str]) -> _Slot | None:
    """Return the earlier place of a definition that is gone, between its remaining neighbours, also
    by the names that they have `become`; None if it cannot be told."""
    was, there = _siblings(old, name), {region.name: region for region in _siblings(now, name)}
    there |= {before: there[other] for before, other in become.items() if other in there}
    before, after = _find_neighbours(was, name, there)
    if before is None and after is None:
        return None
    start = before.end if before is not None else 0
    end = after.start if after is not None else len(data)
    earlier = {region.name for region in was} | set(become.values())
    taken = any(region.name not in earlier and start <= region.start and region.end <= end
                for region in there.values())
    was_at = next(region.start for region in was if region.name == name)
    if after is not None:
        return _Slot(end, was_at, is_taken=taken)
    return _Slot(start, was_at, _blanks(whole[:was_at])[len(_blanks(data[:start])):],
                 is_taken=taken)


def _blanks(text: bytes) -> bytes:
    """Return the white space at its end. It belongs to the definition before it."""
    return text[len(text.rstrip()):]


def _end_of_container(outline: Outline, name: str, size: int) -> int:
    above = name.rpartition(".")[0]
    while above:
        region = find(outline, above)
        if region is not None:
            return region.end
        above = above.rpartition(".")[0]
    return size


def _is_followed(old: Outline | None, whole: bytes | None, earlier: Then) -> bool:
    """Whether another text followed a region then. The bytes between the two were the region's own.
    """
    region = None if old is None else find(old, earlier.name)
    if region is None or whole is None:
        return earlier.was is None or earlier.was.endswith(b"\n")
    return region.end < len(whole)


def _ending(text: bytes, data: bytes, region: Region) -> bytes:
    """Return a region's earlier text. If a text follows, keep the white space between."""
    if not text or region.end == len(data):
        return text
    there = data[region.start:region.end]
    return text.rstrip() + there[len(there.rstrip()):]


def _line_end(data: bytes, position: int) -> bytes:
    """Return the line end for a last line that is inserted without one."""
    if position == len(data):
        return b""
    return b"\r\n" if b"\r\n" in data else b"\n"


def _new_line(data: bytes, position: int) -> bytes:
    """Return the line end before an inserted line."""
    return b"" if position == 0 or data[position - 1] == 0x0A else b"\n"
