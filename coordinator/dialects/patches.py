"""The files that a patch in the `apply_patch` form touches, and what it does to those it updates.

    *** Begin Patch / *** Update File: P / *** Move to: P / *** Add File: P / *** Delete File: P

Of an updated file each hunk begins with `@@`, which may name a line that comes before it; then come
lines with ` `, `-` or `+` before them.
"""

from __future__ import annotations

from coordinator.rules.edits import Edit
from coordinator.words.refusals import Code, Refusal

_UPDATE, _MOVE, _LAST = "*** Update File: ", "*** Move to: ", "*** End of File"
_HEADERS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
#: Files that one patch may name.
FILES_MAX = 500


def paths_of(patch: str) -> tuple[str, ...]:
    """Every path that the patch updates, adds, deletes or moves to, in its order.

    Raises:
        Refusal: INVALID: no file is named; LIMIT: too many are.
    """
    matches: dict[str, None] = {}
    for line in patch.splitlines():
        stripped = line.strip()
        for header in _HEADERS:
            if stripped.startswith(header) and line[:1] not in ("+", "-", " "):
                path = stripped[len(header) :].strip()
                if path:
                    matches.setdefault(path)
    if not matches:
        raise Refusal(
            Code.INVALID, "The patch names no file (`*** Update File: PATH`); it is stopped.",
            next="Write the patch in the apply_patch form.",
        )
    if len(matches) > FILES_MAX:
        raise Refusal(Code.LIMIT,
                      f"The patch names {len(matches)} files; the limit is {FILES_MAX}.",
                      next="Split it.")
    return tuple(matches)


def edits_of(patch: str) -> dict[str, tuple[Edit, ...]]:
    """The patch's edits of the files that it updates in place. Files with unclear edits are left
    out."""
    matches: dict[str, tuple[Edit, ...]] = {}
    unclear: set[str] = set()
    for path, lines in _updates(patch):
        edits = _hunks(lines)
        if edits is None or path in matches:
            unclear.add(path)
        else:
            matches[path] = edits
    return {path: edits for path, edits in matches.items() if path not in unclear}


def _updates(patch: str) -> list[tuple[str, list[str]]]:
    """Each updated file with the lines of its hunks."""
    result: list[tuple[str, list[str]]] = []
    inside: list[str] | None = None
    for line in patch.splitlines():
        if line.startswith("*** ") and line.strip() != _LAST:
            inside = None
            if line.startswith(_UPDATE):
                inside = []
                result.append((line[len(_UPDATE):].strip(), inside))
            elif line.startswith(_MOVE) and result:
                result[-1][1].append(line)
                inside = result[-1][1]
        elif inside is not None:
            inside.append(line)
    return result


def _hunks(lines: list[str]) -> tuple[Edit, ...] | None:
    edits: list[Edit] = []
    anchors: list[str] = []
    old: list[str] = []
    new: list[str] = []

    def close() -> None:
        if old or new:
            edits.append(Edit("".join(old), "".join(new), lines=True, anchors=tuple(anchors)))
            anchors.clear()
            old.clear()
            new.clear()

    for line in lines:
        if line.startswith("@@"):
            close()
            anchor = line.removeprefix("@@").strip()
            if anchor:
                anchors.append(anchor)
        elif line.strip() == _LAST:
            close()
        elif line[:1] in (" ", "-", "+", ""):
            text = line[1:] + "\n"
            if line[:1] != "+":
                old.append(text)
            if line[:1] != "-":
                new.append(text)
        else:
            return None
    close()
    return tuple(edits) if edits else None
