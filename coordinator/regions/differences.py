"""Which regions differ between two contents of one file. Pure: it is handed their outlines.

Blank lines are no difference: they belong to the region above them by the rule, and whoever adds a
function below another has not changed that one. Nor is a comma between two members of JSON.
"""

from __future__ import annotations

from coordinator.regions import json_commas
from coordinator.regions.outline import Outline, Region, bare
from coordinator.words.resource_names import HEADER


def changed(old: Outline, before: bytes, new: Outline, after: bytes, *,
            in_order: bool = True, header: bool = True) -> list[str] | None:
    """The names of the regions that were changed, added or removed, in the order of the new
    content; those that are gone stand last.

    None: it is no change of single regions. One of the two is not divided, the new one cannot be
    read where the old one could, the code between the definitions differs (order counts there), or
    (`in_order`) what is left stands in another order. Without `header`, the code between the
    definitions may differ, and is not named.
    """
    if old.note or new.note or old.language != new.language or (new.broken and not old.broken):
        return None
    was = {region.name: region for region in old.regions}
    now = {region.name: region for region in new.regions}
    if header and not _is_same(old, was[HEADER], before, new, now[HEADER], after):
        return None
    if in_order and [name for name in was if name in now] != [name for name in now if name in was]:
        return None
    found = [name for name, region in now.items() if (header or name != HEADER) and (name not in was
             or was[name].kind != region.kind
             or not _is_same(old, was[name], before, new, region, after))]
    return found + [name for name in was if name not in now]


def _is_same(old: Outline, was: Region, before: bytes, new: Outline, now: Region,
             after: bytes) -> bool:
    if _own(old, was, before) == _own(new, now, after):
        return True
    if was.name != HEADER and len(was.spans) == len(now.spans):
        return False
    # (Of JSON that has got its first member, or lost its only one, the brackets stay.)
    signs = _signs(old, was, before)
    return signs is not None and signs == _signs(new, now, after)


def _own(outline: Outline, region: Region, data: bytes) -> list[bytes]:
    pieces = [data[start:end].strip(b"\r\n\t\f ") if region.name == HEADER
              else data[start:end].rstrip() for start, end in region.spans]
    if pieces and region.name != HEADER:
        pieces[-1] = bare(outline, pieces[-1])
    return [piece for piece in pieces if piece]


def _signs(outline: Outline, region: Region, data: bytes) -> bytes | None:
    """Of a part of JSON that may have members: what is in none of them, whatever is between."""
    if outline.language != "json":
        return None
    return json_commas.signs(b" ".join(data[start:end] for start, end in region.spans))
