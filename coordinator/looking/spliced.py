"""A file with new texts of some of its regions, and whether it may be written.

Decides by the file's bytes and their regions alone: each region is there and has the expected
content, the result can be read, and nothing but these regions has changed. Opens no file.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from coordinator.files.content import EXECUTABLE, digest
from coordinator.looking.file_regions import FileRegions, with_commas
from coordinator.regions import json_commas
from coordinator.regions.names import nearest
from coordinator.regions.outline import Outline, bare
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import HEADER

#: The beginning of a content's name, and how many of its digits are shown for typing.
SHA256, SHORT = "sha256:", 12
#: Used instead of a content's name: the region must not exist.
ABSENT = "absent"
#: A name as it is given: all of its digits, or the first of them.
_CONTENT = re.compile(rf"(?:{SHA256})?([0-9a-f]{{8,64}})(?:\+x)?")
#: A table of TOML, with the comments above it.
_TABLE = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*\[")
#: Longer texts (characters) are not shown in a refusal.
SHOWN_MAX = 20_000
#: How many line ends after a region's last line are tried, less one.
BLANKS_MAX = 5


@dataclass(frozen=True, slots=True)
class NewText:
    """The new text of one region. `was`: the name of the content that it must have now, as
    `content_name` gives it; or `ABSENT`. `after`: it is new, and comes behind this region; empty:
    at the end of its container. `new`: it also comes there, if it does not exist yet."""

    name: str
    text: str
    was: str | None
    after: str | None = None
    new: bool = False


def spliced(regions: FileRegions, path: str, shown: str, data: bytes,
            texts: Sequence[NewText], *, proposed: bool = False,
            ) -> tuple[bytes, dict[str, tuple[bytes, bytes]]]:
    """Return the file's new bytes, and for each region its bytes before and after. The file's line
    ends, its byte order mark and the blank lines below each region stay. New regions are added
    afterwards, one by one. `proposed`: the caller named versions, no leases.

    Raises:
        Refusal: REGION_UNKNOWN, REGION_CHANGED, PARSE_INVALID, OUT_OF_SCOPE_EDIT, INVALID.
    """
    before = regions.outline(path, data)
    if before.note:
        raise Refusal(
            Code.INVALID, f"{shown} has no regions ({before.note}). Nothing was written.",
            next="Lease the file, and write it as a whole.",
        )
    _check_once(texts, shown)
    pieces: list[tuple[int, int, bytes]] = []
    fitted: dict[str, tuple[bytes, bytes]] = {}
    added: list[NewText] = []
    for new_text in texts:
        span = (_header(regions, path, data, shown) if new_text.name == HEADER
                else regions.span(path, data, new_text.name))
        if new_text.after is not None or (new_text.new and span is None):
            added.append(new_text)
            continue
        if span is None:
            raise _refuse_unknown(new_text, shown, regions.names(path, data))
        piece = data[span[0]:span[1]]
        old = _own_text(before, new_text.name, piece)
        _check_version(data, old, new_text, shown, proposed=proposed)
        new = _fitted(data, old, new_text, shown)
        if new and not piece:  # the file had no header
            new += _line_end(data) * 3
        fitted[new_text.name] = old, _own_text(before, new_text.name, new)
        pieces.append((*span, new))
    made = with_commas(path, data, _put_pieces(data, pieces, shown))
    if pieces and added:
        _check_read(regions, path, shown, data, made, texts)
    for new_text in added:
        position, text = _added(regions, path, made, new_text, shown)
        made = with_commas(path, data, made[:position] + text + made[position:])
    _check(regions, path, shown, data, made, texts, proposed=proposed)
    for new_text in added:
        fitted[new_text.name] = b"", regions.part(path, made, new_text.name) or b""
    return made, fitted


def _own_text(outline: Outline, name: str, piece: bytes) -> bytes:
    return piece if name == HEADER else bare(outline, piece)


def _refuse_unknown(new_text: NewText, shown: str, names: Sequence[str]) -> Refusal:
    near = nearest(new_text.name, names)
    return Refusal(
        Code.REGION_CHANGED if new_text.was else Code.REGION_UNKNOWN,
        f"{shown} has no region {new_text.name!r}{' any more' if new_text.was else ''}. "
        f"The nearest: {', '.join(near)}. Nothing was written.",
        next=f"`coord regions {shown}` lists them"
        + ("." if new_text.was else "; with `after` it is added."),
        resource=f"{shown}::{new_text.name}", nearest=[f"{shown}::{name}" for name in near],
    )


def _check_version(data: bytes, old: bytes, new_text: NewText, shown: str, *,
                   proposed: bool) -> None:
    """Refuse a text that was made from another content than the region has."""
    version = digest(old)[len(SHA256):][:SHORT]
    if old and (new_text.new or new_text.was == ABSENT):
        why = "is there already. Nothing was written."
        step = f"name its version: {version}."
    elif new_text.was not in (None, ABSENT) and not is_still(data, old, new_text.name,
                                                             new_text.was):
        why = "was changed since the text that this was made from. Nothing was written."
        step = ("propose it with the `version` of that" if proposed else
                "commit it with the `content_hash` (`--hash`) of that") + f": {version}."
    else:
        return
    raise Refusal(
        Code.REGION_CHANGED, f"{shown}::{new_text.name} {why}",
        next=f"Make the change on the text as it is now, and {step}",
        resource=f"{shown}::{new_text.name}", content_hash=digest(old),
        text=old.decode("utf-8", "replace")[:SHOWN_MAX],
    )


def _put_pieces(data: bytes, pieces: Sequence[tuple[int, int, bytes]], shown: str) -> bytes:
    """Replace each piece's bytes by its text.

    Raises:
        Refusal: INVALID: two of them overlap.
    """
    in_order = sorted(pieces)
    for (_, end, _), (start, _, _) in pairwise(in_order):
        if start < end:
            raise Refusal(
                Code.INVALID, f"Two of these regions of {shown} are one in the other. Nothing was "
                "written.", next="Commit the outer one with all that is in it.",
            )
    for start, end, text in reversed(in_order):
        data = data[:start] + text + data[end:]
    return data


def _header(regions: FileRegions, path: str, data: bytes, shown: str) -> tuple[int, int]:
    """Return the only code outside definitions; without any, the file's beginning."""
    spans = regions.header(path, data)
    if len(spans) > 1:
        raise Refusal(
            Code.INVALID, f"{shown} has code between its definitions, so its {HEADER} is no one "
            "text. Nothing was written.", next="Lease the file, and write it as a whole.",
        )
    begin = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
    return spans[0] if spans else (begin, begin)


