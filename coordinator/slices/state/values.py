"""Versioned JSON values of keys, which only the coordinator writes.

A write names the version that it is based on (compare and set), and the fencing token of the lease
if its writer holds one. No value is in the log, in a message or in an error: the log names content
by a digest that is sealed with the coordinator's secret.

A proposal that only has keys is compared and written in one transaction. Owns no rule of its own.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from coordinator.kernel import json_values, lost_writes
from coordinator.kernel.core import Actor, Service, split_page
from coordinator.kernel.holders import agents
from coordinator.kernel.json_values import NULL, check_json, check_size, keep_json
from coordinator.kernel.leasing import redirect
from coordinator.kernel.leasing.blockers import Blockers, find_blockers
from coordinator.rules import state as state_rules
from coordinator.slices.state.events import KeyWritten
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, StateRow
from coordinator.words import requests as rq
from coordinator.words import resource_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, Resource, ancestors

#: A difference longer than this (characters) is left out: the answer has the whole value.
DIFF_CHARS_MAX = 4_000
#: The end of a range of scopes: above all scopes with its prefix.
ABOVE = "\U0010ffff"
#: Keys that are coord's own. Their values are kept elsewhere.
_RESERVED = ("k/git/", "k/task/", "k/edit/")
#: Makes the text of the new value from the newest version; None to delete it.
Make = Callable[[StateRow | None], bytes | None]


def get(svc: Service, view: View, actor: Actor, req: rq.StateGet) -> rq.StateValue:
    """See `requests.StateGet`."""
    key = key_of(req.key)
    row = newest(view, key.scope)
    if req.version is not None and row is not None and req.version != row.version:
        if not 0 < req.version < row.version:
            raise _never(key, f"{key.name} was never at version {req.version}; it is at "
                         f"{row.version}.", row.version)
        row = view.first(StateRow, "state_at", key.scope, req.version)
        if row is None:
            raise _never(key, f"Version {req.version} of {key.name} is not kept any more.", None)
    if row is None or (row.content is None and req.version is None):
        raise _unknown(key, f"Nothing is stored under {key.name}.",
                       row.version if row is not None else 0)
    return make_reply(view, row)


def keys(svc: Service, view: View, actor: Actor, req: rq.StateKeys) -> rq.StateList:
    """See `requests.StateKeys`."""
    limit = min(req.limit, 1000)
    below = key_of(req.prefix).scope if req.prefix is not None else "k/"
    begin = key_of(req.after).scope if req.after is not None else below[:-1]
    rows, more = split_page(view.each(
        StateRow, "state_keys", begin, below + ABOVE, limit + 1), limit)
    return rq.StateList(
        items=[make_reply(view, row, value=False) for row in rows if row.content is not None],
        next=rows[-1].key if more else None,
    )


def history(svc: Service, view: View, actor: Actor, req: rq.StateHistory) -> rq.StateList:
    """See `requests.StateHistory`."""
    key = key_of(req.key)
    limit = min(req.limit, state_rules.VERSIONS_KEPT)
    rows = view.each(StateRow, "state_history", key.scope, limit)
    if not rows:
        raise _unknown(key, f"Nothing was ever stored under {key.name}.", 0)
    return rq.StateList(items=[make_reply(view, row) for row in rows])


def watch(svc: Service, view: View, actor: Actor, req: rq.StateWatch) -> rq.StateWatched:
    """See `requests.StateWatch`. Returns the present state; the caller waits."""
    key = key_of(req.key)
    row = newest(view, key.scope)
    if row is None:
        return rq.StateWatched(changed=False, state=nothing(key))
    return rq.StateWatched(changed=row.version > req.after, state=make_reply(view, row))


def put(svc: Service, tx: Tx, actor: Actor, req: rq.StatePut) -> rq.StateValue | Refusal:
    """See `requests.StatePut`."""
    text = check_json(svc, req.value, "value")
    return _write(svc, tx, actor, req, lambda row: text)


def patch(svc: Service, tx: Tx, actor: Actor, req: rq.StatePatch) -> rq.StateValue | Refusal:
    """See `requests.StatePatch`."""
    change = msgspec.json.decode(check_json(svc, req.patch, "patch"))

    def make(row: StateRow | None) -> bytes:
        before = value_of(tx, row)
        return check_size(svc, msgspec.json.encode(state_rules.merged(before, change)), "value")

    return _write(svc, tx, actor, req, make)


def delete(svc: Service, tx: Tx, actor: Actor, req: rq.StateDelete) -> rq.StateValue | Refusal:
    """See `requests.StateDelete`."""
    key = key_of(req.key)
    row = newest(tx, key.scope)
    if row is None or row.content is None:
        raise _unknown(key, f"Nothing is stored under {key.name}.",
                       row.version if row is not None else 0)
    return _write(svc, tx, actor, req, lambda row: None)


def _write(
    svc: Service, tx: Tx, actor: Actor, req: rq.StatePut | rq.StatePatch | rq.StateDelete,
    make: Make,
) -> rq.StateValue | Refusal:
    key = key_of(req.key)
    agent_row = agents.may_act(tx, actor, req.agent)
    located = Located(key, None, None)
    blockers = find_blockers(svc, tx, req.agent, [(located, "exclusive")])
    if blockers.leases:
        offer = redirect.offer(svc, tx, req.agent)
        agents.noted(tx, req.agent, agent_row)
        return redirect.locked(svc, tx, redirect.Unserved(req.agent, [located]), blockers, offer)
    token = check_token(key, blockers, req.fencing_token)
    row = newest(tx, key.scope)
    if token is None and req.version is None:
        raise Refusal(
            Code.INVALID, f"Say which version of {key.name} you have read: without it a write of "
            "somebody else would be lost. Nothing was written.",
            next=f"`coord state get {key.name}` tells it (0: nothing is stored there yet); or "
            f"lease it: `coord lock {key.name} --agent {req.agent}`.",
            version=row.version if row is not None else 0,
        )
    if req.version is not None and not is_current(row, req.version):
        return changed_since(tx, key, row, req.version)
    text = make(row)
    check_room(svc, tx, row)
    agents.noted(tx, req.agent, agent_row)
    return reply_with_text(record(svc, tx, key, row, text, Writer(req.agent, token)), text)


# ------------------------------------------------------------ parts, for proposals and changes, too


def key_of(text: str) -> Resource:
    """Return the key of this name.

    Raises:
        Refusal: INVALID: it is no key, or a key of coord's own.
    """
    key = _key(text)
    if key.scope.startswith(_RESERVED):
        raise Refusal(
            Code.INVALID, f"{text[:200]!r} is one of coord's own keys; no value is stored there. "
            "Nothing was done.", next="Use another word before the colon.",
        )
    return key


@lru_cache(maxsize=4096)
def _key(text: str) -> Resource:
    kind, _, _ = resource_names.parse(text)
    if kind != "key":
        raise Refusal(
            Code.INVALID, f"{text[:200]!r} is no key: values are stored under keys, like "
            "`key:account:12345`. Nothing was done.", next="Put a word and a colon before it.",
        )
    return resource_names.resource(text, "key")


def newest(view: View, scope: str) -> StateRow | None:
    """Return the newest version of a key; None if it never had a value."""
    return view.first(StateRow, "state_now", scope)


def value_of(view: View, row: StateRow | None) -> Any:
    """Return the value of a version; None if it is deleted or not kept."""
    text = view.blob(row.content) if row is not None else None
    return msgspec.json.decode(text) if text is not None else None


def nothing(key: Resource) -> rq.StateValue:
    """Return the reply for a key that never had a value."""
    return rq.StateValue(key=key.name, version=0, value=NULL, deleted=True, size=0,
                         written_by=None, written_at=None, fencing_token=None)


def make_reply(view: View, row: StateRow, *, value: bool = True) -> rq.StateValue:
    """Return the reply for a version. Without `value`, its value is left out."""
    return reply_with_text(row, view.blob(row.content) if value else None)


def reply_with_text(row: StateRow, text: bytes | None) -> rq.StateValue:
    """Return the reply for a version with this text; None if it has no text, or if the text is left
    out."""
    return rq.StateValue(
        key=row.key, version=row.version, value=msgspec.Raw(text) if text is not None else NULL,
        deleted=row.content is None, size=row.size, written_by=row.written_by,
        written_at=row.written_at, fencing_token=row.fencing_token,
    )


def is_current(row: StateRow | None, version: int) -> bool:
    """Whether a key is still at this version. Version 0 means that it has no value."""
    if row is None:
        return version == 0
    return version == row.version or (version == 0 and row.content is None)


def covering(view: View, key: Resource, agent: str) -> LeaseRow | None:
    """Return the agent's live exclusive lease on the key, or on a key that contains it."""
    for scope in (key.scope, *reversed(ancestors(key.scope))):
        for row in view.each(LeaseRow, "leases_at_scope", scope):
            if row.locked_by == agent and row.mode == "exclusive" and row.expires_at > view.now:
                return row
    return None


