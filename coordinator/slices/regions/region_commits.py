"""Commits of regions: new texts of leased regions, written by the coordinator, all or none.

A use case, carried out as a verdict is (`review.verdicts`): the rights are checked and the files'
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
from coordinator.kernel import blackboard, repository_files
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.holders import agents
from coordinator.kernel.leasing import free_windows, other_names
from coordinator.kernel.leasing.named_leases import check_token, stale
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.kernel.leasing.typed_names import held_by_link, hint_from_root, to_typed
from coordinator.kernel.use_cases import Look, OnDisk, Pause, Steps, Write, decide
from coordinator.kernel.writing import carrying_out
from coordinator.kernel.writing.commits import AGAIN_S, TRIES, Plan, begin, close, open_windows
from coordinator.kernel.writing.journal import Journal
from coordinator.looking.facts import AnyNeed, Place
from coordinator.looking.spliced import NewText, content_name, is_still, spliced, text_of
from coordinator.regions.languages import has_meaning
from coordinator.rules.function_bodies import is_body_alone
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, VersionRow
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import (
    HEADER,
    Resource,
    copy_name,
    file_scope,
    from_root,
    kind_of,
    path_of,
    path_scope,
    region_of,
)

#: Permission bits of a file that is made.
NEW_MODE = 0o644
#: Regions of one commit.
REGIONS_MAX = 200


@dataclass(frozen=True, slots=True)
class Meant:
    """What a text of a commit names, and in which working tree; whether that was said (a program
    may name regions from the root, and leave the tree to the lease)."""

    resource: Resource
    worktree: str | None
    is_said: bool = False


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


def commit(svc: Service, request: rq.CommitRegion) -> Steps:
    """See `requests.CommitRegion`."""
    _check_form(request)
    needs: list[AnyNeed] = [Place(region_text.resource, request.cwd) for region_text
                            in request.regions]
    for _ in range(TRIES):
        looked = yield Look(needs)
        if isinstance(looked, Refusal):
            return looked
        opened = yield Write(partial(_open, svc, request), looked)
        if not free_windows.is_busy(opened):
            break
        yield Pause(AGAIN_S)
    if isinstance(opened, Refusal):
        return opened
    name, asked, rights = opened
    svc.at_work.add(name)
    made = yield OnDisk(lambda worker: _plan(svc, worker.view, request.agent, rights))
    if isinstance(made, Refusal):
        begun = yield Write(partial(blackboard.refused, svc, request.agent, [
            blackboard.Tried(right.name, right.was, right.text or None) for right in rights], made))
    else:
        begun = yield Write(lambda tx, actor: _begin(svc, tx, request, name, asked, rights, made))
    svc.at_work.discard(name)
    if not isinstance(begun, Journal):
        yield decide(lambda tx: close(tx, name, request.agent))
        return begun
    return (yield from carrying_out.finish(svc, begun, after_crash=False,
                                           last=partial(_committed, name, made)))


def _committed(name: str, plan: Plan, tx: Tx, warnings: Any) -> rq.RegionsCommitted | Refusal:
    """All is written, or taken back: the answer."""
    if isinstance(warnings, Refusal):
        return warnings
    return rq.RegionsCommitted(commit=name, warnings=[*plan.warnings, *warnings], regions=[
        rq.CommittedRegion(resource=name, content_hash=now) for name, now in plan.hashes.items()])


def _check_form(request: rq.CommitRegion) -> None:
    """What can be said of a commit before anything is looked at.

    Raises:
        Refusal: INVALID, LIMIT.
    """
    if not 0 < len(request.regions) <= REGIONS_MAX:
        raise Refusal(Code.LIMIT if request.regions else Code.INVALID, "A commit has 1 to "
                      f"{REGIONS_MAX} regions, not {len(request.regions)}. Nothing was written.")
    for given in request.regions:
        if kind_of(given.resource) != "region":
            raise Refusal(
                Code.INVALID, f"{file_names.shown(given.resource)} is no region "
                "(`path::Qualified.name`). Nothing was written.", next="`coord regions FILE`",
            )


def _open(svc: Service, request: rq.CommitRegion, tx: Tx,
          actor: Actor) -> tuple[str, list[Meant], list[Right]]:
    """Check the rights, and take the write windows of the files; the commit's id, what is meant,
    and the rights.

    Raises:
        Refusal: INVALID, OUTSIDE_REPO, UNKNOWN_LEASE, NOT_HOLDER, STALE_TOKEN; LOCKED: one of the
            files is being written just now.
        Unready: whoever wrote one of them has not said that it has ended, in time.
    """
    asked = [_meant(svc, tx, request, region_text.resource) for region_text in request.regions]
    rights = _rights(svc, tx, request, asked)
    agents.acting(tx, actor, request.agent)
    name = open_windows(svc, tx, request.agent, [right.path for right in rights], "commits regions")
    return name, asked, rights


def _meant(svc: Service, tx: Tx, request: rq.CommitRegion, text: str) -> Meant:
    """The region that a text names: the one that the agent has leased by it, whatever lies at that
    name by now; else what a lease would be on."""
    located = tx.looked.place(text, request.cwd)
    for row in sorted(held_by_link(svc, tx, text, located.resource, request.cwd),
                      key=lambda row: row.worktree != located.worktree):
        # (Where the file was renamed, and a link to it stands in its place, that is what is meant.)
        if row.locked_by == request.agent and not any(
                lease.scope == located.resource.scope
                for lease in other_names.with_other_names(svc, tx, [row])):
            return Meant(as_resource(row.file_path, row.kind, row.scope), row.worktree)
    is_said = request.cwd is not None or located.worktree is not None
    return Meant(located.resource, located.worktree, is_said)


def _rights(svc: Service, tx: Tx, request: rq.CommitRegion, meant: Sequence[Meant]) -> list[Right]:
    rights = []
    for given, named in zip(request.regions, meant, strict=True):
        lease = _lease(svc, tx, request, named, given)
        asked = _as_on_disk(named.resource, lease)
        _check_tree(svc, named, lease, request)
        check_token(svc, lease, given.lease_token)
        was = None
        if given.after is None:
            was = (content_name(given.content_hash, "content_hash")
                   or _find_content(svc, tx, asked.name, lease))
        new = was is None and lease.scope == asked.scope and lease.content_hash is None
        rights.append(Right(asked.name, path_of(asked.name, "region"), lease.worktree,
                            lease.fencing_token, was, given.text, given.after, new))
    return rights


def _check_tree(svc: Service, named: Meant, lease: LeaseRow, request: rq.CommitRegion) -> None:
    """A lease is on a file in one working tree, and another's file of that name is another text.

    Raises:
        Refusal: INVALID.
    """
    if named.worktree == lease.worktree or not named.is_said:
        return
    below = request.cwd not in (None, svc.root, named.worktree)
    name = shlex.quote(from_root(lease.file_path) if below else lease.file_path)
    raise Refusal(
        Code.INVALID, f"{named.resource.name} is leased in {_tree(svc, lease.worktree)}, not in "
        f"{_tree(svc, named.worktree)}. Nothing was written.", resource=named.resource.name,
        next=f"`cd {shlex.quote(lease.worktree or svc.root)}`, and commit it there; or `coord "
        f"unlock {name} --agent {request.agent}`, and lease it here.",
    )


def _tree(svc: Service, worktree: str | None) -> str:
    return f"the working tree {file_names.shown(worktree or svc.root)}"


def _as_on_disk(asked: Resource, lease: LeaseRow) -> Resource:
    """The region with its file's name as the disk spells it, which a lease on that file or a part
    of it knows (another Unicode form is the same name)."""
    if lease.kind not in ("file", "region") or file_scope(lease.scope) != file_scope(asked.scope):
        return asked
    name = f"{path_of(lease.file_path, lease.kind)}::{region_of(asked.name)}"
    return as_resource(name, "region", asked.scope)


def _find_content(svc: Service, view: View, name: str, lease: LeaseRow) -> str | None:
    """The content that a region has for its holder: what it has committed last, or was granted; of
    a renamed file under whichever of its names."""
    rows = [lease]
    if lease.file_path == name:
        rows = [row for row in other_names.with_other_names(svc, view, [lease])
                if row.kind == lease.kind and region_of(row.file_path) == region_of(name)]
    first = next((row for row in rows if row.goes_with is None), lease)
    versions = view.each_of(VersionRow, "version_get",
                            [copy_name(text, lease.worktree) for text in (
        [row.file_path for row in rows] if lease.file_path == name else [name])])
    own = [version for version in versions if version.seen_at >= first.locked_at]
    if own:
        return max(own, key=lambda version: version.seen_at).hash
    return first.content_hash if lease.file_path == name else None


def _lease(svc: Service, tx: Tx, request: rq.CommitRegion, named: Meant,
           given: rq.RegionText) -> LeaseRow:
    """The live lease of this agent that gives the right to a region: of those on the copy in the
    working tree that is meant, if there are any, its own, rather than one on what contains it.

    Raises:
        Refusal: UNKNOWN_LEASE, NOT_HOLDER, STALE_TOKEN.
    """
    asked = named.resource
    rows = sorted(leases_near(tx, asked), key=lambda row: row.worktree != named.worktree)
    around = [row for row in rows if _covers(row, asked)]
    own = [row for row in around if row.mode == "exclusive" and row.locked_by == request.agent]
    lease = _choose_lease([row for row in own if row.expires_at > tx.now], named)
    if lease is not None:
        return lease
    if own:
        raise stale(asked.name)
    raise _no_right(svc, tx, request, asked, given, rows, around[::-1])


def _choose_lease(own: Sequence[LeaseRow], named: Meant) -> LeaseRow | None:
    """That on the region itself, else one on what contains it; those in the tree that is meant come
    first."""
    above = None
    for row in own:
        if above is not None and above.worktree == named.worktree != row.worktree:
            break  # what it holds in another tree is another text
        if row.scope == named.resource.scope:
            return row
        above = row if above is None or above.worktree == row.worktree else above
    return above


def _covers(row: LeaseRow, asked: Resource) -> bool:
    """Whether a lease is on this region, on what contains it, or on the head of its file."""
    return row.scope == asked.scope or (
        asked.scope.startswith(row.scope)
        and overlaps(as_resource(row.file_path, row.kind, row.scope), asked)) or (
        row.kind == "region" and region_of(row.file_path) == HEADER)


def _is_to_read(row: LeaseRow, agent: str, asked: Resource, now: str) -> bool:
    return (row.locked_by == agent and row.expires_at > now and row.mode == "shared"
            and overlaps(as_resource(row.file_path, row.kind, row.scope), asked))


def _no_right(svc: Service, tx: Tx, request: rq.CommitRegion, asked: Resource,
              given: rq.RegionText, rows: Sequence[LeaseRow],
              around: Sequence[LeaseRow]) -> Refusal:
    """Why it may not be written: others hold it, or it is held to be shared, or to be read.
    `around`: of `rows` those that would give the right to it."""
    agent, typed_now = request.agent, to_typed(svc, asked.name, asked.kind, request.cwd)
    theirs = next((row for row in around if row.mode == "exclusive"
                   and row.expires_at > tx.now and row.locked_by != agent), None)
    if theirs is not None:
        return Refusal(
            Code.NOT_HOLDER, f"{asked.name} is leased by {theirs.locked_by} ({theirs.file_path}), "
            f"not by {agent}. Nothing was written.", holder=theirs.locked_by, resource=asked.name,
            next=f"`coord request file {typed_now} --reason WHY --agent {agent}` asks "
            f"{theirs.locked_by} for it.",
        )
    agreed = next((row.agreed_as for row in around if row.agreed_as and row.locked_by == agent),
                  None)
    if agreed is not None:
        return Refusal(
            Code.NOT_HOLDER, f"{agent} shares {asked.name} with others ({agreed}): it is written "
            "with an edit tool, by turns. Nothing was written.", resource=asked.name,
            next="Edit the file with your own tool; the others are told.",
        )
    if any(_is_to_read(row, agent, asked, tx.now) for row in rows):
        return Refusal(
            Code.UNKNOWN_LEASE, f"{agent} has {asked.name} leased shared, to read it, and not to "
            "write it. Nothing was written.", resource=asked.name,
            next=f"`coord lock {typed_now} --agent {agent}`, read it, then commit.",
        )
    return Refusal(
        Code.UNKNOWN_LEASE, f"{agent} has no lease on {asked.name}. Nothing was written.",
        next=hint_from_root(svc, tx, [given.resource], asked, request.cwd) or (
            f"`coord lock --new {typed_now} --agent {agent}`, then commit."
            if given.after is not None else
            f"`coord lock {typed_now} --agent {agent}`, read it, then commit."),
        resource=asked.name,
    )


def _plan(svc: Service, view: View, agent: str, rights: Sequence[Right]) -> Plan:
    """Read the files anew, and put the texts in. In a worker.

    Raises:
        Refusal: what does not fit; nothing was changed.
    """
    plan = Plan([], [], {})
    files: dict[tuple[str | None, str], list[Right]] = {}
    for right in rights:
        files.setdefault((right.worktree, right.path), []).append(right)
    for n, ((worktree, path), texts) in enumerate(files.items()):
        now = repository_files.look(svc, worktree, path, keep=True, strict=True)
        shown = file_names.shown(path)
        data = _text(svc, now, worktree, path, texts)
        if now.hash is None:
            plan.warnings.append(f"{shown} was not there: it is made.")
        made, parts = spliced(svc.regions, path, shown, data, [
            NewText(region_of(text.name), text.text, text.was, text.after, text.new) for text
            in texts])
        for right in texts:
            _, part = parts[region_of(right.name)]
            plan.hashes[right.name] = digest(part) if part else None
        plan.known |= _known_besides(svc, view, agent, texts, data, made)
        svc.regions.prepare(path, made)
        if not all(is_body_alone(path, was, will) for was, will in parts.values()):
            plan.warnings += _judge(svc, view, agent, path, data, made)
        new = digest(made, executable=now.hash is not None and is_executable(now.hash))
        if new == now.hash:
            continue
        plan.keeps += [now] if now.hash is not None else []
        plan.keeps.append(repository_files.stow(svc, new, made))
        plan.steps.append(ev.VerdictStep(
            path=path, scope=path_scope(path, svc.fold_case), worktree=worktree, old=now.hash,
            old_mode=now.mode, new=new, new_mode=now.mode if now.hash is not None else NEW_MODE,
            in_place=now.links > 1,
            aside=f".coord-commit-{n}-{secrets.token_hex(4)}.tmp",
        ))
    return plan


def _known_besides(svc: Service, view: View, agent: str, texts: Sequence[Right], data: bytes,
                   made: bytes) -> dict[str, str]:
    """What else the agent holds of this file, where it is as the agent knows it: what that is when
    these texts are written. What contains one of them changes with it, and a header is compared as
    the whole file."""
    path, names, result = texts[0].path, {right.name for right in texts}, {}
    for row in view.each(LeaseRow, "leases_of_holder", agent):
        if (row.kind != "region" or row.mode != "exclusive" or row.worktree != texts[0].worktree
                or row.expires_at <= view.now or row.file_path in names
                or path_of(row.file_path, "region") != path):
            continue
        name, was = region_of(row.file_path), _find_content(svc, view, row.file_path, row)
        old, new = (text_of(svc.regions, path, part, name) for part in (data, made))
        if (was is not None and old is not None and new is not None
                and is_still(data, old, name, was)):
            result[row.file_path] = digest(new)
    return result


def _text(svc: Service, now: repository_files.Bytes, worktree: str | None, path: str,
          rights: Sequence[Right]) -> bytes:
    """What the file holds; of one that is not there, and is made by what is new in it, nothing.

    Raises:
        Refusal: REGION_CHANGED, REGION_UNKNOWN, INVALID.
    """
    shown = file_names.shown(path)
    if now.hash is None:
        there = next((right for right in rights if right.after is None and not right.new), None)
        if there is not None:
            raise Refusal(
                Code.REGION_CHANGED if there.was else Code.REGION_UNKNOWN,
                f"{shown} is not there{' any more' if there.was else ''}. Nothing was written.",
                next="`coord locks` has the new name of a file that was renamed; `coord events` "
                "tells the last changes.",
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
    if svc.impact is None or svc.settings.leases.meaning == "off" or not has_meaning(path):
        return []
    held = {row.file_path for row in view.each(LeaseRow, "leases_of_holder", agent)
            if row.mode == "exclusive" and row.expires_at > view.now}
    text = svc.impact.judge(path, before, after, held)
    if isinstance(text, str):
        return [f"{file_names.shown(path)}: {text}."]
    refusal = svc.impact.refuse(text, held)
    if refusal is not None:
        raise refusal
    return []


def _begin(svc: Service, tx: Tx, request: rq.CommitRegion, name: str, asked: Sequence[Meant],
           rights: Sequence[Right], plan: Plan) -> Journal | rq.RegionsCommitted:
    """Note the whole in the journal, if the rights still are what they were.

    Raises:
        Refusal: STALE_TOKEN and the like.
    """
    if [right.token for right in _rights(svc, tx, request, asked)] != [right.token for right
                                                                       in rights]:
        raise stale(rights[0].name)
    begun = begin(tx, name, request.agent, plan)
    return begun or rq.RegionsCommitted(commit=name, warnings=plan.warnings, regions=[
        rq.CommittedRegion(resource=name, content_hash=now)
        for name, now in plan.hashes.items()])
