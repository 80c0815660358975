"""Asking the context archive."""

from __future__ import annotations

from coordinator.words.requests.base import Count, Reply, Request
from coordinator.words.texts import Words


class Hit(Reply):
    number: str
    title: str
    source: str
    snippet: str


class HitList(Reply):
    items: list[Hit]
    next: str | None = None


class ArchiveSearch(Request[HitList]):
    """Full-text search over the context archive and the living sections."""

    op = "archive_search"
    http = ("GET", "/v1/archive/search")
    writes = False
    query: Words
    limit: Count = 10


class ArchiveSection(Reply):
    number: str
    title: str
    source: str
    body: str
    paths: list[str]


class ArchiveShow(Request[ArchiveSection]):
    """One section by number (`4.2`, `4.2@file.md`) or title."""

    op = "archive_show"
    http = ("GET", "/v1/archive/show")
    writes = False
    ref: Words


class Indexed(Reply):
    added: int
    changed: int
    removed: int
    warnings: list[str]


class ArchiveIndexNow(Request[Indexed]):
    """Read changed Markdown again now."""

    op = "archive_index"
    http = ("POST", "/v1/archive/index")
    writes = False
