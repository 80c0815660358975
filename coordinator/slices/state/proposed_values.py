"""A proposal of values: all of it are keys, so it is one transaction. Owns no rule of its own."""

from __future__ import annotations

import msgspec

from coordinator.kernel import json_values, lost_writes
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing import redirect
from coordinator.kernel.leasing.blockers import find_blockers
from coordinator.rules import state as state_rule
from coordinator.slices.state import values
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, Resource


def write(svc: Service, request: rq.Propose, tx: Tx,
          actor: Actor) -> rq.ProposalApplied | Refusal:
    """All of it are keys: compared, and written, in this transaction."""
    keys = [values.key_of(change.resource) for change in request.changes]
    if len({key.scope for key in keys}) != len(keys):
        raise Refusal(Code.INVALID, "Two of these changes are of one key. Nothing was written.",
                      next="Put them into one change.")
    asking = agents.may_act(tx, actor, request.agent)
    located = [Located(key, None, None) for key in keys]
    blockers = find_blockers(svc, tx, request.agent,
                             [(located_resource, "exclusive") for located_resource in located])
    if blockers.leases:
        other = redirect.offer(svc, tx, request.agent)
        agents.noted(tx, request.agent, asking)
        return redirect.locked(svc, tx, redirect.Unserved(request.agent, located), blockers, other)
    texts: list[bytes | None] = []
    for key, proposed_change in zip(keys, request.changes, strict=True):
        row = values.newest(tx, key.scope)
        version = _number(proposed_change)
        if not values.stands(row, version):
            refusal = values.changed_since(tx, key, row, version)
            agents.noted(tx, request.agent, asking)
            return lost_writes.note(svc, tx, request.agent, located, refusal)
        texts.append(_value(svc, tx, proposed_change, key))
    agents.noted(tx, request.agent, asking)
    written = []
    for key, text in zip(keys, texts, strict=True):
        row = values.newest(tx, key.scope)
        lease = values.covering(tx, key, request.agent)
        made = values.record(svc, tx, key, row, text, values.Writer(
            request.agent, lease.fencing_token if lease is not None else None))
        written.append(rq.Proposed(resource=key.name,
                                   version=None if text is None else str(made.version)))
    lost_writes.stood(svc, tx, request.agent, keys)
    return rq.ProposalApplied(proposal=f"C-{tx.number('commit')}", changes=written)


def _number(proposed_change: rq.ProposedChange) -> int:
    text = proposed_change.version or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refusal(
            Code.INVALID,
            f"{proposed_change.resource}: the version of a key is its number, not {text[:40]!r}. "
            "Nothing was written.",
            next=f"`coord state get {proposed_change.resource} --json` tells it.",
            resource=proposed_change.resource,
        )
    return int(text)


def _value(svc: Service, tx: Tx, proposed_change: rq.ProposedChange, key: Resource) -> bytes | None:
    if proposed_change.delete:
        return None
    text = json_values.check_json(svc, msgspec.Raw((proposed_change.content
                                                    or proposed_change.patch or "").encode()),
                                  "content" if proposed_change.content is not None else "patch")
    if proposed_change.patch is None:
        return text
    before = values.value_of(tx, values.newest(tx, key.scope))
    made = msgspec.json.encode(state_rule.merged(before, msgspec.json.decode(text)))
    return json_values.check_json(svc, msgspec.Raw(made), "content")
