"""Reading git's list of the files that a command would take in, relative to the top of the tree.
Pure.

Names are text made from the file system's bytes, as git writes them with `core.quotePath=false`.
"""

from __future__ import annotations

import re

#: A name may have line breaks in it.
_ADDED = re.compile(r"^(?:add|remove|rm) '(.*?)'\n(?=(?:add|remove|rm) '|\Z)",
                    re.MULTILINE | re.DOTALL)
#: The state of a file in the index and in the working tree.
_STATE = re.compile(rb"[ MTADRCUX?!]{2} .")


def added(data: bytes) -> list[str]:
    """The files of `git add --dry-run` or `git rm --dry-run`."""
    return _ADDED.findall(_text(data))


def committed(data: bytes) -> tuple[list[str], set[str]]:
    """Of `git commit --dry-run --porcelain -z`: the files, and those of them that the commit takes
    from the working tree, not only from the index.

    Raises:
        ValueError: it is no such listing.
    """
    saved = set()
    result, fields = [], iter(data.removesuffix(b"\0").split(b"\0") if data else [])
    for field in fields:
        if field.startswith(b"## "):  # the branch
            continue
        if not _STATE.match(field):
            raise ValueError(field)
        if field[:1] in (b" ", b"?", b"!"):
            continue
        result.append(_text(field[3:]))
        if field[1:2] == b" ":
            saved.add(result[-1])
        if field[:1] in b"RC":
            result.append(_text(next(fields, b"")))
    return result, saved


def staged(data: bytes) -> list[str]:
    """The files of `git diff --cached --raw -z --no-renames`."""
    return [_text(path) for path in data.split(b"\0")[1::2]]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
