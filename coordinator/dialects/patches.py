"""The files that a patch in the `apply_patch` form touches. Reads the headers, never the hunks.

    *** Begin Patch / *** Update File: P / *** Move to: P / *** Add File: P / *** Delete File: P
"""

from __future__ import annotations

from coordinator.words.refusals import Code, Refusal

_HEADERS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
#: Files that one patch may name.
FILES_MAX = 500


def paths_of(patch: str) -> tuple[str, ...]:
    """Every path that the patch updates, adds, deletes or moves to, in its order.

    Raises:
        Refusal: INVALID: no file is named; LIMIT: too many are.
    """
    found: dict[str, None] = {}
    for line in patch.splitlines():
        stripped = line.strip()
        for header in _HEADERS:
            if stripped.startswith(header) and line[:1] not in ("+", "-", " "):
                path = stripped[len(header) :].strip()
                if path:
                    found.setdefault(path)
    if not found:
        raise Refusal(
            Code.INVALID, "The patch names no file (`*** Update File: PATH`); it is stopped.",
            next="Write the patch in the apply_patch form.",
        )
    if len(found) > FILES_MAX:
        raise Refusal(Code.LIMIT, f"The patch names {len(found)} files; the limit is {FILES_MAX}.",
                      next="Split it.")
    return tuple(found)
