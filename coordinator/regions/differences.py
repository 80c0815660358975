"""The regions that differ between two contents of one file. Pure: it gets their outlines.

Blank lines are no difference: by the rule they belong to the region above them, and an added
function does not change the one above. Nor is a comma between two members of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.regions import json_commas
from coordinator.regions.outline import Outline, Region, bare
from coordinator.words.resource_names import HEADER


def changed(old: Outline, before: bytes, new: Outline, after: bytes, *,
            in_order: bool = True, header: bool = True) -> list[str] | None:
    """Return the names of the regions that were changed, added or removed, in the order of the new
    content, the removed ones last.

    None if single regions do not describe the change: a content is not divided, the new one cannot
    be read although the old one could, the code between the definitions differs (its order
    matters), or (`in_order`) the remaining regions are in another order. Without `header`, the code
    between the definitions may differ, and is not named.
    """
    if not _is_readable(old, new):
        return None
    was, now = _by_name(old), _by_name(new)
    if header and not _is_same(old, was[HEADER], before, new, now[HEADER], after):
        return None
    if in_order and not _is_in_order(was, now):
        return None
    differing = [
        name for name, region in now.items() if (header or name != HEADER) and (
            name not in was or was[name].kind != region.kind
            or not _is_same(old, was[name], before, new, region, after))]
    return differing + [name for name in was if name not in now]


def _is_readable(old: Outline, new: Outline) -> bool:
    """Whether both are divided, and the new one is as readable as the old one."""
    return (not old.note and not new.note and old.language == new.language
            and (old.broken or not new.broken))


def _is_in_order(was: Mapping[str, Region], now: Mapping[str, Region]) -> bool:
    """Whether the remaining regions are in the same order."""
    return [name for name in was if name in now] == [name for name in now if name in was]


def _by_name(outline: Outline) -> dict[str, Region]:
    return {region.name: region for region in outline.regions}


def _is_same(old: Outline, was: Region, before: bytes, new: Outline, now: Region,
             after: bytes) -> bool:
    if _own(old, was, before) == _own(new, now, after):
        return True
    if was.name != HEADER and len(was.spans) == len(now.spans):
        return False
    # A JSON region that got its first member, or lost its only one, keeps its brackets.
    signs = _signs(old, was, before)
    return signs is not None and signs == _signs(new, now, after)


def _own(outline: Outline, region: Region, data: bytes) -> list[bytes]:
    pieces = [data[start:end].strip(b"\r\n\t\f ") if region.name == HEADER
              else data[start:end].rstrip() for start, end in region.spans]
    if pieces and region.name != HEADER:
        pieces[-1] = bare(outline, pieces[-1])
    return [piece for piece in pieces if piece]


def _signs(outline: Outline, region: Region, data: bytes) -> bytes | None:
    """Return the tokens of a JSON region outside its members; None in other languages."""
    if outline.language != "json":
        return None
    return json_commas.signs(b" ".join(data[start:end] for start, end in region.spans))
