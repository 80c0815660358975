"""What git's turn (enforcement/git_turns.py) means for those who ask for leases meanwhile."""

from __future__ import annotations

from coordinator.rules import leases as rule
from coordinator.service.holders.families import family
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words.resource_names import Located, resource

#: The git-wide resource of the main working tree; those of linked worktrees lie below it.
GIT_INDEX = "git:index"
#: Leases that a turn is weighed against.
HELD_MAX = 2_000
_SCOPE = resource(GIT_INDEX, "key").scope


def is_turn(scope: str) -> bool:
    """Whether a lease of this scope is a turn of git's."""
    return scope.startswith(_SCOPE)


def is_turn_name(name: str) -> bool:
    """The same of a resource's name."""
    return name == GIT_INDEX or name.startswith(f"{GIT_INDEX}:")


def in_the_way(tx: Tx, holder: str, located: Located, mode: str, most: int) -> list[LeaseRow]:
    """Leases of others, at most so many, that this meets for git's sake: a turn meets all that is
    held in its working tree, and whatever is in a tree meets the turn that changes it just now."""
    turn = is_turn(located.resource.scope)
    if not turn and (located.resource.kind == "key" or not tx.present().turns):
        return []
    statement, given = ("leases_live", (tx.now, 0, None, HELD_MAX)) if turn else (
        "leases_of_git", ())
    mine, out = family(tx, holder), list[LeaseRow]()
    for raw in tx.rows(statement, *given):
        row = LeaseRow(*raw)
        if row.worktree == located.worktree and row.locked_by not in mine and not (
                row.kind == "key" if turn else row.expires_at <= tx.now) and not (
                rule.both_shared(mode, row)):
            out.append(row)
            if len(out) == most:
                break
    return out
