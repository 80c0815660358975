"""The difference between two directories, byte for byte, as changes that can be carried one by one.

Owns how trees are read and compared, and what counts as text and as a rename. Never writes.
Directories exist only through their files; modification times and owners do not count.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from pathlib import Path

from benchmarks.replay.changes import Change, Entry, Hunk, Kind
from benchmarks.replay.edits import told_apart

#: Names that are never part of a release.
IGNORED = frozenset({"__pycache__", ".git", ".hg", ".svn", ".bzr", ".jj", "CVS"})
#: A deleted and a created file are one renamed file from this share of common bytes on.
SIMILAR_MIN = 0.6
#: Line matching grows with the square of its input; what is longer becomes a single hunk.
LINES_MAX = 20_000


def difference(old: Path, new: Path) -> list[Change]:
    """Everything that turns the tree `old` into `new`, by path.

    Raises:
        NotADirectoryError: either is not a directory.
        OSError: a file cannot be read.
    """
    before, after = read_tree(old), read_tree(new)
    changes: list[Change] = []
    gone = {path: entry for path, entry in before.items() if path not in after}
    come = {path: entry for path, entry in after.items() if path not in before}
    for source, path in _renames(gone, come):
        a, b = gone.pop(source), come.pop(path)
        changes.append(Change(Kind.RENAME, path, source, a, b, hunks(a.data, b.data)))
    changes += [Change(Kind.DELETE, path, path, entry, None) for path, entry in gone.items()]
    changes += [Change(Kind.CREATE, path, "", None, entry) for path, entry in come.items()]
    for path in before.keys() & after.keys():
        a, b = before[path], after[path]
        if a == b:
            continue
        if a.data != b.data and _is_text(a) and _is_text(b):
            changes.append(Change(Kind.EDIT, path, path, a, b, hunks(a.data, b.data)))
        else:
            changes.append(Change(Kind.REPLACE, path, path, a, b))
    return sorted(changes, key=lambda c: (c.path, c.source))


def read_tree(root: Path, ignored: Collection[str] = IGNORED) -> dict[str, Entry]:
    """Every file and link below `root` by its relative path; links are not followed.

    Skips `ignored` names at any depth, and compiled Python. A socket or a pipe is no file.
    """
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is not a directory")
    return dict(sorted(_entries(root, "", ignored)))


def _entries(folder: Path, prefix: str, ignored: Collection[str]) -> Iterator[tuple[str, Entry]]:
    with os.scandir(folder) as found:
        for item in found:
            path = prefix + item.name
            if item.name in ignored or item.name.endswith((".pyc", ".pyo")):
                continue
            if item.is_symlink():
                yield path, Entry(os.fsencode(Path(item.path).readlink()), link=True)
            elif item.is_dir(follow_symlinks=False):
                yield from _entries(Path(item.path), path + "/", ignored)
            elif item.is_file(follow_symlinks=False):
                executable = bool(item.stat(follow_symlinks=False).st_mode & 0o100)
                yield path, Entry(Path(item.path).read_bytes(), executable)


def hunks(old: bytes, new: bytes) -> tuple[Hunk, ...]:
    """The lines that differ, as hunks that no order of carrying them can confuse."""
    a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    starts = [sum(map(len, old.splitlines(keepends=True)[:head]))]
    for line in a:
        starts.append(starts[-1] + len(line))
    if not a and not b:
        return ()
    if max(len(a), len(b)) > LINES_MAX:
        return (Hunk(starts[0], b"".join(a), b"".join(b)),)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    found = [
        Hunk(starts[i], b"".join(a[i:j]), b"".join(b[k:m]))
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    ]
    return told_apart(old, found)


def _is_text(entry: Entry) -> bool:
    return not entry.link and b"\0" not in entry.data


def _renames(gone: dict[str, Entry], come: dict[str, Entry]) -> list[tuple[str, str]]:
    """Pairs of old and new names: equal files first, then the most similar texts."""
    pairs: list[tuple[str, str]] = []
    by_entry: dict[Entry, list[str]] = {}
    for path, entry in come.items():
        if entry.data and not entry.link:
            by_entry.setdefault(entry, []).append(path)
    for source, entry in gone.items():
        same = by_entry.get(entry)
        if same:
            # Of several copies, the one that kept its file name.
            name = source.rpartition("/")[2]
            path = min(same, key=lambda p: (p.rpartition("/")[2] != name, p))
            same.remove(path)
            pairs.append((source, path))
    taken = {name for pair in pairs for name in pair}
    texts = {
        path: (len(entry.data), Counter(entry.data.splitlines(keepends=True)))
        for tree in (gone, come)
        for path, entry in tree.items()
        if path not in taken and entry.data and _is_text(entry)
    }
    scored = [
        (similar, source, path)
        for source in gone.keys() & texts.keys()
        for path in come.keys() & texts.keys()
        if (similar := _similarity(texts[source], texts[path])) >= SIMILAR_MIN
    ]
    for _, source, path in sorted(scored, key=lambda s: (-s[0], s[1], s[2])):
        if source not in taken and path not in taken:
            taken |= {source, path}
            pairs.append((source, path))
    return pairs


def _similarity(a: tuple[int, Counter[bytes]], b: tuple[int, Counter[bytes]]) -> float:
    """The share of bytes, 0 to 1, that stand in lines which both have, wherever these are."""
    (size_a, lines_a), (size_b, lines_b) = a, b
    if 2 * min(size_a, size_b) < SIMILAR_MIN * (size_a + size_b):
        return 0.0
    common = sum(len(line) * min(n, lines_b[line]) for line, n in lines_a.items())
    return 2 * common / (size_a + size_b)
