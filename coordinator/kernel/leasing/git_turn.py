"""How git's turn (slices/guard/git_turns.py) affects agents that ask for leases meanwhile."""

from __future__ import annotations

import hashlib

from coordinator.kernel.core import Service, family
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words.resource_names import Located, Resource, resource

#: The git-wide resource of the main working tree. Those of linked worktrees and of repositories
#: below the root are below it.
GIT_INDEX = "git:index"
#: Leases that a turn is weighed against.
HELD_MAX = 2_000
_SCOPE = resource(GIT_INDEX, "key").scope


def is_turn(scope: str) -> bool:
    """Whether a lease of this scope is a turn of git's."""
    return scope.startswith(_SCOPE)


def is_turn_name(name: str) -> bool:
    """Whether a resource's name is that of a turn."""
    return name == GIT_INDEX or name.startswith(f"{GIT_INDEX}:")


def turn_in(tree: str | None) -> Located:
    """The resource of a turn in this tree.

    Args:
        tree: the linked worktree, or the top of a repository of its own below the root; None: the
            main working tree.
    """
    name = GIT_INDEX
    if tree is not None:
        digest = hashlib.blake2b(tree.encode("utf-8", "surrogateescape"), digest_size=6)
        name += f":{digest.hexdigest()}"
    return Located(resource(name, "key"), None, None, tree)


def in_the_way(svc: Service, tx: Tx, holder: str, located: Located, mode: str,
               most: int) -> list[LeaseRow]:
    """Leases of others, at most so many, that this meets for git's sake: a turn meets all that is
    held in its working tree, and whatever is in a tree meets the turn that changes it just now."""
    turn = is_turn(located.resource.scope)
    if not turn and (located.resource.kind == "key" or not tx.present().turns):
        return []
    statement, given = ("leases_live", (tx.now, 0, None, HELD_MAX)) if turn else (
        "leases_of_git", ())
    mine, leases = family(tx, holder), list[LeaseRow]()
    for row in tx.each(LeaseRow, statement, *given):
        if row.locked_by in mine or rule.both_shared(mode, row) or (
                row.kind == "key" if turn else row.expires_at <= tx.now):
            continue
        what, tree, worktree = (
            (rule.as_resource(row.file_path, row.kind, row.scope), located.worktree, row.worktree)
            if turn else (located.resource, row.worktree, located.worktree))
        if changes(svc, tree, worktree, what):
            leases.append(row)
            if len(leases) == most:
                break
    return leases


def changes(svc: Service, tree: str | None, worktree: str | None, what: Resource) -> bool:
    """Whether a turn in this tree (see `turn_in`) may change files of this worktree."""
    if tree == worktree:
        return True
    if tree is None or worktree != svc.tree.worktree_of(tree):
        return False
    below = svc.tree.relative(tree)
    return bool(below) and overlaps(
        what, resource(below or "", "dir", fold_case=svc.fold_case))
