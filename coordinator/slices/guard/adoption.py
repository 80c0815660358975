"""Adoption: a file that nobody held and an agent's command wrote is leased to that agent.

`attribution` decides whose write it was. The lease begins with what the file held before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from coordinator.kernel import repository_files, tasks
from coordinator.kernel.core import Actor, Service, listed, owner
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing import leases
from coordinator.kernel.leasing.blockers import Asking, find_blockers
from coordinator.kernel.leasing.grant import Before
from coordinator.looking.facts import Place
from coordinator.slices.guard.ended_rights import EndedRights
from coordinator.store.ledger import Tx
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, path_of, path_scope, region_of, resource

if TYPE_CHECKING:
    from coordinator.slices.guard.seen_writes import Seen

#: A file that was written so long (ms) before it was renamed has what it had at its old name.
MOVED_AS_IT_WAS_MS = 1_000
#: Files that one batch of changes may lease to one agent.
ADOPTED_MAX = 200


class Adopted(NamedTuple):
    """A write that is its writer's: `before` is the content that was last seen there, if any;
    `there`, where it was moved from."""

    agent: str
    change: Seen
    before: str | None
    there: str | None = None


def adopt(svc: Service, tx: Tx, adoption: Adopted) -> bool:
    """Lease a file to the agent whose command wrote it, unless something blocks it now. Of a
    renamed file both names are leased.

    Raises:
        Unready: the file has to be looked at.
    """
    path = adoption.change.path
    located = _free(svc, tx, adoption.agent, Place(path, None, True, "itself"))
    if located is not None and located.resource.scope.rstrip("/") != path_scope(
            path, svc.fold_case).rstrip("/"):
        return False  # now below a link; the file that it leads to was not written
    if located is None or _was_held_by_another_name(svc, tx, adoption, located):
        return False
    moved = _moved(svc, tx, adoption)
    before = _before(tx, adoption)
    if before is None and moved is not None and adoption.before is None:
        before = Before(None)
    if not _lease(svc, tx, adoption.agent, located, before):
        return False
    repository_files.keep(tx, adoption.change.now)  # no hook will have noted it
    if moved is not None:
        _lease(svc, tx, adoption.agent, *moved)
    return True


def _moved(svc: Service, tx: Tx, adoption: Adopted) -> tuple[Located, Before] | None:
    """The name that a file was renamed from, with its kept content there. None if it was not
    renamed, or the content is unknown, or somebody has the name, or something is there again.

    Raises:
        Unready: the name has to be looked at.
    """
    change, name = adoption.change, adoption.change.moved_from
    if name is None:
        return None
    located = _free(svc, tx, adoption.agent, Place(name, None, True, "itself"))
    if located is None or located.there or located.resource.scope != path_scope(
            name, svc.fold_case):
        return None
    written, moved = change.changed_ms, change.touched_ms
    if (written is not None and moved is not None and moved - written >= MOVED_AS_IT_WAS_MS
            and change.now.kept):
        repository_files.keep(tx, change.now)
        return located, Before(change.hash)
    if adoption.there is not None and tx.has("blob_has", adoption.there):
        return located, Before(adoption.there)
    if change.before_there.hash is not None and change.before_there.kept:
        repository_files.keep(tx, change.before_there)
        return located, Before(change.before_there.hash)
    return None


def _free(svc: Service, tx: Tx, agent: str, place: Place) -> Located | None:
    """The place as a resource, if the agent could have it and has nothing of it.

    Raises:
        Unready: it has to be looked at.
    """
    tx.looked.require([place])
    try:
        located = tx.looked.located(place)
        blockers = find_blockers(svc, tx, agent, [(located, "exclusive")],
                                 Asking(purpose=purposes.ADOPTED))
    except Refusal:
        return None
    taken = blockers.blocked or blockers.closed or blockers.mine or blockers.own
    return None if taken else located


def _was_held_by_another_name(svc: Service, tx: Tx, adoption: Adopted, located: Located) -> bool:
    """Whether another agent had the file under another name, a hard link, when it was written. Then
    it was not free, though it is now.

    Raises:
        Unready: its names were not looked at.
    """
    written = adoption.change.touched_ms
    if located.links < 2 or located.path is None or written is None:
        return False
    ended = EndedRights()
    ended.catch_up(tx)
    for name in tx.looked.twins(located.path):
        end = ended.last_overlapping(resource(name, "file", fold_case=svc.fold_case))
        if (end is not None and end.at >= iso(written)
                and owner(tx, end.agent) != owner(tx, adoption.agent)):
            return True
    return False


def adopt_part(svc: Service, tx: Tx, agent: str, name: str, whole: str) -> bool:
    """Lease a region to the agent whose command changed it, unless something blocks it now.
    `whole`: the former content of its file, kept.

    Raises:
        Unready: the file has to be looked at.
    """
    path, located = path_of(name, "region"), _free(svc, tx, agent, Place(name))
    if located is None:
        return False
    try:
        was = tx.looked.part(svc.where(None, path), region_of(name), of=whole)
    except Refusal:
        return False
    tx.keep_found(was)
    return _lease(svc, tx, agent, located, Before(was.hash, [(path, whole)]))


def _lease(svc: Service, tx: Tx, agent: str, located: Located, before: Before | None) -> bool:
    request = rq.Acquire(
        agent=agent, resources=[located.resource.name], retry=False,
        description="changed by its command",
        task=tasks.find_only_claim(tx, agent, owner(tx, agent)),
    )
    try:
        answer = leases.acquire_located(svc, tx, Actor(), request, [located], leases.How(
            held_before=before, purpose=purposes.ADOPTED))
    except Refusal:
        return False
    return not isinstance(answer, Refusal)


def _before(tx: Tx, adoption: Adopted) -> Before | None:
    """The former content of the file, kept. None if it is unknown; then the lease begins with the
    present content."""
    if adoption.before is not None and tx.has("blob_has", adoption.before):
        return Before(adoption.before)
    committed = adoption.change.before
    if committed.hash is not None and committed.kept:
        repository_files.keep(tx, committed)
        return Before(committed.hash)
    return Before(None) if adoption.change.is_new and adoption.before is None else None


def doubtful(tx: Tx, change: Seen) -> bool:
    """Tell the agents whose commands ran when a file was written that nobody held. Returns whether
    there were several."""
    agents = sorted({owner(tx, call.holder) for call in change.calls if call.is_command})
    for agent in agents if len(agents) > 1 else ():
        others = [other_agent for other_agent in agents if other_agent != agent]
        notices.post(
            tx, agent, "doubtful",
            f"{change.path} was changed while commands of yours and of {listed(others)} ran, "
            "and nobody had leased it. Look whether it is as you mean it, and lease it before you "
            "write it again.", resource=change.path,
        )
    return len(agents) > 1


def most(adoptions: Sequence[Adopted]) -> list[Adopted]:
    """The first adoptions of each agent."""
    count: dict[str, int] = {}
    result = []
    for adoption in adoptions:
        count[adoption.agent] = count.get(adoption.agent, 0) + 1
        if count[adoption.agent] <= ADOPTED_MAX:
            result.append(adoption)
    return result
