"""Finding the leases that a request means: by typed names, by granted names, by acquisition, task
or token. Only reads.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from coordinator.kernel.core import Service, listed
from coordinator.kernel.leasing.links import taken_with
from coordinator.kernel.leasing.located import locate, own_key
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.kernel.leasing.typed_names import (
    folder_below,
    held_by_name,
    hint_from_root,
    lease_typed,
    scope_of,
    to_root_relative,
)
from coordinator.kernel.leasing.waiting_line import place_of
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words import resource_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, Resource, region_of

#: A number in an id is shorter than this: it fits into the database.
NUMBER_DIGITS = 19
#: Leases that a refusal names.
NAMED_MAX = 10


def stale(resource: str) -> Refusal:
    """STALE_TOKEN for one resource."""
    return Refusal(
        Code.STALE_TOKEN,
        f"The lease on {resource} has ended, so its token gives no right any more; nothing was "
        "changed.", resource=resource,
        next=f"Acquire it again (`coord lock {shlex.quote(resource)}`), and read the file afresh "
        "before writing.",
    )


def check_token(svc: Service, row: LeaseRow, given: str | None) -> None:
    """Whether a lease token, if one is given, is that of this lease.

    Raises:
        Refusal: INVALID: it is no lease token; STALE_TOKEN.
    """
    if given is None or given == svc.seal(row.fencing_token):
        return
    if re.fullmatch(r"[0-9a-f]{32}", given) is None:
        raise Refusal(
            Code.INVALID, f"{given[:80]!r} is no lease token: that has 32 digits from 0 to f, and "
            "is not the number that a lease is shown with. Nothing was changed.",
            next="Leave it out; or take `lease_token` of the answer that granted the lease "
            "(`coord lock --json`).")
    raise stale(row.file_path)


def of_token(svc: Service, rows: list[LeaseRow], given: str | None) -> list[LeaseRow]:
    """Of the leases of one name on its copies in several working trees, the one with the given
    lease token; all of them if none has it."""
    if given is None:
        return rows
    own = {(row.scope, row.locked_by) for row in rows if given == svc.seal(row.fencing_token)}
    return [row for row in rows if given == svc.seal(row.fencing_token)
            or (row.scope, row.locked_by) not in own] if own else rows


def chosen(svc: Service, tx: Tx, req: rq.Release | rq.Renew,
           does: tuple[str, str]) -> list[LeaseRow]:
    """The leases that a release or renewal names: the agent's own first, otherwise anybody's.
    `does`: the command, and its effect."""
    agent, resources, cwd = req.agent, req.resources, req.cwd
    task = req.task if isinstance(req, rq.Release) else None
    if req.acquisition_id is not None:
        return _of_acquisition(svc, tx, req.acquisition_id, renews=does[0] == "renew")
    if task is not None and not resources:
        rows = tx.each(LeaseRow, "leases_of_task", task)
        return [row for row in rows if row.locked_by == agent]
    named = _named_so(svc, tx, agent, resources, cwd)
    if named is not None:
        return named
    leases: list[LeaseRow] = []
    for located, by_name in _meant(svc, tx, resources, cwd):
        rows = by_name or _on(tx, agent, located)
        if not rows:
            raise _not_leased(svc, tx, agent, located.resource, resources, cwd, does)
        rows = [row for row in rows if row.locked_by == agent] or rows
        leases += _add_taken(svc, tx, rows) if by_name else rows
    return leases


def _add_taken(svc: Service, tx: Tx, rows: list[LeaseRow]) -> list[LeaseRow]:
    """These leases and those that were taken with them, each once."""
    taken = taken_with(svc, tx, rows)
    if len(rows) == 1 and not taken:
        return rows
    return list({row.fencing_token: row for row in (*rows, *taken)}.values())


def _of_acquisition(svc: Service, tx: Tx, acquisition: str, *, renews: bool) -> list[LeaseRow]:
    """What one request was granted and still has.

    Raises:
        Refusal: STALE_TOKEN, UNKNOWN_LEASE.
    """
    first = acquisition.removeprefix("A-")
    is_number = len(first) < NUMBER_DIGITS and first.isascii() and first.isdigit()
    most = 2 * svc.settings.leases.resources_max  # (a link, and what it leads to)
    rows = tx.each(LeaseRow, "leases_of_acquisition", int(first) if is_number else 0, most,
                   acquisition)
    if rows:
        return rows
    if renews and is_number and int(first) <= tx.last_number("fencing"):
        raise Refusal(Code.STALE_TOKEN, f"What {acquisition} held has ended.")
    raise Refusal(Code.UNKNOWN_LEASE, f"No live lease belongs to {acquisition}.")


def _on(tx: Tx, agent: str, located: Located) -> list[LeaseRow]:
    """The leases on a resource: under its name, under another name of its file, or an agent's on
    parts of it."""
    asked = located.resource
    rows = [row for row in tx.each(LeaseRow, "leases_at_scope", asked.scope)
            if own_key(asked) == own_key(rule.as_resource(row.file_path, row.kind, row.scope))]
    if not rows and located.inode is not None:
        rows = [row for row in tx.each(LeaseRow, "rivals_by_inode", located.inode)
                if row.kind == asked.kind and (
                    row.kind != "region" or region_of(row.file_path) == region_of(asked.name))]
    if not rows and asked.kind == "file":
        rows = _parts(tx, agent, asked)
    return rows


def _meant(svc: Service, tx: Tx, resources: Sequence[str], cwd: str | None
           ) -> Iterator[tuple[Located, list[LeaseRow]]]:
    """What these texts mean, each once, with the leases of that very name where the name leads
    elsewhere. These are leases of a link itself, as the lists show it."""
    keys: set[tuple[str, str]] = set()
    by_name = {text: held_by_name(svc, tx, text, cwd) for text in resources}
    try:
        locate(svc, tx, resources, cwd)
    except Refusal:
        if not any(by_name.values()):
            raise
    for text in resources:
        rows = by_name[text]
        try:
            (located,) = locate(svc, tx, [text], cwd)
        except Refusal:  # the link now leads out of the repository, or in a loop
            if not rows:
                raise
            own = rule.as_resource(rows[0].file_path, rows[0].kind, rows[0].scope)
            located = Located(own, None, None)
        else:
            own = located.resource
            rows = [row for row in rows if (row.file_path, row.scope) != (own.name, own.scope)]
        scope = rows[0].scope if rows else located.resource.scope
        key = scope, located.resource.name if located.resource.kind == "glob" else ""
        if key not in keys:
            keys.add(key)
            yield located, rows


def _parts(tx: Tx, agent: str, file: Resource) -> list[LeaseRow]:
    """Leases on regions of a file that is named as a whole: all of the agent's own, otherwise all
    of one other holder.

    Raises:
        Refusal: NOT_HOLDER: several others have some.
    """
    leases = [row for row in leases_near(tx, file)
              if row.kind == "region" and row.expires_at > tx.now
              and resource_names.file_scope(row.scope) == file.scope]
    holders = sorted({row.locked_by for row in leases})
    if len(holders) > 1 and agent not in holders:
        raise Refusal(
            Code.NOT_HOLDER, f"Several hold parts of {file.name}: "
            f"{listed([f'{row.locked_by} ({row.file_path})' for row in leases])}. Nothing was "
            "changed.", next="Name the part: `coord locks` lists them.", resource=file.name)
    return leases


def _named_so(
    svc: Service, tx: Tx, agent: str, resources: Sequence[str], cwd: str | None
) -> list[LeaseRow] | None:
    """The agent's own leases with exactly these names; None unless each name has one.

    Such a text names a lease as the grant told it and not a file on disk, so nothing is looked up.
    """
    if not 0 < len(resources) <= svc.settings.leases.resources_max:
        return None
    start = folder_below(svc, cwd)
    leases: list[LeaseRow] = []
    for given in resources:
        text = to_root_relative(start, given)
        scope = scope_of(text, svc.tree.fold_case)
        if scope is None:
            return None
        before = len(leases)
        for row in tx.each(LeaseRow, "leases_at_scope", scope):
            if row.locked_by == agent and row.file_path == text:
                leases.append(row)
        if len(leases) == before:
            return None
    return _add_taken(svc, tx, leases)


def _not_leased(svc: Service, tx: Tx, agent: str, asked: Resource, texts: Sequence[str],
                cwd: str | None, does: tuple[str, str]) -> Refusal:
    """UNKNOWN_LEASE, with what covers it, or what may have been meant; STALE_TOKEN."""
    if does[0] == "renew" and tx.has("lapsed_once", asked.name, agent):
        return stale(asked.name)
    around = [row for row in leases_near(tx, asked)
              if row.expires_at > tx.now and row.kind != "key"
              and overlaps(rule.as_resource(row.file_path, row.kind, row.scope), asked)]
    if around:
        own = sorted((row for row in around if row.locked_by == agent),
                     key=lambda row: row.file_path)
        who = "You hold" if own else f"{around[0].locked_by} holds"
        return Refusal(
            Code.UNKNOWN_LEASE, f"There is no lease on {asked.name} by itself. {who} "
            f"{_describe_around(asked, own or around[:1])}",
            next=_advise_own(svc, own, agent, cwd, does) if own else None, resource=asked.name,
        )
    waits = place_of(tx, agent, asked.scope)
    if waits is not None:
        return Refusal(
            Code.UNKNOWN_LEASE, f"Nobody holds a lease on {asked.name}; {agent} waits for it "
            f"({waits}).", next=f"`coord request withdraw {waits} --agent {agent}` leaves the "
            "line.", resource=asked.name)
    return Refusal(Code.UNKNOWN_LEASE, f"Nobody holds a lease on {asked.name}.",
                   next=hint_from_root(svc, tx, texts, asked, cwd), resource=asked.name)


def _describe_around(asked: Resource, rows: Sequence[LeaseRow]) -> str:
    """Describe what is leased in place of what is asked for."""
    below = asked.kind == "dir" and all(row.scope.startswith(asked.scope) for row in rows)
    names = listed([row.file_path for row in rows], NAMED_MAX)
    if len(rows) == 1:
        return f"{names}, which {'lies in' if below else 'overlaps'} it; that stays as it is."
    return f"{names}, which {'lie in' if below else 'overlap'} it; they stay as they are."


def _advise_own(svc: Service, own: Sequence[LeaseRow], agent: str, cwd: str | None,
                does: tuple[str, str]) -> str:
    """The advice that does the same to the agent's own leases around it."""
    command, effect = does
    typed = " ".join(lease_typed(svc, row, cwd) for row in own[:NAMED_MAX])
    what = ("all of that" if len(own) == 1 else "them" if len(own) <= NAMED_MAX
            else f"the first {NAMED_MAX} of them")
    return f"`coord {command} {typed} --agent {agent}` {effect} {what}."
