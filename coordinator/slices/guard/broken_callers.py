"""Leasing together with an edit what the edit breaks elsewhere.

These are callers of a function that takes more, users of a name that is gone, and dynamic calls of
it. The question is asked only where others are at work, and only for a change that other code can
see. An agent that neither holds nor wants what breaks does not notice. If the answer does not come
in time, the edit goes on without it. Leases decide who may have what.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from coordinator.kernel import repository_files
from coordinator.kernel.core import Service, family
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.looking.facts import Parts, Place, Proposed
from coordinator.meaning.outcomes import Outcome
from coordinator.regions.languages import language_of
from coordinator.rules import globs
from coordinator.rules.edits import candidate
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store.ledger import Tx
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, resource

#: How long an agent waits for a judgement of its edit (seconds).
SECONDS_MAX = 2.0
#: An edit that breaks more regions than these is one of the whole file, and of none elsewhere.
REGIONS_MAX = 40
#: Sentences that one answer has.
TOLD_MAX = 3


@dataclass(slots=True)
class Broken:
    """The code that an edit breaks.

    Attributes:
        resources: what is to be leased with it.
        whole: nobody can tell whom it breaks: it is one of the whole file.
        why: a sentence for each of these resources, by name; `whole` has the file's own.
    """

    resources: list[Located] = field(default_factory=list)
    whole: bool = False
    why: dict[str, str] = field(default_factory=dict)


def broken(svc: Service, tx: Tx, agent: str, located: Located, need: Proposed,
           parts: Parts) -> Broken:
    """What this edit of a file breaks and the agent does not hold.

    Raises:
        Unready: it was not asked yet, or files were not looked at.
    """
    name = located.resource.name
    if (not parts.outward or svc.impact is None or svc.settings.leases.meaning == "off"
            or parts.hash is None or not _others_hold(tx, agent)):
        return Broken()
    outcome = tx.looked.after(
        f"impact {located.path} {parts.hash}", partial(_judged, svc, located, need))
    if isinstance(outcome, str) or outcome.outcome == "ALLOW":
        return Broken()
    places = {unseen.resource: unseen.why for unseen in outcome.unseen}
    places |= {breakage.resource: breakage.why for breakage in outcome.breaks if breakage.sure}
    if outcome.note or len(places) > REGIONS_MAX:
        note = outcome.note or f"it breaks {len(places)} places"
        return Broken(whole=True, why={name: f"nobody can tell whom it breaks ({note})"})
    return _regions(svc, tx, agent, located, places)


def explained(refusal: Refusal, why: Mapping[str, str]) -> Refusal:
    """A refusal to lease what breaks, with the reason why it is to be leased; others as they are.
    """
    met = [str(item["resource"]) for item in refusal.facts.get("conflicts", [])]
    sentences = [text for name, text in why.items() if any(_meets(name, text) for text in met)]
    if not sentences:
        return refusal
    return Refusal(refusal.code, f"With this edit {'; '.join(sentences[:TOLD_MAX])}. "
                   f"{refusal.message}", next=refusal.next, **refusal.facts)


def describe(why: Mapping[str, str], edited: Collection[str]) -> str:
    """What an agent has to know of other code that was leased with its edit; empty if nothing was.
    """
    why = {name: text for name, text in why.items() if name not in edited}
    if not why:
        return ""
    more = f"; and {len(why) - TOLD_MAX} more" if len(why) > TOLD_MAX else ""
    return (f"With this edit {'; '.join(list(why.values())[:TOLD_MAX])}{more}. You have a lease on "
            f"{', '.join(list(why)[:TOLD_MAX])}, too.")


def _judged(svc: Service, located: Located, need: Proposed) -> Outcome | str:
    """The answer of the index of meaning. It reads the file, so it runs in a thread."""
    assert svc.impact is not None
    name = located.resource.name
    now = repository_files.look(svc, located.worktree, name)
    made = candidate(now.data, need.edits) if now.data is not None else None
    if now.data is None or made is None:
        return "it changed meanwhile"
    outcome: Outcome | str = svc.impact.judge(name, now.data, made, (), SECONDS_MAX)
    return outcome


def _regions(svc: Service, tx: Tx, agent: str, located: Located,
             regions: Mapping[str, str]) -> Broken:
    """Those of these regions (`path::Region` -> reason) that the agent does not hold."""
    breakage = Broken()
    places = {name: Place(svc.where(located.worktree, name.partition("::")[0]), None, True)
              for name in regions}
    tx.looked.require(set(places.values()))
    for name, why in regions.items():
        region = name.partition("::")[2]
        try:
            there = tx.looked.located(places[name])
            names = tx.looked.names(there.path) if there.path is not None else []
        except Refusal:
            continue  # it is outside of what is leased here
        wanted = there
        if region in names and may_be_divided(svc, there):
            wanted = region_place(svc, there, region)
        if wanted.resource.name in breakage.why or _has(tx, agent, wanted):
            continue
        breakage.resources.append(wanted)
        breakage.why[wanted.resource.name] = why
    return breakage


def _meets(name: str, held: str) -> bool:
    """Whether a lease on `held` may be in the way of one on `name`."""
    path, _, region = name.partition("::")
    other, _, there = held.partition("::")
    if path != other:
        return "*" in held or (held.endswith("/") and name.startswith(held))
    return not region or not there or region == there or region.startswith(f"{there}.") or (
        there.startswith(f"{region}."))


def _others_hold(tx: Tx, agent: str) -> bool:
    """Whether anybody else has a lease: else nothing that breaks could be another's."""
    mine = sorted(family(tx, agent))
    return tx.has("held_by_others", tx.now, mine[0], mine[-1])


def _has(tx: Tx, agent: str, wanted: Located) -> bool:
    mine = family(tx, agent)
    for row in leases_near(tx, wanted.resource):
        held = as_resource(row.file_path, row.kind, row.scope)
        if (row.locked_by in mine and row.mode == "exclusive" and row.expires_at > tx.now
                and row.worktree == wanted.worktree
                and (row.scope == wanted.resource.scope or wanted.resource.scope.startswith(
                    row.scope)) and overlaps(wanted.resource, held)):
            return True
    return False


def may_be_divided(svc: Service, located: Located) -> bool:
    """Whether a file may be leased by region. A file with several links, a file in a working tree
    that no launch made, and whatever the policy names are leased whole."""
    name = located.resource.name
    if (located.worktree is not None and not svc.is_launched_worktree(located.worktree)) or (
            located.links != 1 or located.inode is None or language_of(name) is None):
        return False
    chosen = "region"
    for pattern, by in svc.settings.leases.granularity.items():
        if globs.matches(pattern, name, fold_case=svc.fold_case):
            chosen = by
    return chosen == "region"


def region_place(svc: Service, located: Located, name: str) -> Located:
    """A region of a file, by its name there."""
    made = resource(f"{located.resource.name}::{name}", "region", fold_case=svc.fold_case)
    return msgspec.structs.replace(located, resource=made)
