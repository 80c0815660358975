"""One set of sections in SQLite: full text, and the terms that tie each section to code.

The module owns the tables of the index file and every statement on them. It knows nothing of files,
budgets or ranks between kinds of ties. One file has two sets: what people wrote, and the living
sections that the daemon replaces as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import apsw

from coordinator.archive.excerpt_budget import clean
from coordinator.archive.markdown import Section

#: bm25 weights of the text columns: title, keywords, number, body.
_WEIGHTS = "8.0, 4.0, 4.0, 1.0"
_SNIPPET_TOKENS = 24
_GLOB_SIGNS = frozenset("*?[")

MARK_OPEN, MARK_CLOSE = "«", "»"

_TABLES = """
-- A section without its searchable text, in the order of its document.
CREATE TABLE {store}_section (
  id       INTEGER PRIMARY KEY,
  source   TEXT NOT NULL,
  place    INTEGER NOT NULL,          -- from 0, within its source
  number   TEXT NOT NULL,
  level    INTEGER NOT NULL,
  line     INTEGER NOT NULL,
  paths    TEXT NOT NULL,             -- JSON lists
  keywords TEXT NOT NULL,
  mentions TEXT NOT NULL,
  UNIQUE (source, place)
) STRICT;
-- Which section is tied to which term: how an excerpt is found without reading any text.
CREATE TABLE {store}_tie (
  kind    TEXT NOT NULL CHECK (kind IN ('cover', 'mention', 'glob')),
  term    TEXT NOT NULL,
  section INTEGER NOT NULL,
  PRIMARY KEY (kind, term, section)
) STRICT, WITHOUT ROWID;
CREATE INDEX {store}_tie_by_section ON {store}_tie (section);
CREATE VIRTUAL TABLE {store}_text USING fts5 (
  title, keywords, number, body, tokenize = 'porter unicode61'
);
"""
_INSERT_SECTION = """
INSERT INTO {store}_section (source, place, number, level, line, paths, keywords, mentions)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
_INSERT_TEXT = "INSERT INTO {store}_text (rowid, title, keywords, number, body) VALUES (?,?,?,?,?)"
_INSERT_TIE = "INSERT OR IGNORE INTO {store}_tie (kind, term, section) VALUES (?, ?, ?)"
_IDS_OF = "SELECT id FROM {store}_section WHERE source = ?"
_DELETE_TEXT = "DELETE FROM {store}_text WHERE rowid = ?"
_DELETE_TIES = "DELETE FROM {store}_tie WHERE section = ?"
_DELETE_SECTION = "DELETE FROM {store}_section WHERE id = ?"
_FIND = """
SELECT t.rowid, s.number, t.title, s.source, s.line,
       snippet({store}_text, 3, ?, ?, '…', {tokens}), -bm25({store}_text, {weights})
FROM {store}_text AS t JOIN {store}_section AS s ON s.id = t.rowid
WHERE {store}_text MATCH ? ORDER BY bm25({store}_text, {weights}), s.source, s.place LIMIT ?
"""
_WORDED = """
SELECT rowid FROM {store}_text WHERE {store}_text MATCH ? AND body != ''
ORDER BY bm25({store}_text, {weights}), rowid LIMIT ?
"""
_TIED = """
SELECT t.kind, t.term, t.section FROM json_each(?) AS asked
CROSS JOIN {store}_tie AS t ON t.kind = 'cover' AND t.term = asked.value
UNION ALL
SELECT t.kind, t.term, t.section FROM json_each(?) AS asked
CROSS JOIN {store}_tie AS t ON t.kind = 'mention' AND t.term = asked.value
"""
_WITHIN = "SELECT term, section FROM {store}_tie WHERE kind = ? AND term >= ? AND term < ?"
_PATTERNS = "SELECT DISTINCT term FROM {store}_tie WHERE kind = 'glob'"
_MATCHED = """
SELECT t.term, t.section FROM json_each(?) AS asked
CROSS JOIN {store}_tie AS t ON t.kind = 'glob' AND t.term = asked.value
"""
_BY_NUMBER = "SELECT id FROM {store}_section WHERE number = ? ORDER BY source, place"
_TITLES = """
SELECT s.id, t.title FROM {store}_section AS s JOIN {store}_text AS t ON t.rowid = s.id
ORDER BY s.source, s.place
"""
_LOAD = """
SELECT s.id, s.source, s.number, t.title, s.level, t.body, s.line, s.paths, s.keywords, s.mentions
FROM json_each(?) AS asked CROSS JOIN {store}_section AS s ON s.id = asked.value
JOIN {store}_text AS t ON t.rowid = s.id
"""
_PLACES = """
SELECT s.id, s.source, s.place, t.title || ' ' || t.keywords
FROM json_each(?) AS asked CROSS JOIN {store}_section AS s ON s.id = asked.value
JOIN {store}_text AS t ON t.rowid = s.id
"""


class Tie(StrEnum):
    """How a section is tied to a term."""

    COVER = "cover"  # said on purpose: front matter, or the daemon
    MENTION = "mention"  # named in the text
    GLOB = "glob"  # a pattern, from either


_TIES = {tie.value: tie for tie in Tie}


@dataclass(frozen=True, slots=True)
class Found:
    """One full-text match; the greater the score, the better."""

    number: str
    title: str
    source: str
    line: int
    snippet: str
    score: float


class Place(NamedTuple):
    """The place of a section, and its own subject."""

    source: str
    place: int
    about: str  # title and keywords


