"""The context archive over the operations: search, one section, and reading its folders anew."""

from __future__ import annotations

from coordinator.archive.index import UnknownSection
from coordinator.kernel.core import Actor, Service
from coordinator.store.ledger import View
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: Signs of a query and of a reference that are looked at; hits that are told.
QUERY_MAX, REF_MAX, HITS_MAX = 2000, 500, 100


def search(svc: Service, view: View, actor: Actor, req: rq.ArchiveSearch) -> rq.HitList:
    """See `requests.ArchiveSearch`."""
    hits = svc.archive.search(req.query[:QUERY_MAX], min(req.limit, HITS_MAX))
    return rq.HitList(
        items=[
            rq.Hit(number=h.number, title=h.title, source=h.source, snippet=h.snippet)
            for h in hits
        ]
    )


def show(svc: Service, view: View, actor: Actor, req: rq.ArchiveShow) -> rq.ArchiveSection:
    """See `requests.ArchiveShow`."""
    try:
        section = svc.archive.show(req.ref[:REF_MAX])
    except UnknownSection as unknown:
        raise Refusal(
            Code.INVALID, f"{unknown}.", next="`coord archive search WORDS` finds sections.",
            candidates=list(unknown.candidates),
        ) from None
    return rq.ArchiveSection(
        number=section.number, title=section.title, source=section.source, body=section.body,
        paths=list(section.paths),
    )


def index(svc: Service, view: View, actor: Actor, req: rq.ArchiveIndexNow) -> rq.Indexed:
    """See `requests.ArchiveIndexNow`."""
    done = svc.archive.refresh()
    return rq.Indexed(
        added=len(done.added), changed=len(done.changed), removed=len(done.removed),
        warnings=[str(remark) for remark in done.warnings],
    )

