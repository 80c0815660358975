"""Open unlock requests: finding them, following them to the present holder, closing them.

A request that waits for its answer is queued under its own id, `U-n`, so the queue needs no other
mark. `unlock_requests` decides what may be asked, and `unlock_answers` what may be answered.
"""

from __future__ import annotations

import msgspec

from coordinator.kernel.holders import notices
from coordinator.kernel.leasing.located import place
from coordinator.kernel.leasing.overlapping import leases_near, near
from coordinator.kernel.unknown_ids import find_by_id
from coordinator.rules.leases import as_resource, conflicts
from coordinator.rules.negotiation import TRANSITIONS, same_for_both, within
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, NearWaiter, UnlockRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import file_scope
from coordinator.words.texts import quoted

PREFIX = "U-"
#: The name that closes an unanswered request.
COORD = "coord"
#: Characters of a reason or an answer: another agent's model has to read it.
WORDS_CHARS_MAX = 500


def find(view: View, text: str, resource: str | None = None) -> UnlockRow:
    """The request called `U-3`, `u-3`, `3` or `U3`; with `resource`, if it is for that.

    Raises:
        Refusal: UNKNOWN_REQUEST.
    """
    def get(name: str) -> UnlockRow | None:
        row = view.first(UnlockRow, "unlock_get", name)
        return row if row is not None and resource in (None, row.resource) else None

    return find_by_id(get, text, "U", "unlock request", Code.UNKNOWN_REQUEST,
                      f" and is for {resource[:200]}" if resource else "")


def pending(view: View, place: str) -> UnlockRow | None:
    """The open request that is queued under this acquisition id, if it is one."""
    if not place.startswith(PREFIX):
        return None
    row = view.first(UnlockRow, "unlock_get", place)
    return row if row is not None and row.status == "pending" else None


def held_of(view: View, row: UnlockRow) -> list[LeaseRow]:
    """The live leases of the holder that is asked, as far as they are in the way: by name, and the
    same file under another name."""
    asked = as_resource(row.resource, row.kind, row.scope)
    matches = {
        lease.fencing_token: lease
        for lease in leases_near(view, asked)
        if conflicts(asked, row.mode, row.requested_by, lease)
    }
    inode, file = _inode(view, row), file_scope(row.scope)
    for lease in view.each(LeaseRow, "rivals_by_inode", inode) if inode is not None else []:
        within_its_file = lease.scope.removeprefix(file_scope(lease.scope))
        renamed = msgspec.structs.replace(lease, scope=file + within_its_file)
        if conflicts(asked, row.mode, row.requested_by, renamed):
            matches.setdefault(lease.fencing_token, lease)
    return [
        lease for lease in matches.values()
        if lease.locked_by == row.holder and lease.expires_at > view.now
    ]


def _inode(view: View, row: UnlockRow) -> str | None:
    """Which file is asked for, where that was looked at for this request."""
    need = place(row.resource, row.kind)
    if row.kind not in ("file", "region") or not view.looked.has(need):
        return None
    try:
        return view.looked.located(need).inode
    except Refusal:
        return None


def conclude(
    tx: Tx, row: UnlockRow, verb: str, by: str, answer: str = "", *, override: bool = False
) -> None:
    """Record how a pending request ends: approve, reject or withdraw."""
    tx.record(
        ev.UnlockAnswered(
            request=row.request_id, agent=row.requested_by, resource=row.resource,
            status=TRANSITIONS[row.status, verb], by=by, override=override, answer=answer,
        )
    )


def left_line(tx: Tx, place: str, reason: str) -> None:
    """The waiter under this id has left the queue, so an open request of it is over."""
    row = pending(tx, place)
    if row is not None:
        conclude(tx, row, "withdraw", COORD, reason)


def lost_its_holder(tx: Tx, place: str) -> None:
    """Something near was freed and this waiter was not served. If its request asks an agent that
    holds nothing of it now, the request is closed, and the asker, which waits on, is told."""
    row = pending(tx, place)
    if row is None or held_of(tx, row):
        return
    conclude(tx, row, "withdraw", COORD, f"{row.holder} does not hold it any more")
    notices.post(
        tx, row.requested_by, "answered",
        f"{row.holder}, whom you asked for {row.resource} ({row.request_id}), does not hold it any "
        "more, but it is not free for you yet. You stay in line and will be told when it is yours.",
        request=row.request_id, resource=row.resource,
    )


