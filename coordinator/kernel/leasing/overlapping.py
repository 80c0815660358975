"""Leases, waiters and reviews that may overlap a resource. Only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from coordinator.rules import leases as rule
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow, Row
from coordinator.store.statements import many
from coordinator.words.clock import from_iso, short
from coordinator.words.resource_names import Kind, Resource, reach, resource

#: Sentences on holders in one answer.
HOLDERS_TOLD_MAX = 20
R = TypeVar("R")


class NearReviewRow(Row, frozen=True):
    """A file of a review that may overlap. `unkept`: its partial work exists only in its place."""

    review_id: str
    path: str
    scope: str
    state: str
    task_id: str | None
    unkept: int


def one_by_one(view: View, shape: type[R], statement: str, asked: Resource) -> Iterator[R]:
    """Rows of a statement that searches around `asked`, read one at a time. A reader that has seen
    enough stops, however many leases are below a directory."""
    text, scopes = _where(statement, asked.kind, asked.scope)
    return (shape(*row) for row in view.db.execute(text, scopes))


def leases_near(view: View, asked: Resource) -> list[LeaseRow]:
    """Leases that may overlap a resource, read before anything is changed."""
    return near(view, LeaseRow, "rivals", asked)


def each_lease_near(view: View, asked: Resource) -> Iterator[LeaseRow]:
    """Leases near a resource, read one at a time: see `one_by_one`."""
    return one_by_one(view, LeaseRow, "rivals", asked)


@lru_cache(maxsize=4096)
def _where(statement: str, kind: Kind, scope: str) -> tuple[str, tuple[str, ...]]:
    """The statement's text and parameters for what may overlap a resource of this scope."""
    exact, prefix = reach(kind, scope)
    high = prefix[:-1] + "0"  # "0" follows "/", so everything with the prefix is below it
    return many(statement, len(exact)), (*exact, prefix, high)


def near(view: View, shape: type[R], statement: str, asked: Resource) -> list[R]:
    """All of `one_by_one`, read before anything is changed."""
    text, scopes = _where(statement, asked.kind, asked.scope)
    rows = view.cursor.execute(text, scopes).fetchall()
    return [shape(*row) for row in rows] if rows else []


def holders_of_regions(view: View, name: str, fold_case: bool) -> set[str]:
    """The holders of regions of this file in the main working tree."""
    rows = leases_near(
        view, resource(name, "file", fold_case=fold_case))
    return {row.locked_by for row in rows if row.kind == "region" and row.expires_at > view.now
            and row.worktree is None}


def holders_of(view: View, holder: str, wanted: Sequence[tuple[Resource, str]]) -> list[str]:
    """Sentences on who holds what `holder` would need; nothing is closed, nothing changes."""
    result: list[str] = []
    for asked, mode in wanted:
        for lease in each_lease_near(view, asked):
            if len(result) == HOLDERS_TOLD_MAX:
                return [*result, "and others"]
            if lease.expires_at > view.now and rule.conflicts(asked, mode, holder, lease):
                text = (f"{lease.locked_by} holds {lease.file_path} until "
                        f"{short(from_iso(lease.expires_at))}")
                result += [text] if text not in result else []
    return result
