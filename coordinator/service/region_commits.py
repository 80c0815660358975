"""Commits of regions: new texts of leased regions, written by the coordinator, all or none.

One `Course`, carried out as a verdict is (`review.verdicts`): the rights are checked and the files'
write windows taken; a worker reads the files anew, puts the texts in and checks the result; the
whole is noted in the journal; each file is exchanged if it still is what was read; the end is
noted. A crash leaves the journal, and the next start goes on, so that each file is wholly old or
wholly new, and the log says which.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from coordinator.files.content import digest, is_executable
from coordinator.looking.spliced import NewText, spliced
from coordinator.meaning.languages import is_known
from coordinator.rules.function_bodies import is_body_alone
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.service import repository_files
from coordinator.service.backlog import blackboard
from coordinator.service.commit_journal import (
    AGAIN_S,
    TRIES,
    Plan,
    begin,
    close,
    is_window,
    open_windows,
)
from coordinator.service.core import Actor, Service
from coordinator.service.holders import agents
from coordinator.service.impact import refused
from coordinator.service.leasing import other_names
from coordinator.service.leasing.leases import stale
from coordinator.service.leasing.overlapping import near
from coordinator.service.review import verdicts
from coordinator.service.review.verdicts import (
    Aside,
    AsWho,
    Course,
    Journal,
    Pause,
    Write,
)
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import (
    HEADER,
    Resource,
    file_scope,
    kind_of,
    path_of,
    path_scope,
    region_of,
    resource,
)

#: Permission bits of a file that is made.
NEW_MODE = 0o644
#: Regions of one commit.
REGIONS_MAX = 200


@dataclass(frozen=True, slots=True)
class Right:
    """One region of a commit: what it is to be, and the lease that gives the right to it."""

    name: str
    path: str
    worktree: str | None
    token: int
    was: str | None
    text: str
    after: str | None = None
    new: bool = False  # it was leased as one that is not there


def course(svc: Service, request: rq.CommitRegion) -> Course:
    """See `requests.CommitRegion`."""
    for _ in range(TRIES):
        opened = yield AsWho(partial(_open, svc, request))
        if not is_window(opened):
            break
        yield Pause(AGAIN_S)
    if isinstance(opened, Refusal):
        return opened
    name, rights = opened
    svc.at_work.add(name)
    made = yield Aside(lambda beside: _plan(svc, beside.view, request.agent, rights))
    if isinstance(made, Refusal):
        begun = yield AsWho(partial(blackboard.refused, svc, request.agent, [
            blackboard.Tried(one.name, one.was, one.text or None) for one in rights], made))
    else:
        begun = yield AsWho(partial(_begin, svc, request, name, rights, made))
    svc.at_work.discard(name)
    if not isinstance(begun, Journal):
        yield Write(lambda tx: close(tx, name, request.agent))
        return begun
    return (yield from verdicts.finish(svc, begun, after_crash=False,
                                       last=partial(_committed, name, made)))


def _committed(name: str, plan: Plan, tx: Tx, warnings: Any) -> rq.RegionsCommitted | Refusal:
    """All is written, or taken back: the answer."""
    if isinstance(warnings, Refusal):
        return warnings
    return rq.RegionsCommitted(commit=name, warnings=[*plan.warnings, *warnings], regions=[
        rq.CommittedRegion(resource=one, content_hash=now) for one, now in plan.hashes.items()])


def _open(svc: Service, request: rq.CommitRegion, tx: Tx,
          actor: Actor) -> tuple[str, list[Right]]:
    """Check the rights, and take the write windows of the files; the commit's id, and the rights.

    Raises:
        Refusal: INVALID, LIMIT, UNKNOWN_LEASE, NOT_HOLDER, STALE_TOKEN; LOCKED: one of the files is
            being written just now.
        Unready: whoever wrote one of them has not said that it has ended, in time.
    """
    rights = _rights(svc, tx, request)
    agents.acting(tx, actor, request.agent)
    name = open_windows(svc, tx, request.agent, [one.path for one in rights], "commits regions")
    return name, rights


def _rights(svc: Service, tx: Tx, request: rq.CommitRegion) -> list[Right]:
    if not 0 < len(request.regions) <= REGIONS_MAX:
        raise Refusal(Code.LIMIT if request.regions else Code.INVALID, "A commit has 1 to "
                      f"{REGIONS_MAX} regions, not {len(request.regions)}. Nothing was written.")
    out = []
    for given in request.regions:
        if kind_of(given.resource) != "region":
            raise Refusal(
                Code.INVALID, f"{file_names.shown(given.resource)} is no region "
                "(`path::Qualified.name`). Nothing was written.", next="`coord regions FILE`",
            )
        asked = resource(given.resource, "region", fold_case=svc.fold_case)
        lease = _lease(tx, request.agent, asked, new=given.after is not None)
        asked = _as_on_disk(asked, lease)
        if given.lease_token is not None and given.lease_token != svc.seal(lease.fencing_token):
            raise stale(given.resource)
        last = tx.row("version_get", asked.name)
        was = given.content_hash
        if given.after is not None:
            was = None
        elif was is None and last is not None and str(last[1]) >= lease.locked_at:
            was = last[0]
        elif was is None and lease.file_path == asked.name:
            was = _began(svc, tx, lease)
        new = was is None and lease.scope == asked.scope and lease.content_hash is None
        out.append(Right(asked.name, path_of(asked.name, "region"), lease.worktree,
                         lease.fencing_token, was, given.text, given.after, new))
    return out


def _as_on_disk(asked: Resource, lease: LeaseRow) -> Resource:
    """The region with its file's name as the disk spells it, which a lease on that file or a part
    of it knows (another Unicode form is the same name)."""
    if lease.kind not in ("file", "region") or file_scope(lease.scope) != file_scope(asked.scope):
        return asked
    name = f"{path_of(lease.file_path, lease.kind)}::{region_of(asked.name)}"
    return as_resource(name, "region", asked.scope)


def _began(svc: Service, tx: Tx, lease: LeaseRow) -> str | None:
    """What the region was when it was leased; of a renamed file, under its first name."""
    if lease.goes_with is not None:
        for raw in tx.rows("leases_at_scope", other_names.made_for(svc, lease).scope):
            if (first := LeaseRow(*raw)).locked_by == lease.locked_by:
                return first.content_hash
    return lease.content_hash


def _lease(tx: Tx, agent: str, asked: Resource, *, new: bool) -> LeaseRow:
    """The live lease of this agent that gives the right to a region: its own, rather than one on
    what contains it. `new`: it is to be added.

    Raises:
        Refusal: UNKNOWN_LEASE, NOT_HOLDER, STALE_TOKEN.
    """
    theirs = agreed = above = None
    lapsed = False
    for raw in near(tx, "rivals", asked):
        row = LeaseRow(*raw)
        held = as_resource(row.file_path, row.kind, row.scope)
        covers = row.scope == asked.scope or (
            asked.scope.startswith(row.scope) and overlaps(held, asked)) or (
            row.kind == "region" and region_of(row.file_path) == HEADER)
        if covers and row.agreed_as is not None and row.locked_by == agent:
            agreed = row.agreed_as
        if not covers or row.mode != "exclusive":
            continue
        if row.locked_by != agent:
            theirs = row if row.expires_at > tx.now else theirs
        elif row.expires_at > tx.now and row.scope == asked.scope:
            return row
        elif row.expires_at > tx.now:
            above = row
        else:
            lapsed = True
    if above is not None:
        return above
    if lapsed:
        raise stale(asked.name)
    if theirs is not None:
        raise Refusal(
            Code.NOT_HOLDER, f"{asked.name} is leased by {theirs.locked_by} ({theirs.file_path}), "
            f"not by {agent}. Nothing was written.", holder=theirs.locked_by, resource=asked.name,
            next=f"`coord request file {asked.name} --reason WHY --agent {agent}` asks "
            f"{theirs.locked_by} for it.",
        )
    if agreed is not None:
        raise Refusal(
            Code.NOT_HOLDER, f"{agent} shares {asked.name} with others ({agreed}): it is written "
            "with an edit tool, by turns. Nothing was written.", resource=asked.name,
            next="Edit the file with your own tool; the others are told.",
        )
    raise Refusal(
        Code.UNKNOWN_LEASE, f"{agent} has no lease on {asked.name}. Nothing was written.",
        next=f"`coord lock --new {asked.name} --agent {agent}`, then commit." if new else
        f"`coord lock {asked.name} --agent {agent}`, read it, then commit.",
        resource=asked.name,
    )


def _plan(svc: Service, view: View, agent: str, rights: Sequence[Right]) -> Plan:
    """Read the files anew, and put the texts in. In a worker.

    Raises:
        Refusal: what does not fit; nothing was changed.
    """
    out = Plan([], [], {})
    files: dict[tuple[str | None, str], list[Right]] = {}
    for one in rights:
        files.setdefault((one.worktree, one.path), []).append(one)
    for n, ((worktree, path), texts) in enumerate(files.items()):
        now = repository_files.look(svc, worktree, path, keep=True, strict=True)
        shown = file_names.shown(path)
        data = _text(svc, now, worktree, path, texts)
        made, parts = spliced(svc.regions, path, shown, data, [
            NewText(region_of(one.name), one.text, one.was, one.after, one.new) for one in texts])
        for one in texts:
            _, part = parts[region_of(one.name)]
            out.hashes[one.name] = digest(part) if part else None
        svc.regions.prepare(path, made)
        if not all(is_body_alone(path, was, will) for was, will in parts.values()):
            out.warnings += _judge(svc, view, agent, path, data, made)
        new = digest(made, executable=now.hash is not None and is_executable(now.hash))
        if new == now.hash:
            continue
        out.keeps += [now] if now.hash is not None else []
        out.keeps.append(repository_files.stow(svc, new, made))
        out.steps.append(ev.VerdictStep(
            path=path, scope=path_scope(path, svc.fold_case), worktree=worktree, old=now.hash,
            old_mode=now.mode, new=new, new_mode=now.mode if now.hash is not None else NEW_MODE,
            in_place=now.links > 1,
            aside=f".coord-commit-{n}-{secrets.token_hex(4)}.tmp",
        ))
    return out


def _text(svc: Service, now: repository_files.Bytes, worktree: str | None, path: str,
          rights: Sequence[Right]) -> bytes:
    """What the file holds; of one that is not there, and is made by what is new in it, nothing.

    Raises:
        Refusal: REGION_CHANGED, REGION_UNKNOWN, INVALID.
    """
    shown = file_names.shown(path)
    if now.hash is None:
        there = next((one for one in rights if one.after is None and not one.new), None)
        if there is not None:
            raise Refusal(
                Code.REGION_CHANGED if there.was else Code.REGION_UNKNOWN,
                f"{shown} is not there{' any more' if there.was else ''}. Nothing was written.",
                next=f"`coord explain {shlex.quote(path)}` tells what became of it.",
                resource=there.name,
            )
        repository_files.check_place(svc, worktree, path)
        return b""
    if now.data is None or not now.hash.startswith("sha256:"):
        raise Refusal(
            Code.REGION_CHANGED, f"{shown} is no plain file that can be read now. Nothing was "
            "written.", next="Look at it; then lease it afresh.", path=path,
        )
    return now.data


def _judge(svc: Service, view: View, agent: str, path: str, before: bytes,
           after: bytes) -> list[str]:
    """Refuse what breaks regions that the agent does not hold; why that is not known.

    Raises:
        Refusal: REQUIRE_ADDITIONAL_LOCKS, ESCALATION_REQUIRED.
    """
    if svc.impact is None or svc.settings.leases.meaning == "off" or not is_known(path):
        return []
    held = {row.file_path for row in (LeaseRow(*raw) for raw in view.rows(
        "leases_of_holder", agent)) if row.mode == "exclusive" and row.expires_at > view.now}
    found = svc.impact.judge(path, before, after, held)
    if isinstance(found, str):
        return [f"{file_names.shown(path)}: {found}."]
    refusal = refused(found, held)
    if refusal is not None:
        raise refusal
    return []


def _begin(svc: Service, request: rq.CommitRegion, name: str, rights: Sequence[Right], plan: Plan,
           tx: Tx, actor: Actor) -> Journal | rq.RegionsCommitted:
    """Note the whole in the journal, if the rights still are what they were.

    Raises:
        Refusal: STALE_TOKEN and the like.
    """
    if [one.token for one in _rights(svc, tx, request)] != [one.token for one in rights]:
        raise stale(rights[0].name)
    begun = begin(tx, name, request.agent, plan)
    return begun or rq.RegionsCommitted(commit=name, warnings=plan.warnings, regions=[
        rq.CommittedRegion(resource=one, content_hash=now)
        for one, now in plan.hashes.items()])
