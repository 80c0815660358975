"""Files that the coordinator writes for an agent: windows, journal, end. Shared by commits of
regions and by proposals.

A write of several files is noted whole before the first one is touched (`carrying_out` does
the rest, also after a crash). Decides nothing about who may write what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from coordinator.kernel import blackboard, repository_files
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import free_windows, grant, kept_edits
from coordinator.kernel.leasing.kept_edits import KeptEdit
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.kernel.repository_files import Bytes
from coordinator.kernel.writing.journal import Journal, holder, journal_of
from coordinator.kernel.writing.performing import Performed
from coordinator.kernel.writing.words import stuck, taken_back
from coordinator.kernel.writing.words import warnings as left_over
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, ReadRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import copy_name, path_of, resource

#: While another writes one of its files a commit waits: so often, and so long each time (seconds).
TRIES, AGAIN_S = 2000, 0.005
#: Begins a line of the journal about a file that is only known.
KNOWN = "known:"
#: Begins a line with a warning.
WARNED = "warned:"
#: How long a commit may hold the windows of its files (ms); a crash is met by the next start.
HOLD_MS = 600_000


@dataclass(slots=True)
class Plan:
    """The plan of a commit: a step for each file, with its present and its new content."""

    steps: list[ev.VerdictStep]
    keeps: list[Bytes]
    hashes: dict[str, str | None]
    """Resource -> the name of its content when all is written."""
    warnings: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    """Other resources of the agent that its commit changes, or whose comparison it changes. The
    agent knows them as they are then."""


def open_windows(svc: Service, tx: Tx, agent: str, paths: Iterable[str], why: str) -> str:
    """Take the write windows of these files; the commit's id.

    Raises:
        Refusal, Unready: see `free_windows.check`.
    """
    windows = free_windows.check(svc, tx, paths)
    name = f"C-{tx.number('commit')}"
    for window in windows:
        token = tx.number("fencing")
        tx.record(ev.LeaseGranted(
            fencing_token=token, resource=window.name, agent=holder(name),
            expires_at=tx.later(HOLD_MS), lease_kind="key", mode="exclusive", scope=window.scope,
            acquisition_id=f"A-{token}", ttl_ms=HOLD_MS, max_until=tx.later(HOLD_MS),
            description=f"{why} for {agent}", purpose=purposes.of_commit(name),
        ))
    return name


def begin(tx: Tx, name: str, agent: str, plan: Plan) -> Journal | None:
    """Note the whole in the journal; None if nothing is to be written."""
    for content in plan.keeps:
        repository_files.keep(tx, content)
    if not plan.steps:
        return None
    tx.record(ev.VerdictBegun(review=name, agent=agent, task=None, what="commit", by=agent,
                              note=_note(plan), steps=plan.steps))
    begun = journal_of(tx, name)
    assert begun is not None  # it was recorded a moment ago
    return begun


def conclude(svc: Service, tx: Tx, journal: Journal, done: Performed) -> list[str] | Refusal:
    """Record the result: warnings, or why it was taken back. A returned refusal is on disk, too."""
    agent = journal.verdict.by
    for saved in done.saved:
        tx.keep_stored(saved.name, saved.size)
    if done.state == "stuck":
        return stuck(journal, done)
    refusal = taken_back(svc, journal, done) if done.state == "back" else None
    warnings = left_over(svc, done)
    close(tx, journal.review, agent)
    tx.record(ev.VerdictEnded(
        review=journal.review, agent=agent, task=None, what="commit",
        outcome="taken back" if refusal is not None else "done",
        why=refusal.message if refusal is not None else " ".join(warnings),
        saved=[(saved.path, saved.name) for saved in done.saved],
    ))
    if refusal is not None:
        return refusal
    _note_versions(svc, tx, journal, agent)
    row = tx.agent(agent)
    if row is not None and row.state != "gone":
        # For an agent without hooks nobody would know its own later edits.
        for step in journal.steps if row.hooked_at is not None else ():
            kept_edits.note_edit(tx, agent, step.path, step.worktree,
                                 KeptEdit(step.old_hash, step.new_hash))
        _note_known(tx, agent, [(copy_name(step.path, step.worktree), step.old_hash, step.new_hash)
                                for step in journal.steps if step.worktree is None])
    return warnings


def _note_versions(svc: Service, tx: Tx, journal: Journal, agent: str) -> None:
    """The versions that the agent has made by this."""
    trees = {step.path: step.worktree for step in journal.steps}
    seen: list[tuple[str, str | None, str | None]] = [
        (step.path, step.new_hash, agent) for step in journal.steps if step.worktree is None]
    noted, versions_before = _noted(journal.verdict.note)
    for name, now in (*noted, *versions_before):
        tree = trees.get(path_of(name, "region") or name)
        seen += [(text, now, agent) for text in _seen_as(svc, tx, agent, name, tree)]
    blackboard.committed(svc, tx, agent, noted)
    if seen:
        tx.record(ev.VersionsSeen(versions=seen))


def answer(op: str, journal: Journal, warnings: list[str]
           ) -> rq.RegionsCommitted | rq.ProposalApplied:
    """The answer to this operation, of which the journal alone is left."""
    written, _ = _noted(journal.verdict.note)
    sentences = [line.removeprefix(WARNED) for line in journal.verdict.note.splitlines()
            if line.startswith(WARNED)]
    if op == rq.Propose.op:
        return rq.ProposalApplied(proposal=journal.review, warnings=[*sentences, *warnings],
                                  changes=[
            rq.Proposed(resource=name, version=now) for name, now in written])
    return rq.RegionsCommitted(commit=journal.review, warnings=[*sentences, *warnings], regions=[
        rq.CommittedRegion(resource=name, content_hash=now) for name, now in written])


def _seen_as(svc: Service, tx: Tx, agent: str, name: str, worktree: str | None) -> list[str]:
    """The names of a committed version. Its own name is among them if the agent has no lease on the
    main tree's copy."""
    file = resource(path_of(name, "region") or name, "file", fold_case=svc.fold_case)
    at_both = worktree is not None and any(
        row.locked_by == agent and row.worktree is None
        for row in leases_near(tx, file) if row.kind != "key")
    names = [copy_name(name, worktree)]
    return names if at_both or worktree is None else [*names, name]


