"""The guard of commits and pushes: what others hold of some files, and what was done over it."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator
from unicodedata import normalize

from coordinator.kernel.core import Actor, Service, listed
from coordinator.kernel.holders import notices, sessions
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.looking.facts import Place
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.purposes import is_unasked
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource, resource

#: Files that one request may name: each costs a look at the disk and the index.
PATHS_MAX = 2_000


def check(svc: Service, view: View, actor: Actor, req: rq.GuardCheck) -> rq.GuardHeldList:
    """See `requests.GuardCheck`."""
    agent = actor.agent or req.agent
    if req.agent is not None and _parent(view, req.agent) == actor.agent is not None:
        agent = req.agent  # a sub-agent under the token of the whole
    if agent is None and req.session:
        agent = sessions.named(req.profile, req.session)
    return rq.GuardHeldList(agent=agent, items=_held(svc, view, agent, req.paths))


def override(svc: Service, tx: Tx, actor: Actor, req: rq.GuardOverride) -> rq.GuardHeldList:
    """See `requests.GuardOverride`."""
    by, action = req.by[:100] or "somebody", req.action[:40]
    items = _held(svc, tx, None, req.paths)
    if items:
        names = sorted({item.resource for item in items})
        tx.record(ev.Noted(
            what=f"{by} went on over the guard ({action})",
            facts={"paths": listed(names, 20),
                   "holders": listed(sorted({item.holder for item in items}), 20)},
        ))
    for holder in sorted({item.holder for item in items}):
        own = sorted({item.resource for item in items if item.holder == holder})
        notices.post(
            tx, holder, "guard", f"{by} went on over the guard with a {action} of {listed(own)}, "
            "which you hold: read it afresh before you go on.", paths=own,
        )
    return rq.GuardHeldList(agent=None, items=items)


def _held(svc: Service, view: View, agent: str | None, paths: list[str]) -> list[rq.GuardHeld]:
    if len(paths) > PATHS_MAX:
        raise Refusal(Code.LIMIT, f"{len(paths)} paths; {PATHS_MAX} at most in one request.")
    mine = {agent, _parent(view, agent)} - {None}
    held: dict[tuple[str, int], rq.GuardHeld] = {}
    # A tree that is mounted elsewhere names them from the root.
    names = {path: posixpath.join(svc.root, path) for path in paths}
    view.looked.require(Place(name, None, True) for name in names.values())
    for path, name in names.items():
        entry = _entry(svc, view, name)
        if entry is None:
            continue  # outside, or git's own, so nobody can hold it
        tree = svc.tree.worktree_of(name)
        for row in _in_the_way(view, mine, *entry):
            if row.worktree != tree and is_unasked(row.purpose) and row.inode != entry[1]:
                continue  # another file: of its own tree, on a branch of its own
            held.setdefault((path, row.fencing_token), rq.GuardHeld(
                path=path, resource=row.file_path, holder=row.locked_by, task=row.task_id,
                description=row.task_description, since=row.locked_at, until=row.expires_at,
                worktree=row.worktree,
            ))
    return list(held.values())


def _in_the_way(view: View, mine: Collection[str | None], asked: Resource, inode: str | None
                ) -> Iterator[LeaseRow]:
    """Leases of others on a file: by its name, or by another of its names alone."""
    linked = view.each(LeaseRow, "rivals_by_inode", inode) if inode else []
    same = {lease.fencing_token for lease in linked}
    rows = [*leases_near(view, asked), *linked]
    agreed = {row.agreed_as for row in rows if row.locked_by in mine}
    by_name = {row.locked_by for row in rows if overlaps(
        asked, as_resource(row.file_path, row.kind, row.scope))}
    for row in rows:
        if (row.locked_by in mine or row.expires_at <= view.now
                or (row.mode == "shared" and row.agreed_as in {None, *agreed})):
            continue
        lease = as_resource(row.file_path, row.kind, row.scope)
        if overlaps(asked, lease) or (row.fencing_token in same and row.locked_by not in by_name):
            yield row


def _entry(svc: Service, view: View, path: str) -> tuple[Resource, str | None] | None:
    """What git has under an absolute path, and the file that is there now. The entry keeps its name
    when a link replaces it or a directory above. The target of that link does not matter."""
    try:
        located = view.looked.place(path, literal=True)
    except Refusal:  # a link leads out, or in a loop
        located = None
    if located is not None and located.path is not None and (
            _spelled(located.path, svc.fold_case) == _spelled(path, svc.fold_case)):
        return located.resource, located.inode
    name = svc.tree.relative(path)
    if name:
        return resource(name, "file", fold_case=svc.fold_case), None
    return None if located is None else (located.resource, located.inode)


def _spelled(path: str, fold_case: bool) -> str:
    """A path without what is only another spelling of it."""
    plain = path if path.isascii() else normalize("NFC", path)
    return plain.casefold() if fold_case else plain


def _parent(view: View, agent: str | None) -> str | None:
    row = view.agent(agent) if agent is not None else None
    return row.parent if row is not None else None
