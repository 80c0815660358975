"""The archive's index: keeps Markdown searchable, and answers which text explains a file.

The module owns one SQLite file of derived data. The file may be deleted at any time; a damaged one,
or a file of another version, is rebuilt silently. The module never writes into the archive's
folders, never follows a link out of the repository, and reads no clock: a file is read again when
its size or its modification time has changed.

One thread uses one instance; several instances, in several processes, may share the file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, TypeVar

import apsw

from coordinator.archive.excerpt_budget import clean
from coordinator.archive.excerpts import Excerpt, choose
from coordinator.archive.markdown import Remark, Section, document
from coordinator.archive.resource_terms import tokens
from coordinator.archive.section_store import SectionStore
from coordinator.words.pickled import Pickled

DEFAULT_FOLDERS = ("context_archive",)
LIVING_SOURCE = "(living)"
FILE_BYTES_MAX = 1 << 20

_APPLICATION_ID = 0x636F6172  # "coar"
_VERSION = 1
_BUSY_MS, _BUSY_STEP_MS = 5_000, 10
_SUFFIXES = (".md", ".markdown")
_FILES = """
CREATE TABLE file (
  source   TEXT PRIMARY KEY,          -- repo-relative path
  size     INTEGER NOT NULL,          -- bytes
  mtime_ns INTEGER NOT NULL,
  remarks  TEXT NOT NULL              -- JSON: [[line, column, message]]
) STRICT, WITHOUT ROWID;
"""
# One statement, so that another process is seen either before or after it made the tables.
_STATE = """
SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema)
FROM pragma_user_version, pragma_application_id
"""

_CANNOT_WRITE = (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.BusyError)

T = TypeVar("T")


class _DatabaseState(NamedTuple):
    """The owner of a database file, its version of the tables, and their number."""

    version: int
    owner: int
    tables: int


class _KnownFile(NamedTuple):
    """A file as it was read last."""

    source: str
    size: int
    mtime_ns: int


class _Remarked(NamedTuple):
    """A file and its remarks: JSON of (line, column, message)."""

    source: str
    remarks: str


def _write_ahead(db: apsw.Connection) -> None:
    """Set the journal of a file that others may open for the first time, too. SQLite does not wait
    for them here, but reports at once that it is busy (https://sqlite.org/wal.html#busy)."""
    for _ in range(_BUSY_MS // _BUSY_STEP_MS):
        with suppress(apsw.BusyError):
            db.execute("PRAGMA journal_mode = WAL")
            return
        time.sleep(_BUSY_STEP_MS / 1000)
    db.execute("PRAGMA journal_mode = WAL")


class UnknownSection(Pickled, LookupError):
    """No section, or more than one, has this reference. `candidates` are references that work."""

    def __init__(self, ref: str, candidates: Sequence[str]) -> None:
        several = "names more than one section" if candidates else "names no section"
        super().__init__(f"{ref!r} {several} of the archive")
        self.ref = ref
        self.candidates = tuple(candidates)


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The changes of a refresh, by source, and every present warning."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    warnings: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result; matched words in `snippet` are between « and »."""

    number: str
    title: str
    source: str
    line: int
    snippet: str
    score: float


class ArchiveIndex:
    """The index of the Markdown below `folders` (repo-relative; a single file is allowed too)."""

    def __init__(
        self, db_path: Path, root: Path, folders: Sequence[str] = DEFAULT_FOLDERS
    ) -> None:
        """Open or make the index file.

        Raises:
            ValueError: a folder is outside `root`, or `db_path` is another program's database.
        """
        for folder in folders:
            if Path(folder).is_absolute() or ".." in Path(folder).parts:
                raise ValueError(f"archive folder {folder!r} is not inside the repository")
        self._path = Path(db_path)
        self._root = Path(root)
        self._folders = tuple(dict.fromkeys(Path(f).as_posix() for f in folders))
        self._living: tuple[Section, ...] = ()
        self._living_put = True
        try:
            self._open()
        except (apsw.CorruptError, apsw.NotADBError):
            self._start_over()

    def close(self) -> None:
        """Close the file. The instance must not be used afterwards."""
        self._db.close()

    def refresh(self) -> Refreshed:
        """Bring the index up to date with the files, in one transaction.

        A file over 1 MiB, not UTF-8, or unreadable is left out, with a warning.
        """
        return self._guarded(self._refresh)

    def living(self, sections: Sequence[Section]) -> None:
        """Replace all sections that the daemon writes by itself; their source is `(living)`.

        They come every second and are seldom asked for, so the next question indexes them.
        """
        self._living = tuple(sections)
        self._living_put = False

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Find the best sections for any text a person may type; titles weigh most.

        All words must occur; failing that, words that begin so; failing that, any of them.
        Living and written sections alternate, because their scores do not compare.
        """
        words = tokens(query)
        if not words or limit <= 0:
            return []
        stages = (
            " AND ".join(words),
            " AND ".join(f"{word}*" for word in words),
            " OR ".join(f"{word}*" for word in words),
        )
        return self._reading(lambda: self._search(stages, limit))

    def show(self, ref: str) -> Section:
        """Return the section called `4.2`, `4.2@parsers.md`, or by its title or a part of it.

        Raises:
            UnknownSection: no section has that name, or several have it.
        """
        return self._reading(lambda: self._show(clean(ref).strip()))

    def excerpts(
        self, paths: Sequence[str], budget_bytes: int, words: str = ""
    ) -> list[Excerpt]:
        """Return text that explains these resources, strongest tie first.

        The texts together take at most `budget_bytes` bytes of UTF-8. `words`, for example
        the asker's plan, decide between sections that are tied equally. Words in the text count
        only if no section names the resource.
        """
        if not paths or budget_bytes <= 0:
            return []
        return self._reading(lambda: choose(self._stores, paths, budget_bytes, words))

    # -- the file ---------------------------------------------------------------------------

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        db = apsw.Connection(os.fspath(self._path))
        try:
            db.set_busy_timeout(_BUSY_MS)
            state = _DatabaseState(*next(iter(db.execute(_STATE))))
            if state.owner != _APPLICATION_ID and state.tables:
                raise ValueError(f"{self._path} is another program's database")
            if state.tables and state.version != _VERSION:
                raise apsw.NotADBError("of another version")
            if db.execute("PRAGMA quick_check(1)").get != "ok":
                raise apsw.CorruptError("damaged")
            _write_ahead(db)
            db.execute("PRAGMA synchronous = OFF")  # derived: a power cut costs a rebuild
            self._db = db
            self._written_store = SectionStore(db, "written")
            self._living_store = SectionStore(db, "living")
            self._stores = (self._written_store, self._living_store)
            self._create()
        except BaseException:
            db.close()
            raise

    def _create(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            if not self._db.execute("SELECT count(*) FROM sqlite_schema").get:
                self._db.execute(_FILES)
                for store in self._stores:
                    store.create()
                self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                self._db.execute(f"PRAGMA user_version = {_VERSION}")
        self._db.execute("COMMIT")

    def _start_over(self) -> None:
        with suppress(AttributeError):
            self._db.close()
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        self._open()

    def _guarded(self, work: Callable[[], T]) -> T:
        """Do `work`. If the file is damaged, rebuild it and do the work again."""
        try:
            return work()
        except (apsw.CorruptError, apsw.NotADBError):
            self._start_over()
            self._refresh()
            self._put_living()
            return work()

    def _reading(self, work: Callable[[], T]) -> T:
        """Do `work` on one state of the file, whatever another process commits meanwhile."""

        def at_once() -> T:
            if not self._living_put:
                with suppress(*_CANNOT_WRITE):  # otherwise the earlier report is used
                    self._put_living()
            self._db.execute("BEGIN")
            try:
                return work()
            finally:
                self._db.execute("ROLLBACK")  # it only read

        return self._guarded(at_once)

    # -- filling ----------------------------------------------------------------------------

    def _refresh(self) -> Refreshed:
        added: list[str] = []
        changed: list[str] = []
        self._db.execute("BEGIN IMMEDIATE")
        try:
            indexed = {
                file.source: (file.size, file.mtime_ns)
                for file in map(_KnownFile._make, self._db.execute(
                    "SELECT source, size, mtime_ns FROM file"))
            }
            seen = dict(self._files())
            removed = sorted(indexed.keys() - seen.keys())
            for source in removed:
                self._written_store.put(source, ())
                self._db.execute("DELETE FROM file WHERE source = ?", (source,))
            for source, (length, mtime_ns) in sorted(seen.items()):
                if indexed.get(source) == (length, mtime_ns):
                    continue
                sections, remarks = self._read(source, length)
                self._written_store.put(source, sections)
                self._db.execute(
                    "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?)",
                    (source, length, mtime_ns, _packed(remarks)),
                )
                (changed if source in indexed else added).append(source)
            warnings = tuple(self._warnings())
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(apsw.Error):
                self._db.execute("ROLLBACK")
            raise
        return Refreshed(tuple(added), tuple(changed), tuple(removed), warnings)

    def _files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield every Markdown file of the archive: its source, its size and modification time."""
        inside = self._root.resolve()
        for folder in self._folders:
            top = self._root / folder
            paths: Iterable[Path] = [top] if top.is_file() else _walk(top)
            for path in paths:
                source = path.relative_to(self._root).as_posix()
                try:
                    if path.is_symlink() and not path.resolve().is_relative_to(inside):
                        continue
                    stat = path.stat()
                    source.encode()
                except (OSError, RuntimeError, UnicodeEncodeError):
                    continue  # it was deleted meanwhile, or its name cannot be shown
                yield source, (stat.st_size, stat.st_mtime_ns)

    def _read(self, source: str, length: int) -> tuple[tuple[Section, ...], tuple[Remark, ...]]:
        if length > FILE_BYTES_MAX:
            return (), (Remark(source, 0, 0, f"skipped: larger than {FILE_BYTES_MAX} bytes"),)
        try:
            text = (self._root / source).read_bytes()[: FILE_BYTES_MAX + 1].decode("utf-8")
        except UnicodeDecodeError as e:
            return (), (Remark(source, 0, 0, f"skipped: not UTF-8 at byte {e.start}"),)
        except OSError as e:
            return (), (Remark(source, 0, 0, f"skipped: {e.strerror or e}"),)
        read = document(text, source)
        return read.sections, read.remarks

    def _warnings(self) -> Iterator[Remark]:
        rows = self._db.execute("SELECT source, remarks FROM file WHERE remarks != '[]'")
        for file in map(_Remarked._make, rows):
            for line, column, message in json.loads(file.remarks):
                yield Remark(file.source, line, column, message)

    def _put_living(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._living_store.put(LIVING_SOURCE, self._living)
            self._db.execute("COMMIT")
            self._living_put = True
        except BaseException:
            with suppress(apsw.Error):
                self._db.execute("ROLLBACK")
            raise

    # -- asking -----------------------------------------------------------------------------

    def _search(self, stages: Sequence[str], limit: int) -> list[Hit]:
        for stage in stages:
            matches = [store.find(stage, limit) for store in self._stores]
            if any(matches):
                dealt = [f for turn in zip_longest(*matches) for f in turn if f]
                return [
                    Hit(f.number, f.title, f.source, f.line, f.snippet, f.score)
                    for f in dealt[:limit]
                ]
        return []

    def _show(self, ref: str) -> Section:
        name, separator, source = ref.rpartition("@")
        if not separator:
            name, source = ref, ""
        sections = self._named(name.strip(), source.strip())
        if separator and not sections:
            sections = self._named(ref, "")  # a title may contain an @
        if len(sections) != 1:
            raise UnknownSection(ref, [f"{s.number}@{s.source}" for s in sections])
        return sections[0]

    def _named(self, name: str, source: str) -> list[Section]:
        """Find sections by number, otherwise by exact title, otherwise by a part of the title."""
        wanted = name.removeprefix("§").casefold()
        exact: list[Section] = []
        partial: list[Section] = []
        for store in self._stores:
            by_number = _of_source(store, store.numbered(wanted), source)
            if by_number:
                return by_number
            titles = [(row, title.casefold()) for row, title in store.titles()]
            exact += _of_source(store, [r for r, t in titles if t == wanted], source)
            if wanted:
                partial += _of_source(store, [r for r, t in titles if wanted in t], source)
        return exact or partial


def _walk(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(_SUFFIXES) and not name.startswith("."):
                yield Path(folder, name)


def _of_source(store: SectionStore, rows: Sequence[int], source: str) -> list[Section]:
    """Return the sections with these ids whose source is, or ends in, `source`."""
    loaded = store.load(rows)
    return [
        loaded[row]
        for row in rows
        if not source or loaded[row].source == source or loaded[row].source.endswith("/" + source)
    ]


def _packed(remarks: Sequence[Remark]) -> str:
    return json.dumps([[r.line, r.column, r.message] for r in remarks])
