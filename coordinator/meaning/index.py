"""The index: facts of many files in one SQLite file, found by name.

Owns that file. It is a cache: it may be deleted at any time, and is built again. It holds nothing
that the coordinator has promised. A file's rows are replaced together, and the cost of an update
depends on that file alone. It parses nothing.

`names` lists the files that have a relation to a name, and the relation: `d` the file defines the
name, `u` uses it, `a` imports it under another name, `b` has a class with a base of this name, `m`
imports this module (by its last part).
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import apsw
import msgspec

from coordinator.meaning import statements as sql
from coordinator.meaning.facts import Binding, Facts, Scope, last_name
from coordinator.regions.languages import syntax_of

#: Changes with the shape of the facts: an index of another version is built anew.
VERSION = 3
#: How many files' facts are kept decoded. KEPT_BYTES limits their stored size.
KEPT_FILES = 400
#: How long another process may write (ms): it reads some files meanwhile.
BUSY_MS = 30_000
KEPT_BYTES = 4 << 20


class _FileRow(NamedTuple):
    """A file's id and its packed facts, as `sql.FILE` gives them."""

    id: int
    facts: bytes


class Index:
    """The index in one file, for one process. Not safe from several threads at once.

    Raises (by every method):
        apsw.Error: the disk refused.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = str(path)
        try:
            self._db = _opened(self._path)
        except (apsw.NotADBError, apsw.CorruptError, _OtherVersionError):
            for ending in ("", "-wal", "-shm", "-journal"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path + ending)  # noqa: PTH108
            self._db = _opened(self._path)
        self._kept: OrderedDict[str, tuple[Facts | None, int]] = OrderedDict()
        self._kept_bytes = 0

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Write all changes within together. No other process writes meanwhile: it may keep the
        same index, and the data read here must not be older than the data written over."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def put(self, path: str, name: bytes, facts: Facts, stamp: str = "") -> None:
        """Replace the facts of a file.

        Args:
            name: a hash of its bytes. `stamp`: a mark of this state, to detect changes without
                reading it.
        """
        with self.batch():
            self._forget(path)
            packed = zlib.compress(msgspec.msgpack.encode(facts), 1)
            self._db.execute(
                sql.PUT_FILE,
                (path, name, stamp, module_of(path), packed),
            )
            number = self._db.last_insert_rowid()
            self._db.executemany(
                sql.PUT_NAME,
                [(name, role, number) for name, role in sorted(rows_of(facts))],
            )

    def drop(self, path: str) -> None:
        """Remove a file, if it is there."""
        with self.batch():
            self._forget(path)

    def restamp(self, path: str, stamp: str) -> None:
        """Record that a file has this stamp, and the same bytes as before."""
        self._db.execute(sql.RESTAMP, (stamp, path))

    def paths(self) -> list[str]:
        """Return the paths of all files."""
        return [path for (path,) in self._db.execute(sql.PATHS)]

    def known(self, path: str) -> tuple[bytes, str] | None:
        """Return the stored hash and stamp of a file; None if it is not there."""
        return self._db.execute(sql.KNOWN, (path,)).fetchone()

    def facts(self, path: str) -> Facts | None:
        """Return the facts of a file; None if it is not there."""
        kept = self._kept.get(path)
        if kept is not None:
            self._kept.move_to_end(path)
            return kept[0]
        found_facts, size = None, 0
        for (packed,) in self._db.execute(sql.FACTS, (path,)):
            found_facts, size = _unpacked(packed), len(packed)
        self._kept[path] = (found_facts, size)
        self._kept_bytes += size
        while len(self._kept) > KEPT_FILES or self._kept_bytes > KEPT_BYTES:
            self._kept_bytes -= self._kept.popitem(last=False)[1][1]
        return found_facts

    def files_with(self, name: str, role: str, limit: int) -> list[str]:
        """Return at most `limit` files that have this relation to a name, in the order of paths."""
        return sorted(path for (path,) in self._db.execute(
            sql.WITH_NAME, (name, role, limit),
        ))

    def modules(self, dotted: str, limit: int = 64) -> list[str]:
        """Return the files whose dotted name ends in this name."""
        turned = ".".join(reversed(dotted.split(".")))
        return [path for (path,) in self._db.execute(
            sql.MODULES, (turned, limit),
        )]

    def has(self, path: str) -> bool:
        """Whether the index has this file."""
        found = self._db.execute(sql.HAS, (path,)).fetchone()
        return found is not None

    def has_below(self, folder: str) -> bool:
        """Whether the index has a file in this directory, or below it."""
        return self._db.execute(
            sql.HAS_BELOW,
            (folder + "/", folder + "0"),
        ).fetchone() is not None

    def count(self) -> int:
        """Count the files."""
        return sum(1 for _ in self._db.execute(sql.COUNTED))

    def settle(self) -> None:
        """Write the log into the file itself."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _forget(self, path: str) -> None:
        if path in self._kept:
            self._kept_bytes -= self._kept.pop(path)[1]
        for file in map(_FileRow._make, self._db.execute(sql.FILE, (path,)).fetchall()):
            self._db.executemany(
                sql.DROP_NAME,
                [(name, role, file.id) for name, role in rows_of(_unpacked(file.facts))],
            )
            self._db.execute(sql.DROP_FILE, (file.id,))


