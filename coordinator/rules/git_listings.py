"""What git prints of what a command would take in: files, from the top of the working tree. Pure.

Names are text from the file system's bytes, as git writes them with `core.quotePath=false`.
"""

from __future__ import annotations

import re

_ADDED = re.compile(r"^(?:add|remove|rm) '(.*)'$", re.MULTILINE)
_LINK, _NO_MODE = b"120000", b"000000"


def added(said: bytes) -> list[str]:
    """Of `git add --dry-run` and `git rm --dry-run`."""
    return _ADDED.findall(_text(said))


def committed(said: bytes) -> tuple[list[str], set[str]]:
    """Of `git commit --dry-run --porcelain -z`: the files, and those of them that the commit would
    have as they are in the working tree, not only in the index."""
    saved = set()
    out, fields = [], iter(said.split(b"\0"))
    for field in fields:
        if field[:1] in (b" ", b"?", b"!", b""):
            continue
        out.append(_text(field[3:]))
        if field[1:2] == b" ":
            saved.add(out[-1])
        if field[:1] in b"RC":
            out.append(_text(next(fields, b"")))
    return out, saved


def staged(said: bytes) -> list[str]:
    """Of `git diff --cached --raw -z --no-renames`. A symlink is no file that could be held: what
    it leads to is not in the commit."""
    fields = said.split(b"\0")
    return [_text(path) for about, path in zip(fields[::2], fields[1::2], strict=False)
            if not _of_link(about)]


def _of_link(about: bytes) -> bool:
    old, new = about[1:].split(b" ")[:2]
    return new == _LINK or (old == _LINK and new == _NO_MODE)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
