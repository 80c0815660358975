"""Commits of regions: new texts of leased regions, written by the coordinator, all or none.

One `Course`, carried out as a verdict is (`review.verdicts`): the rights are checked and the files'
write windows taken; a worker reads the files anew, puts the texts in and checks the result; the
whole is noted in the journal; each file is exchanged if it still is what was read; the end is
noted. A crash leaves the journal, and the next start goes on, so that each file is wholly old or
wholly new, and the log says which.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from coordinator.files.content import digest, is_executable
from coordinator.looking.facts import Lapsed, Unready
from coordinator.looking.spliced import NewText, spliced
from coordinator.meaning.languages import is_known
from coordinator.rules.function_bodies import is_body_alone
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.service import repository_files
from coordinator.service.backlog import blackboard
from coordinator.service.core import Actor, Service
from coordinator.service.holders import agents
from coordinator.service.impact import refused
from coordinator.service.leasing import grant
from coordinator.service.leasing.leases import stale
from coordinator.service.leasing.overlapping import near
from coordinator.service.repository_files import Bytes
from coordinator.service.review import verdicts
from coordinator.service.review.verdict_words import stuck, taken_back
from coordinator.service.review.verdict_words import warnings as left_over
from coordinator.service.review.verdicts import (
    Aside,
    AsWho,
    Course,
    Journal,
    Pause,
    Performed,
    Write,
)
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal
from coordinator.words.resource_names import (
    HEADER,
    WINDOW,
    Resource,
    kind_of,
    path_of,
    path_scope,
    region_of,
    resource,
    write_window,
)

#: Regions of one commit.
REGIONS_MAX = 200
#: While another writes one of its files a commit waits: so often, and so long each time (seconds).
TRIES, AGAIN_S = 2000, 0.005
#: How long a commit may hold the windows of its files (ms); a crash is met by the next start.
HOLD_MS = 600_000


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


@dataclass(slots=True)
class Plan:
    """What a commit would write: a step for each file; what is there, and what it is to be."""

    steps: list[ev.VerdictStep]
    keeps: list[Bytes]
    hashes: dict[str, str | None]
    """Region -> the name of its content when all is written."""
    warnings: list[str] = field(default_factory=list)


def course(svc: Service, request: rq.CommitRegion) -> Course:
    """See `requests.CommitRegion`."""
    for _ in range(TRIES):
        opened = yield AsWho(partial(_open, svc, request))
        if not (isinstance(opened, Refusal) and opened.code in HELD):
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
        yield Write(partial(_close, name))
        return begun
    answer = yield from verdicts.finish(svc, begun, after_crash=False)
    if isinstance(answer, Refusal):
        return answer
    return rq.RegionsCommitted(commit=name, warnings=[*made.warnings, *answer], regions=[
        rq.CommittedRegion(resource=one, content_hash=now) for one, now in made.hashes.items()])


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
    windows = {made.scope: made for made in (
        write_window(one.path, svc.fold_case) for one in rights)}
    rows = [LeaseRow(*raw) for scope in windows for raw in tx.rows("leases_at_scope", scope)]
    for row in rows:
        if row.expires_at > tx.now:
            raise Refusal(
                Code.LOCKED, f"{row.locked_by} writes {row.file_path.removeprefix(WINDOW)} just "
                "now, and goes on doing so. Nothing was written.", next="Commit it again.",
                retry_after_s=1,
            )
    if rows:
        raise Unready(lapsed=[Lapsed(row.locked_by, row.task_id) for row in rows])
    name = f"C-{tx.number('commit')}"
    for one in windows.values():
        token = tx.number("fencing")
        tx.record(ev.LeaseGranted(
            fencing_token=token, resource=one.name, agent=_holder(name),
            expires_at=tx.later(HOLD_MS), lease_kind="key", mode="exclusive", scope=one.scope,
            acquisition_id=f"A-{token}", ttl_ms=HOLD_MS, max_until=tx.later(HOLD_MS),
            description=f"commits regions for {request.agent}",
        ))
    return name, rights


def _rights(svc: Service, tx: Tx, request: rq.CommitRegion) -> list[Right]:
    if not 0 < len(request.regions) <= REGIONS_MAX:
        raise Refusal(Code.LIMIT, f"A commit has 1 to {REGIONS_MAX} regions, not "
                      f"{len(request.regions)}. Nothing was written.")
    out = []
    for given in request.regions:
        if kind_of(given.resource) != "region":
            raise Refusal(
                Code.INVALID, f"{file_names.shown(given.resource)} is no region "
                "(`path::Qualified.name`). Nothing was written.", next="`coord regions FILE`",
            )
        asked = resource(given.resource, "region", fold_case=svc.fold_case)
        lease = _lease(tx, request.agent, asked)
        if given.lease_token is not None and given.lease_token != svc.seal(lease.fencing_token):
            raise stale(given.resource)
        last = tx.row("version_get", asked.name)
        was = given.content_hash
        if given.after is not None:
            was = None
        elif was is None and last is not None and str(last[1]) >= lease.locked_at:
            was = last[0]
        elif was is None and lease.file_path == asked.name:
            was = lease.content_hash
        out.append(Right(asked.name, path_of(asked.name, "region"), lease.worktree,
                         lease.fencing_token, was, given.text, given.after))
    return out


def _lease(tx: Tx, agent: str, asked: Resource) -> LeaseRow:
    """The live lease of this agent that gives the right to a region.

    Raises:
        Refusal: UNKNOWN_LEASE, NOT_HOLDER, STALE_TOKEN.
    """
    theirs = agreed = None
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
        elif row.expires_at > tx.now:
            return row
        else:
            lapsed = True
    if lapsed:
        raise stale(asked.name)
    if theirs is not None:
        raise Refusal(
            Code.NOT_HOLDER, f"{asked.name} is leased by {theirs.locked_by} ({theirs.file_path}), "
            f"not by {agent}. Nothing was written.", holder=theirs.locked_by, resource=asked.name,
        )
    if agreed is not None:
        raise Refusal(
            Code.NOT_HOLDER, f"{agent} shares {asked.name} with others ({agreed}): it is written "
            "with an edit tool, by turns. Nothing was written.", resource=asked.name,
            next="Edit the file with your own tool; the others are told.",
        )
    raise Refusal(
        Code.UNKNOWN_LEASE, f"{agent} has no lease on {asked.name}. Nothing was written.",
        next=f"`coord lock {asked.name} --agent {agent}`, read it, then commit.",
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
        if now.hash is None or now.data is None or not now.hash.startswith("sha256:"):
            raise Refusal(
                Code.REGION_CHANGED, f"{shown} is no plain file that can be read now. Nothing was "
                "written.", next="Look at it; then lease it afresh.", path=path,
            )
        made, parts = spliced(svc.regions, path, shown, now.data, [
            NewText(region_of(one.name), one.text, one.was, one.after) for one in texts])
        for one in texts:
            _, part = parts[region_of(one.name)]
            out.hashes[one.name] = digest(part) if part else None
        svc.regions.prepare(path, made)
        if not all(is_body_alone(path, was, will) for was, will in parts.values()):
            out.warnings += _judge(svc, view, agent, path, now.data, made)
        new = digest(made, executable=is_executable(now.hash))
        if new == now.hash:
            continue
        out.keeps += [now, repository_files.stow(svc, new, made)]
        out.steps.append(ev.VerdictStep(
            path=path, scope=path_scope(path, svc.fold_case), worktree=worktree, old=now.hash,
            old_mode=now.mode, new=new, new_mode=now.mode, in_place=now.links > 1,
            aside=f".coord-commit-{n}-{secrets.token_hex(4)}.tmp",
        ))
    return out


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
    for content in plan.keeps:
        repository_files.keep(tx, content)
    if not plan.steps:
        return rq.RegionsCommitted(commit=name, warnings=plan.warnings, regions=[
            rq.CommittedRegion(resource=one, content_hash=now)
            for one, now in plan.hashes.items()])
    tx.record(ev.VerdictBegun(review=name, agent=request.agent, task=None, what="commit",
                              by=request.agent, note=_note(plan), steps=plan.steps))
    begun = verdicts.journal_of(tx, name)
    assert begun is not None  # it was recorded a moment ago
    return begun


def conclude(svc: Service, tx: Tx, journal: Journal, done: Performed) -> list[str] | Refusal:
    """Note how it went: warnings, or why it was taken back. What is returned as a refusal is on
    disk, too."""
    agent = journal.verdict.by
    for one in done.saved:
        tx.keep_stored(one.name, one.size)
    if done.state == "stuck":
        return stuck(journal, done)
    refusal = taken_back(svc, journal, done) if done.state == "back" else None
    warnings = left_over(svc, done)
    _close(journal.review, tx)
    tx.record(ev.VerdictEnded(
        review=journal.review, agent=agent, task=None, what="commit",
        outcome="taken back" if refusal is not None else "done",
        why=refusal.message if refusal is not None else " ".join(warnings),
        saved=[(one.path, one.name) for one in done.saved],
    ))
    if refusal is not None:
        return refusal
    steps = [step for step in journal.steps if step.worktree is None]
    written = [(step.path, step.new_hash) for step in steps]
    seen: list[tuple[str, str | None, str | None]] = [(path, now, agent) for path, now in written]
    noted = _noted(journal.verdict.note)
    seen += [(name, now, agent) for name, now in noted]
    blackboard.committed(svc, tx, agent, noted)
    if seen:
        tx.record(ev.VersionsSeen(versions=seen))
    row = tx.agent(agent)
    if row is not None and row.state != "gone":
        _note_known(tx, agent, [(step.path, step.old_hash, step.new_hash) for step in steps])
    return warnings


def _note_known(tx: Tx, agent: str,
                steps: Sequence[tuple[str, str | None, str | None]]) -> None:
    """What the agent knows of these files now: (path, content before, after). Of one that had
    changed since it read it, what it had read, and no more: it has not seen the rest by this."""
    reads = {path: tx.row("read_get", agent, path) for path, _, _ in steps}
    whole = [(path, new) for path, old, new in steps
             if (known := reads[path]) is None or known[0] in (None, old)]
    partly: list[tuple[str, str | None]] = [(path, str(known[0])) for path, old, _ in steps
              if (known := reads[path]) is not None and known[0] not in (None, old)]
    if whole:
        tx.record(ev.ContentRead(agent=agent, reads=whole))
    if partly:
        tx.record(ev.ContentRead(agent=agent, reads=partly, partial=True))


def close_left(svc: Service, tx: Tx) -> None:
    """Close the windows of commits that a crash has ended before they began to write."""
    for raw in tx.rows("leases_of_commits"):
        row = LeaseRow(*raw)
        name = row.locked_by.partition("/")[2]
        if name not in svc.at_work and verdicts.journal_of(tx, name) is None:
            grant.end(tx, row)


def _close(name: str, tx: Tx) -> None:
    """The write windows of a commit are free again."""
    for raw in tx.rows("leases_of_holder", _holder(name)):
        grant.end(tx, LeaseRow(*raw))


def _holder(name: str) -> str:
    return verdicts.holder(name)


def _note(plan: Plan) -> str:
    """What of each region is there when all is written, for the end, which may follow a crash."""
    return "\n".join(f"{now or '-'} {name}" for name, now in plan.hashes.items())


def _noted(note: str) -> list[tuple[str, str | None]]:
    pairs = (line.partition(" ") for line in note.splitlines())
    return [(name, None if now == "-" else now) for now, _, name in pairs]