def module_of(path: str) -> str:
    """Return the dotted name of a file from the root, its last part first: `a/b.py` is `b.a`. If
    the files of a directory share their names, return the directory's name."""
    parts = path.removesuffix(".py").removesuffix(".pyi").split("/")
    syntax = syntax_of(path)
    if syntax is not None and syntax.modules == "directory":
        parts.pop()
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    return ".".join(reversed(parts))


def rows_of(facts: Facts) -> set[tuple[str, str]]:
    """Return the names of a file with its relation to each."""
    rows = {(site.name(), "u") for site in facts.sites}
    for scope in facts.scopes.values():
        is_open = scope.kind in ("module", "class")
        rows.update((name, "d") for name in (_list_own(scope) if is_open else [scope.name]))
        for name, bound in scope.bindings.items():
            for binding in bound:
                if binding.kind == "import":
                    rows.update(_rows_of_import(name, binding))
                elif binding.kind == "value" and is_open and last_name(binding.text) != name:
                    rows.add((last_name(binding.text), "a"))
        rows |= {(last_name(base.partition("[")[0]), "b") for base in scope.bases}
        rows |= {(last_part(module), "m") for module in scope.wildcards}
    return {(name, role) for name, role in rows if name}


def _list_own(scope: Scope) -> list[str]:
    """Return the names that are not only imported."""
    return [name for name, bound in scope.bindings.items()
            if any(binding.kind != "import" for binding in bound)]


def _rows_of_import(name: str, binding: Binding) -> list[tuple[str, str]]:
    rows = [(last_part(binding.text), "m")]
    if binding.name not in ("", "*"):
        rows += [(binding.name, "u"), (binding.name, "m")]
        if binding.name != name:
            rows.append((binding.name, "a"))
    return rows


def last_part(module: str) -> str:
    """Return the last part of a module's name as written: `./a/b.js` is `b`."""
    last = module.rstrip("/").rpartition("/")[2]
    return last.partition(".")[0] if last != module and last.strip(".") else last.rpartition(".")[2]


def _unpacked(packed: bytes) -> Facts:
    return msgspec.msgpack.decode(zlib.decompress(packed), type=Facts)


class _OtherVersionError(Exception):
    """The file is an index of another version of the program, or no index."""


def _opened(path: str) -> apsw.Connection:
    db = apsw.Connection(path)
    try:
        db.set_busy_timeout(BUSY_MS)
        db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -8000")
        ((found,),) = db.execute("PRAGMA user_version").fetchall()
        if found != VERSION:
            if db.execute(sql.ANYTHING).fetchone() is not None:
                raise _OtherVersionError
            db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute(sql.SCHEMA)
    except BaseException:
        db.close()
        raise
    return db