def follow(tx: Tx, lease: LeaseRow, agent: str) -> None:
    """A lease went from its holder to `agent` (a sub-agent, or back): it is asked from now on."""
    if not tx.present().waiters:
        return
    leased = as_resource(lease.file_path, lease.kind, lease.scope)
    for waiter in near(tx, NearWaiter, "waiters_near", leased):
        row = pending(tx, waiter.acquisition_id)
        if row is None or row.holder != lease.locked_by:
            continue
        tx.record(
            ev.UnlockPassed(
                request=row.request_id, agent=row.requested_by, holder=agent, resource=row.resource
            )
        )
        tell_holder(tx, msgspec.structs.replace(row, holder=agent), [lease])


def tell_holder(tx: Tx, row: UnlockRow, leases: list[LeaseRow]) -> None:
    """Put the question to its holder, with the two commands that answer it."""
    others = list(dict.fromkeys(
        lease.file_path for lease in leases if lease.file_path != row.resource))
    more = f" (approving releases {', '.join(others[:5])} as a whole)" if others else ""
    me = f"--agent {row.holder}"
    notices.post(
        tx, row.holder, "asked",
        f"{row.requested_by} asks you to release {row.resource}: {quoted(row.reason, 500)}. "
        f"If you are done with it{more}: `coord request approve {row.request_id} {me}`; otherwise: "
        f"`coord request reject {row.request_id} {me} --answer WHY`.{_between(row, leases, me)}",
        request=row.request_id, resource=row.resource, asked_by=row.requested_by,
    )


def _between(row: UnlockRow, leases: list[LeaseRow], me: str) -> str:
    """What the holder may answer besides yes and no, in a sentence; empty if nothing."""
    asked = as_resource(row.resource, row.kind, row.scope)
    held = [as_resource(lease.file_path, lease.kind, lease.scope) for lease in leases]
    if asked.kind == "key":
        return ""
    if any(within(resource, asked) and resource.scope != asked.scope for resource in held):
        return (" Or keep a part beside it: "
                f"`coord request narrow {row.request_id} {me} --keep PART`.")
    if all(same_for_both(resource, asked) for resource in held) and not any(lease.worktree
                                                                            for lease in leases):
        return f" Or both write it, by turns: `coord request coexist {row.request_id} {me}`."
    return ""


def reply(view: View, row: UnlockRow) -> rq.Unlock:
    """A request as a reply."""
    releases = []
    if row.status == "pending":
        releases = list(dict.fromkeys(lease.file_path for lease in held_of(view, row)))
    return rq.Unlock(
        request=row.request_id, status=row.status, requested_by=row.requested_by,
        holder=row.holder, resource=row.resource, mode=row.mode, reason=row.reason,
        requested_at=row.requested_at, responded_at=row.responded_at,
        responded_by=row.responded_by, override=bool(row.override), answer=row.answer,
        releases=releases,
    )


def check_open(row: UnlockRow) -> None:
    """Raises:
    Refusal: REQUEST_CLOSED.
    """
    if row.status == "pending":
        return
    when = short(from_iso(row.responded_at)) if row.responded_at else ""
    why = f" ({quoted(row.answer, 500)})" if row.answer else ""
    what = "answered with coexist" if row.status == "coexisting" else row.status
    raise Refusal(
        Code.REQUEST_CLOSED,
        f"{row.request_id} was {what} by {row.responded_by} at {when}{why}; it stays so.",
        request=row.request_id, status=row.status,
    )


def answers_for(tx: Tx, agent: str, name: str) -> bool:
    """Whether `agent` speaks for `name`: it is that one, or a session whose sub-agent that is."""
    if agent == name:
        return True
    row = tx.agent(name)
    return row is not None and row.parent == agent


def words(text: str, what: str) -> str:
    """A reason or an answer as one line.

    Raises:
        Refusal: LIMIT.
    """
    line = " ".join(text.split())
    if len(line) > WORDS_CHARS_MAX:
        raise Refusal(
            Code.LIMIT, f"The {what} has {len(line)} characters; {WORDS_CHARS_MAX} are the most. "
            "Nothing was done.", next="Say it shorter.",
        )
    return line