class _LoadedRow(NamedTuple):
    """A section with its id, as `_LOAD` gives it: the last three are JSON lists."""

    id: int
    source: str
    number: str
    title: str
    level: int
    body: str
    line: int
    paths: str
    keywords: str
    mentions: str

    def section(self) -> Section:
        """The section."""
        paths, keywords, mentions = map(json.loads, (self.paths, self.keywords, self.mentions))
        return Section(self.source, self.number, self.title, self.level, self.body, self.line,
                       tuple(paths), tuple(keywords), tuple(mentions))


class _PlaceRow(NamedTuple):
    """A section's id and its place, as `_PLACES` gives them."""

    id: int
    source: str
    place: int
    about: str


class SectionStore:
    """The sections under one table prefix. Not thread-safe: it shares its index's connection."""

    def __init__(self, db: apsw.Connection, name: str) -> None:
        self._db = db
        self._sql: dict[str, str] = {}
        self._name = name

    def create(self) -> None:
        """Make the tables; the caller holds the transaction."""
        self._db.execute(_TABLES.format(store=self._name))

    def put(self, source: str, sections: Iterable[Section]) -> None:
        """Replace all sections of `source`; the caller holds the transaction."""
        for (row,) in self._all(_IDS_OF, (source,)):
            for statement in (_DELETE_TEXT, _DELETE_TIES, _DELETE_SECTION):
                self._all(statement, (row,))
        for place, s in enumerate(sections):
            lists = [json.dumps(v) for v in (s.paths, s.keywords, s.mentions)]
            number, words = clean(s.number), clean(" ".join(s.keywords))
            ((row,),) = self._all(
                _INSERT_SECTION, (source, place, number, s.level, s.line, *lists)
            )
            self._all(_INSERT_TEXT, (row, clean(s.title), words, number, clean(s.body)))
            ties = ties_of(s)
            if ties:
                self._db.executemany(
                    self._text(_INSERT_TIE), [(kind.value, term, row) for kind, term in ties]
                )

    def find(self, match: str, limit: int) -> list[Found]:
        """Best matches of an FTS5 expression, best first."""
        rows = self._all(_FIND, (MARK_OPEN, MARK_CLOSE, match, limit))
        return [Found(*row[1:]) for row in rows]

    def worded(self, match: str, limit: int) -> list[int]:
        """Ids of the best matches of an FTS5 expression that have any text, best first."""
        return [row for (row,) in self._all(_WORDED, (match, limit))]

    def tied(
        self, covers: Iterable[str], mentions: Iterable[str]
    ) -> list[tuple[Tie, str, int]]:
        """Ties to exactly these terms: kind, term, section id."""
        rows = self._all(_TIED, (json.dumps(list(covers)), json.dumps(list(mentions))))
        return [(_TIES[kind], term, section) for kind, term, section in rows]

    def within(self, prefix: str) -> list[tuple[str, int]]:
        """Terms that begin with `prefix` (not empty), with section ids; globs left out."""
        beyond = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return [
            (term, section)
            for kind in (Tie.COVER, Tie.MENTION)
            for term, section in self._all(_WITHIN, (kind.value, prefix, beyond))
        ]

    def patterns(self) -> list[str]:
        """Every glob that some section is tied to, once."""
        return [term for (term,) in self._all(_PATTERNS, ())]

    def globbed(self, patterns: Iterable[str]) -> list[tuple[str, int]]:
        """Each of these patterns with each section id tied to it."""
        return [(term, row) for term, row in self._all(_MATCHED, (json.dumps(list(patterns)),))]

    def numbered(self, number: str) -> list[int]:
        """Ids of the sections with this number, in order of source."""
        return [row for (row,) in self._all(_BY_NUMBER, (number,))]

    def titles(self) -> list[tuple[int, str]]:
        """Every section id with its title, in order of source and place."""
        return list(self._all(_TITLES, ()))

    def places(self, ids: Iterable[int]) -> dict[int, Place]:
        """Id -> its place; unknown ids are left out."""
        rows = self._all(_PLACES, (json.dumps(list(ids)),))
        return {row.id: Place(row.source, row.place, row.about)
                for row in map(_PlaceRow._make, rows)}

    def load(self, ids: Iterable[int]) -> dict[int, Section]:
        """Id -> section; ids that are not there are left out."""
        return {
            row.id: row.section()
            for row in map(_LoadedRow._make, self._all(_LOAD, (json.dumps(list(ids)),)))
        }

    def _text(self, statement: str) -> str:
        text = self._sql.get(statement)
        if text is None:
            text = self._sql[statement] = statement.format(
                store=self._name, weights=_WEIGHTS, tokens=_SNIPPET_TOKENS
            )
        return text

    def _all(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return list(self._db.execute(self._text(statement), values))


def ties_of(section: Section) -> list[tuple[Tie, str]]:
    """The terms under which `section` can be found; a region ties its file and its symbol too.

    None for a heading without text: it would explain nothing.
    """
    if not section.body:
        return []
    ties: dict[tuple[Tie, str], None] = {}
    for kind, names in ((Tie.COVER, section.paths), (Tie.MENTION, section.mentions)):
        for name in names:
            path, _, symbol = name.partition("::")
            if _GLOB_SIGNS & set(path):
                ties[Tie.GLOB, clean(path)] = None
                continue
            terms = (name, path, symbol) if kind is Tie.MENTION else (name, path)
            for term in terms:
                if term := clean(term).rstrip("/"):
                    ties[kind, term] = None
    return list(ties)