def _check_once(texts: Sequence[NewText], shown: str) -> None:
    names = [new_text.name for new_text in texts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Refusal(
            Code.INVALID, f"{shown}::{twice} is named twice. Nothing was written.",
            next="Give one text for each region.", resource=f"{shown}::{twice}",
        )


def _added(regions: FileRegions, path: str, data: bytes, new_text: NewText,
           shown: str) -> tuple[int, bytes]:
    """Return the place of a new region, and its bytes with the blank lines around it: as many as
    its neighbours have between them."""
    name = f"{shown}::{new_text.name}"
    if regions.span(path, data, new_text.name) is not None:
        raise Refusal(
            Code.INVALID, f"{name} is there already, so it cannot be added. Nothing was written.",
            next="Commit its new text without `after`; or choose another name.",
            resource=name,
        )
    above = new_text.name.rpartition(".")[0]
    outline = regions.outline(path, data)
    span = _find_span(regions, path, data, new_text, above)
    if span is None:
        raise _refuse_place(new_text, shown, new_text.after or above, regions.names(path, data))
    text = _fitted(data, b"", new_text, shown).lstrip(b"\r\n")
    if not text:
        raise Refusal(Code.INVALID, f"There is no text for {name}. Nothing was written.",
                      next="Give all of it, or leave it out.", resource=name)
    end = _line_end(data)
    before = data[:span[1]].rstrip()
    blanks = data[len(before):span[1]]
    apart = _count_line_ends(outline, data[:len(before)], text, above)
    if not before:
        return span[1], text + end * (apart if data[span[1]:].strip() else 1)
    gap = blanks if new_text.after and _is_followed(outline, span[1], above) else end * apart
    place = len(before), gap + text + (b"" if blanks else end)
    if new_text.after or (not above and outline.language != "json") or _holds(
            regions, path, data, place, new_text.name):
        return place
    within = _put_within(regions, path, data, span, new_text.name, text, gap)
    if within is None:
        raise _refuse_end(name, shown, above)
    return within


def _find_span(regions: FileRegions, path: str, data: bytes, new_text: NewText,
               above: str) -> tuple[int, int] | None:
    """Return the bytes behind which a new region comes; None if no region has that name."""
    behind = new_text.after or above
    outline = regions.outline(path, data)
    if behind == HEADER:  # its first piece: otherwise it would come behind all definitions
        return 0, min((region.start for region in outline.regions if region.name != HEADER),
                      default=len(data))
    span = regions.span(path, data, behind) if behind else (0, len(data))
    if outline.language != "toml" or new_text.after:
        return span
    if span is None and new_text.text.lstrip().startswith("["):
        return 0, len(data)  # a table of its own, whatever its name begins with
    first = None if above else _first_table(outline, data, new_text.text)
    return span if first is None else (0, first)


def _refuse_place(new_text: NewText, shown: str, behind: str, names: Sequence[str]) -> Refusal:
    near = nearest(behind, names)
    return Refusal(
        Code.REGION_UNKNOWN,
        f"{shown} has no region {behind!r} that {new_text.name} could come "
        f"behind. The nearest: {', '.join(near)}. Nothing was written.",
        next=f"`coord regions {shown}` lists them.", resource=f"{shown}::{behind}",
        nearest=[f"{shown}::{text}" for text in near],
    )


def _refuse_end(name: str, shown: str, above: str) -> Refusal:
    return Refusal(
        Code.INVALID, f"{name} cannot be put at the end of {above or shown}: with this text, "
        f"{shown} has no such region. Nothing was written.",
        next="Correct the text (its name, its indentation); or "
        + (f"commit {shown}::{above} with it." if above else "lease the file, and write it as "
           "a whole."), resource=name,
    )


def _count_line_ends(outline: Outline, before: bytes, text: bytes, above: str) -> int:
    """Return the number of line ends between a new region and its predecessor."""
    language = outline.language
    if language in ("toml", "yaml") and before and not text.lstrip().startswith(b"["):
        return _between_keys(outline, before, above)
    # Python's are those of PEP 8.
    return 1 if language == "json" else 3 if not above and language == "python" else 2


def _is_followed(outline: Outline, position: int, above: str) -> bool:
    """Whether another region of the same container begins there."""
    return any(region.start == position and region.name.rpartition(".")[0] == above
               for region in outline.regions)


def _put_within(regions: FileRegions, path: str, data: bytes, span: tuple[int, int], name: str,
                text: bytes, gap: bytes) -> tuple[int, bytes] | None:
    """Return the place of a new region at the end of its container, and its bytes; None if it would
    not be read as that region."""
    above, outline, end = name.rpartition(".")[0], regions.outline(path, data), _line_end(data)
    is_first = not any(region.name.startswith(f"{above}.") for region in outline.regions)
    place = _before_its_last_line(data, span, text, end if is_first else gap)
    if place is not None and _holds(regions, path, data, place, name):
        return place
    put = json_commas.put_in(data[span[0]:span[1]], text, end) if (
        outline.language == "json") else None
    place = None if put is None else (span[0] + put[0], put[1])
    return place if place is not None and _holds(regions, path, data, place, name) else None


def _line_end(data: bytes) -> bytes:
    return b"\r\n" if b"\r\n" in data else b"\n"


def _first_table(outline: Outline, data: bytes, text: str) -> int | None:
    """Return the beginning of a TOML file's tables, after which no key belongs to the file itself.
    None if there are none, or if the text is a table."""
    if text.lstrip().startswith("["):
        return None
    return min((region.start for region in outline.regions
                if region.name != HEADER
                and _TABLE.match(data, region.start)), default=None)


def _between_keys(outline: Outline, data: bytes, above: str) -> int:
    """Return the line ends between the last two keys of a mapping, or after a single key."""
    keys = [data[region.start:region.end] for region in outline.regions
            if region.name != HEADER and region.name.rpartition(".")[0] == above
            and not _TABLE.match(data, region.start)]
    last = keys[-2] if len(keys) > 1 else b""
    return max(last[len(last.rstrip()):].count(b"\n"), 1)


def _holds(regions: FileRegions, path: str, data: bytes, place: tuple[int, bytes],
           name: str) -> bool:
    """Whether the file has this region after a text is inserted there."""
    position, text = place
    made = with_commas(path, data, data[:position] + text + data[position:])
    return regions.span(path, made, name) is not None


def _before_its_last_line(data: bytes, span: tuple[int, int], text: bytes,
                          gap: bytes) -> tuple[int, bytes] | None:
    """Return a place before the container's last line, which is a closing bracket or word."""
    lines = data[span[0]:span[1]].rstrip()
    above = lines[:lines.rfind(b"\n") + 1].rstrip()
    return (span[0] + len(above), gap + text) if above else None


def is_still(data: bytes, text: bytes, name: str, was: str) -> bool:
    """Whether a region of a file, with this text, is the content of that name. A lease on the
    header is about the whole file."""
    return _is(text, was) or (name == HEADER and _is(data, was))


def content_name(given: str | None, field: str) -> str | None:
    """Return a content's name from a field that gives all of it, or its first digits.

    Raises:
        Refusal: INVALID.
    """
    match = _CONTENT.fullmatch(given) if given is not None else None
    if given is not None and match is None:
        raise Refusal(
            Code.INVALID, f"`{field}` {given[:80]!r} names no content: it is `sha256:` and digits "
            "from 0 to f, the first eight of them or more. Nothing was written.",
            next="`sha256sum FILE` tells a file's, `coord regions FILE` those of its regions.")
    return SHA256 + match[1] if match else None


def _is(text: bytes, was: str) -> bool:
    """Whether this is the content of that name, or of one that begins so. Blank lines at its end
    are ignored: a moved region has others there."""
    bare, name = text.rstrip(), was.partition(EXECUTABLE)[0]
    return digest(text).startswith(name) or any(
        digest(bare + end * count).startswith(name)
        for end in (b"\n", b"\r\n") for count in range(BLANKS_MAX))


def text_of(regions: FileRegions, path: str, data: bytes, name: str) -> bytes | None:
    """Return the text of a region as it is committed. None if there is none, or several."""
    if name != HEADER:
        return regions.part(path, data, name)
    spans = [] if regions.outline(path, data).note else regions.header(path, data)
    return b"".join(data[start:end] for start, end in spans) if len(spans) < 2 else None


def _fitted(data: bytes, old: bytes, new_text: NewText, shown: str) -> bytes:
    """Return the text as bytes of this file."""
    try:
        new = new_text.text.encode()
        if not new_text.text.isascii():
            data.decode()
    except UnicodeError:
        raise Refusal(
            Code.INVALID, f"{shown} is not UTF-8, and the text has other signs than ASCII's. "
            "Nothing was written.", next="Lease the file, and write it in its own encoding.",
        ) from None
    if not new.strip():
        return b""
    if b"\r\n" in data:
        new = new.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    elif b"\n" in data:
        new = new.replace(b"\r\n", b"\n")
    return new.rstrip() + old[len(old.rstrip()):]


def _check_read(regions: FileRegions, path: str, shown: str, data: bytes, made: bytes,
                texts: Sequence[NewText], *, header: bool = True) -> list[str] | None:
    """Return the names that differ; None for more than regions. Refuse an unreadable result."""
    names, broken = regions.changed(path, data, made, header=header)
    wrong = "" if broken else regions.misread(path, data, made)
    if broken or wrong:
        language = regions.outline(path, data).language
        raise Refusal(
            Code.PARSE_INVALID,
            f"{shown} could not be read as {language} with this text in it"
            f"{f' ({wrong})' if wrong else ''}. Nothing was written.",
            next=f"Give it with its key, as it stands in the file, and commit it again: {key}."
            if (key := _without_key(language, texts)) else
            "Correct the text, and commit it again.", path=shown,
        )
    return names


def _without_key(language: str | None, texts: Sequence[NewText]) -> str:
    """Return the beginning that a text needs if it was given as a value alone; otherwise empty."""
    sign = {"json": ":", "yaml": ":", "toml": "="}.get(language or "", "")
    for new_text in texts if sign else ():
        key, text = new_text.name.rpartition(".")[2], new_text.text.strip()
        if text and key not in text.partition(sign)[0] and not text.startswith("["):
            begins = f'"{key}"' if language == "json" else key
            return f"`{begins}{' ' if sign == '=' else ''}{sign} …`"
    return ""


def _check(regions: FileRegions, path: str, shown: str, data: bytes, made: bytes,
           texts: Sequence[NewText], *, proposed: bool) -> None:
    own = [new_text.name for new_text in texts]
    names = _check_read(regions, path, shown, data, made, texts,
                        header=HEADER not in own)
    if names is None and HEADER in own:
        raise Refusal(
            Code.OUT_OF_SCOPE_EDIT, f"With this text more of {shown} would change than single "
            "regions. Nothing was written.", next="Lease the file, and write it as a whole.",
            path=shown, regions=[],
        )
    beyond = [HEADER] if names is None else _list_apart(names, own)
    if beyond:
        raise _refuse_beyond(shown, beyond, own, regions.names(path, data), proposed=proposed)


def _list_apart(names: Sequence[str], own: Sequence[str]) -> list[str]:
    """Return the names that are none of these, nor inside one."""
    return [name for name in names
            if not any(f"{name}.".startswith(f"{text}.") for text in own)]


def _refuse_beyond(shown: str, beyond: Sequence[str], own: Sequence[str], there: Sequence[str], *,
                   proposed: bool) -> Refusal:
    """Return the refusal of a text that changes more than its `own` regions. `there`: the file's.
    """
    new = [name for name in beyond[:8] if name not in there]
    around = [name for name in beyond if any(
        text in there and text.startswith(f"{name}.") for text in own)]
    twice = [name.rpartition("#")[0] for name in new if "#" in name]
    if twice and set(twice) <= set(there) and not set(own) & set(there):
        why = f"{_listed(shown, twice)} would be there twice. Nothing was written."
        step = (f"If that is what you mean, {'propose' if proposed else 'lease'} it by this name, "
                "and not another as new.")
    else:
        why = (f"more of {shown} would change than {', '.join(own)}: {', '.join(beyond[:8])}. "
               "Nothing was written.")
        step = _say_beyond(shown, beyond, around, new, proposed=proposed)
    return Refusal(Code.OUT_OF_SCOPE_EDIT, f"With this text {why}", next=step, path=shown,
                   regions=list(beyond[:8]))


def _say_beyond(shown: str, beyond: Sequence[str], around: Sequence[str], new: Sequence[str], *,
                proposed: bool) -> str:
    """Return the step for a text that changes regions `beyond` its own, some of them `around` it.
    """
    if proposed:
        return (f"Keep to the region; or propose {_listed(shown, beyond)} with it, each by its "
                "own part of the text, or the whole file.")
    if around:
        return _as_a_whole(shown, beyond, around)
    as_new = f" (as new: {', '.join(new)})" if new else ""
    return (f"Commit {_listed(shown, beyond)} with it, each by its own part of the text, all "
            f"in one; lease what you have not yet{as_new}. Or keep to the region.")


def _as_a_whole(shown: str, beyond: Sequence[str], around: Sequence[str]) -> str:
    """Return the step if a region changes with one inside it: only the outer can be committed."""
    outer = [name for name in around if not any(
        name.startswith(f"{other}.") for other in around)]
    more = _list_apart(beyond, outer)
    also = f", and {_listed(shown, more)} with it" if more else ""
    return (f"Commit {_listed(shown, outer)} in its place, as a whole, with all that is in "
            f"it{also}; lease what you have not yet. Or keep to the region.")


def _listed(shown: str, names: Sequence[str]) -> str:
    return ", ".join(f"{shown}::{name}" for name in names[:8])