def check_token(key: Resource, blockers: Blockers, given: int | None) -> int | None:
    """Return the fencing token of a write; None if its writer holds no lease.

    Raises:
        Refusal: INVALID: the writer holds a lease and did not give its token; STALE_TOKEN.
    """
    own = [row for row in blockers.mine
           if row.mode == "exclusive" and key.scope.startswith(row.scope)]
    if not own and given is None:
        return None
    if given is None:
        raise Refusal(
            Code.INVALID, f"You hold a lease on {own[0].file_path}: say its fencing token, so that "
            "a write of yours that comes after its end is known for one. Nothing was written.",
            next=f"Repeat it with the fencing token {own[0].fencing_token} (typed: `--token "
            f"{own[0].fencing_token}`).",
            fencing_token=own[0].fencing_token,
        )
    if given not in {row.fencing_token for row in own}:
        raise Refusal(
            Code.STALE_TOKEN, f"The lease with the token {given} gives no right to {key.name} (any "
            "more); nothing was written.", resource=key.name,
        )
    return given


def changed_since(tx: Tx, key: Resource, row: StateRow | None, version: int) -> Refusal:
    """Return VERSION_CHANGED for a key, with its present value, and what changed."""
    now = row.version if row is not None else 0
    by = f", written by {row.written_by}" if row is not None else ""
    seen = tx.first(StateRow, "state_at", key.scope, version)
    before = value_of(tx, seen) if seen is not None else None
    value = value_of(tx, row)
    return Refusal(
        Code.VERSION_CHANGED, "Your environment changed while you were thinking. Re-evaluate your "
        f"change against the current state. {key.name} is at version {now}{by}; you have read "
        f"version {version}. Nothing was written.", resource=key.name, version=now, value=value,
        written_by=row.written_by if row is not None else None, diff=difference(before, value),
    )