def _note_known(tx: Tx, agent: str, steps: Sequence[tuple[str, str | None, str | None]]) -> None:
    """Record what the agent now knows of these files: (path, content before, after). If a file had
    changed since the agent read it, the agent knows only what it had read."""
    reads = {path: tx.first(ReadRow, "read_get", agent, path) for path, _, _ in steps}
    whole = [(path, new) for path, old, new in steps
             if (reading := reads[path]) is None or reading.hash in (None, old)]
    partly: list[tuple[str, str | None]] = [(path, reading.hash) for path, old, _ in steps
              if (reading := reads[path]) is not None and reading.hash not in (None, old)]
    if whole:
        tx.record(ev.ContentRead(agent=agent, reads=whole))
    if partly:
        tx.record(ev.ContentRead(agent=agent, reads=partly, partial=True))


def close_left(svc: Service, tx: Tx) -> None:
    """Close the windows of commits that a crash has ended before they began to write."""
    for row in tx.each(LeaseRow, "leases_of_commits"):
        name = row.locked_by.partition("/")[2]
        if name not in svc.at_work and journal_of(tx, name) is None:
            grant.end(tx, row)


def close(tx: Tx, name: str, agent: str) -> None:
    """The write windows of a commit are free again, and so is what was leased for it alone."""
    for agent_name in (holder(name), agent):
        for row in tx.each(LeaseRow, "leases_of_holder", agent_name):
            if row.purpose == purposes.of_commit(name):
                grant.end(tx, row)


def _note(plan: Plan) -> str:
    """The content of each region after the write, for the end, which may follow a crash."""
    return "\n".join([*(f"{now or '-'} {name}" for name, now in plan.hashes.items()),
                      *(f"{KNOWN}{now} {name}" for name, now in plan.known.items()),
                      *(WARNED + " ".join(warning.split()) for warning in plan.warnings)])


def _noted(note: str) -> tuple[list[tuple[str, str | None]], list[tuple[str, str | None]]]:
    """What is written, and what is known, by the journal's note."""
    written: list[tuple[str, str | None]] = []
    versions: list[tuple[str, str | None]] = []
    for line in note.splitlines():
        if line.startswith(WARNED):
            continue
        now, _, name = line.removeprefix(KNOWN).partition(" ")
        (versions if line.startswith(KNOWN)
         else written).append((name, None if now == "-" else now))
    return written, versions