def difference(before: Any, now: Any) -> str:
    """Compare two values line by line; empty if the difference is long."""
    lines = difflib.unified_diff(_pretty(before), _pretty(now), "read", "now", lineterm="", n=2)
    text = "\n".join(lines)
    return text if len(text) <= DIFF_CHARS_MAX else ""


def _pretty(value: Any) -> list[str]:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode().splitlines()


def check_room(svc: Service, tx: Tx, row: StateRow | None) -> None:
    """Check that a new key may get a value.

    Raises:
        Refusal: LIMIT: too many keys.
    """
    if row is None and (count := (tx.value("state_count") or 0)) >= svc.settings.state.keys_max:
        raise Refusal(
            Code.LIMIT, f"{count} keys have values, which are the most (state.keys_max). Nothing "
            "was written.", next="Put several into one value.",
        )


class Writer(NamedTuple):
    """The writer of a value: the agent, its lease's token, and the change."""

    agent: str
    token: int | None
    change: str | None = None


def record(svc: Service, tx: Tx, key: Resource, row: StateRow | None, text: bytes | None,
           by: Writer) -> StateRow:
    """Write the next version of a key; None deletes it."""
    content = keep_json(svc, tx, text) if text is not None else None
    version = row.version + 1 if row is not None else 1
    tx.record(
        KeyWritten(
            resource=key.name, scope=key.scope, version=version, content=content,
            size=len(text) if text is not None else 0, agent=by.agent,
            fencing_token=by.token, change=by.change,
        )
    )
    tx.effects.keys_written = True
    return StateRow(key.scope, version, key.name, content, len(text) if text is not None else 0,
                    by.agent, tx.now, by.token)


def _never(key: Resource, message: str, version: int | None) -> Refusal:
    return Refusal(Code.UNKNOWN_KEY, message, resource=key.name, version=version,
                   next=f"`coord state history {key.name}` lists the versions.")


def _unknown(key: Resource, message: str, version: int | None) -> Refusal:
    return Refusal(Code.UNKNOWN_KEY, message, resource=key.name, version=version,
                   next=f"`coord state put {key.name} VALUE --version {version or 0} --agent NAME` "
                   "stores one.")


def write(svc: Service, request: rq.Propose, tx: Tx,
          actor: Actor) -> rq.ProposalApplied | Refusal:
    """Compare and write all changes of a proposal that only has keys, in this transaction."""
    keys = [key_of(change.resource) for change in request.changes]
    if len({key.scope for key in keys}) != len(keys):
        raise Refusal(Code.INVALID, "Two of these changes are of one key. Nothing was written.",
                      next="Put them into one change.")
    agent_row = agents.may_act(tx, actor, request.agent)
    located = [Located(key, None, None) for key in keys]
    blockers = find_blockers(svc, tx, request.agent,
                             [(located_resource, "exclusive") for located_resource in located])
    if blockers.leases:
        offer = redirect.offer(svc, tx, request.agent)
        agents.noted(tx, request.agent, agent_row)
        return redirect.locked(svc, tx, redirect.Unserved(request.agent, located), blockers, offer)
    texts: list[bytes | None] = []
    for key, proposed_change in zip(keys, request.changes, strict=True):
        row = newest(tx, key.scope)
        version = _number(proposed_change)
        if not is_current(row, version):
            refusal = changed_since(tx, key, row, version)
            agents.noted(tx, request.agent, agent_row)
            return lost_writes.note(svc, tx, request.agent, located, refusal)
        texts.append(_value(svc, tx, proposed_change, key))
    agents.noted(tx, request.agent, agent_row)
    written = []
    for key, text in zip(keys, texts, strict=True):
        row = newest(tx, key.scope)
        lease = covering(tx, key, request.agent)
        made = record(svc, tx, key, row, text, Writer(
            request.agent, lease.fencing_token if lease is not None else None))
        written.append(rq.Proposed(resource=key.name,
                                   version=None if text is None else str(made.version)))
    lost_writes.note_written(svc, tx, request.agent, keys)
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
    before = value_of(tx, newest(tx, key.scope))
    made = msgspec.json.encode(state_rules.merged(before, msgspec.json.decode(text)))
    return json_values.check_json(svc, msgspec.Raw(made), "content")
