"""The end of leases and claims that their holder did not end: expiry, silence, death, failure.

Whoever finds a lapsed lease closes it here, in its own transaction: the sweep, a takeover, a
dispatch. What changed since the grant is compared with the baseline and becomes a review; bytes
are kept as they are now; nothing on disk is touched (invariant 6). Holder and waiters are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from coordinator.files.ignore import manifest
from coordinator.rules.leases import as_resource
from coordinator.service import disk, notices, tasks, unlocks
from coordinator.service.core import Service, listed
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, TaskRow, WaiterRow
from coordinator.words.clock import from_iso
from coordinator.words.naming import path_scope
from coordinator.words.refusals import Refusal

#: Lines of an agent's output that a review keeps, and their size in characters.
LOG_TAIL_CHARS = 4_000
WHY = {
    "expired": "its lease expired",
    "silent": "it fell silent",
    "left": "it ended in the middle",
    "failed": "it reported a failure",
}


@dataclass(slots=True)
class Ending:
    """What closing did."""

    lapsed: list[LeaseRow] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)


def close(svc: Service, tx: Tx, rows: Iterable[LeaseRow], reason: str,
          log_tail: str = "") -> Ending:
    """Close these leases (and the rest of a claim they belong to); flag what changed."""
    ending = Ending()
    groups: dict[tuple[str, str | None], list[LeaseRow]] = {}
    for row in rows:
        groups.setdefault((row.locked_by, row.task_id), []).append(row)
    for (holder, task_id), leases in groups.items():
        if any(tx.row("lease_get", row.fencing_token) is None for row in leases):
            leases = [r for r in leases if tx.row("lease_get", r.fencing_token) is not None]
        claim = _claim(tx, holder, task_id)
        if claim is not None:
            mine = {row.fencing_token for row in leases}
            leases += [
                LeaseRow(*raw) for raw in tx.rows("leases_of_task", task_id)
                if raw[2] == holder and raw[0] not in mine
            ]
        _end_group(svc, tx, ending, holder, claim, task_id, leases, reason, log_tail)
    return ending


def close_due(svc: Service, tx: Tx, most: int = 200) -> Ending:
    """Close what is dead by now: leases past their expiry, claims past theirs."""
    if tx.row("any_lapsed", tx.now) is None:
        return Ending()
    ending = close(svc, tx, [LeaseRow(*r) for r in tx.rows("leases_lapsed", tx.now, most)],
                   "expired")
    for name, holder in tx.rows("claims_lapsed", tx.now, most):
        _end_claim(svc, tx, ending, tasks.find(tx, str(name)), str(holder), "expired", "")
    return ending


def close_silent(svc: Service, tx: Tx) -> Ending:
    """Agents not heard of for longer than they promised are stale; what they hold lapses."""
    ending = Ending()
    for name, seen_at, silence_ms in tx.rows("agents_silent"):
        if tx.now_ms - from_iso(seen_at) < silence_ms:
            continue
        tx.record(ev.AgentState(agent=name, state="stale", reason=f"silent since {seen_at}"))
        ending.stale.append(name)
        _merge(ending, _close_holder(svc, tx, name, "silent", ""))
    return ending


def end_agent(svc: Service, tx: Tx, name: str, *, clean: bool, reason: str,
              log_tail: str = "") -> Ending:
    """An agent leaves: cleanly (its leases are released) or not (they lapse)."""
    ending = Ending()
    for (child,) in tx.rows("agent_children", name):
        _merge(ending, end_agent(svc, tx, child, clean=clean, reason=reason, log_tail=log_tail))
    leave_line(tx, name, None, "its agent left")
    if clean and not tx.rows("tasks_of_holder", name):
        for raw in tx.rows("leases_of_holder", name):
            row = LeaseRow(*raw)
            tx.free(row.file_path, row.kind, row.scope)
            tx.record(ev.LeaseReleased(fencing_token=row.fencing_token, resource=row.file_path,
                                       scope=row.scope, agent=name, lease_kind=row.kind,
                                       task=row.task_id))
            ending.released.append(row.file_path)
    else:
        _merge(ending, _close_holder(svc, tx, name, "left", log_tail))
    tx.record(ev.AgentState(agent=name, state="gone", reason=reason))
    return ending


def leave_line(tx: Tx, agent: str, task: str | None, reason: str) -> None:
    """Take an agent's waiters (those for one task, or all) out of the line: a grant would come for
    work that is over."""
    if not tx.present().waiters:
        return
    for raw in tx.rows("waiters_of_agent", agent):
        waiter = WaiterRow(*raw)
        if task is not None and waiter.task_id != task:
            continue
        tx.freed += [(n, k, s) for n, k, s in
                     tx.rows("waiter_resources_of", waiter.acquisition_id)]
        tx.record(ev.WaiterLeft(acquisition_id=waiter.acquisition_id, agent=agent, reason=reason))
        unlocks.left_line(tx, waiter.acquisition_id, reason)


def fail_claim(svc: Service, tx: Tx, task: TaskRow, holder: str, *, why: str,
               log_tail: str, blocked: bool,
               also: Sequence[ev.FlaggedFile] | None = None) -> Ending:
    """The holder gives its task back: like an expiry, but in its own words. With `also` (work that
    did not land) there is a review in any case, of these files and what changed below its leases.
    """
    ending = Ending()
    leases = [LeaseRow(*r) for r in tx.rows("leases_of_task", task.task_id) if r[2] == holder]
    _end_group(svc, tx, ending, holder, task, task.task_id, leases, "failed", log_tail,
               why=why, blocked=blocked, also=also)
    return ending


def flag(
    svc: Service, tx: Tx, *, reason: str, agent: str | None, task: str | None,
    files: Sequence[ev.FlaggedFile], leased_at: str | None, log_tail: str = "", why: str = "",
) -> str:
    """Open a review over `files`; its id."""
    n = tx.number("review")
    review = f"R-{n}"
    names = listed([f.path for f in files])
    who = agent or "nobody with a lease"
    summary = why or f"{who} left {names} changed; {WHY.get(reason, reason)}."
    started = None
    if task is not None:
        first = tx.row("task_first_event", task)
        started = first[0] if first else None
    tx.record(
        ev.ReviewOpened(
            review=review, n=n, reason=reason, agent=agent, task=task, summary=summary,
            log_tail=log_tail[-LOG_TAIL_CHARS:], leased_at=leased_at,
            events_from=started or max(1, tx.last_seq - 200), files=list(files),
        )
    )
    return review


def changed_since(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> list[ev.FlaggedFile]:
    """Every file below these leases whose bytes are not those at the grant. Keeps the bytes."""
    found: dict[str, ev.FlaggedFile] = {}
    for row in rows:
        if row.mode == "shared" or row.kind == "key":
            continue
        if row.kind in ("file", "region"):
            path = row.file_path.rpartition("::")[0] if row.kind == "region" else row.file_path
            _compare(svc, tx, found, row, path, row.content_hash)
            continue
        before = {str(p): str(h) for p, h in tx.rows("baselines_of", row.fencing_token)}
        asked = as_resource(row.file_path, row.kind, row.scope)
        most = svc.settings.review.files_max * 2
        try:
            now = manifest(row.worktree or svc.tree.root, asked, svc.ignore, most)
        except Refusal as refusal:
            # So many new files appeared that they are not listed: a sweep must go on all the same.
            tx.record(ev.Noted(what="new files were not compared", facts={"why": refusal.message}))
            now = []
        for path in sorted(set(before) | set(now)):
            _compare(svc, tx, found, row, path, before.get(path))
    return list(found.values())


def _compare(svc: Service, tx: Tx, found: dict[str, ev.FlaggedFile], lease: LeaseRow, path: str,
             baseline: str | None) -> None:
    if path in found:
        return
    content = disk.look(svc, lease.worktree, path, keep=True)
    if content.hash == baseline:
        return
    disk.keep(tx, content)
    kept = content.kept and (
        baseline is None or tx.row("blob_has", baseline) is not None
    )
    change = "created" if baseline is None else "deleted" if content.hash is None else "modified"
    found[path] = ev.FlaggedFile(
        path=path, scope=path_scope(path, svc.tree.fold_case), change=change, kept=kept,
        baseline_hash=baseline, flagged_hash=content.hash, worktree=lease.worktree,
        inode=lease.inode if lease.kind == "file" else None,
    )


def _claim(tx: Tx, holder: str, task_id: str | None) -> TaskRow | None:
    if task_id is None:
        return None
    raw = tx.row("task_get", task_id)
    task = TaskRow(*raw) if raw else None
    return task if task is not None and task.claimed_by == holder else None


def _close_holder(svc: Service, tx: Tx, name: str, reason: str, log_tail: str) -> Ending:
    rows = [LeaseRow(*raw) for raw in tx.rows("leases_of_holder", name)]
    ending = close(svc, tx, rows, reason, log_tail)
    for raw in tx.rows("tasks_of_holder", name):
        _end_claim(svc, tx, ending, TaskRow(*raw), name, reason, log_tail)
    return ending


def _end_claim(svc: Service, tx: Tx, ending: Ending, task: TaskRow, holder: str, reason: str,
               log_tail: str) -> None:
    if task.claimed_by == holder:
        leases = [LeaseRow(*r) for r in tx.rows("leases_of_task", task.task_id)
                  if r[2] == holder]
        _end_group(svc, tx, ending, holder, task, task.task_id, leases, reason, log_tail)


def _end_group(
    svc: Service, tx: Tx, ending: Ending, holder: str, claim: TaskRow | None, task_id: str | None,
    leases: list[LeaseRow], reason: str, log_tail: str, *, why: str = "", blocked: bool = False,
    also: Sequence[ev.FlaggedFile] | None = None,
) -> None:
    """Close one holder's leases of one task: compare, flag, free, move the task, tell."""
    if not leases and claim is None:
        return
    files = changed_since(svc, tx, leases)
    known = {file.path for file in files}
    files += [file for file in also or () if file.path not in known]
    review = None
    if files or also is not None:
        title = f" while on {claim.task_id} '{claim.title}'" if claim else ""
        names = listed([f.path for f in files]) or "no file that can be shown"
        said = f": {why}" if why else ""
        review = flag(
            svc, tx, reason=reason, agent=holder, task=task_id, files=files, log_tail=log_tail,
            leased_at=min((row.locked_at for row in leases), default=None),
            why=f"{holder} changed {names}{title}, then {WHY[reason]}{said}.",
        )
        ending.reviews.append(review)
    for row in leases:
        tx.record(
            ev.LeaseLapsed(
                fencing_token=row.fencing_token, resource=row.file_path, scope=row.scope,
                agent=holder, lease_kind=row.kind, task=row.task_id, reason=reason, review=review,
                expired_at=min(row.expires_at, tx.now),
            )
        )
        tx.free(row.file_path, row.kind, row.scope)
        ending.lapsed.append(row)
    if claim is not None:
        leave_line(tx, holder, claim.task_id, "its task is over")
        tasks.attempt_over(svc, tx, claim, agent=holder, why=why or WHY[reason], review=review,
                           blocked=blocked)
        ending.tasks.append(claim.task_id)
    _tell(tx, holder, leases, claim, reason, review)


def _tell(tx: Tx, holder: str, leases: list[LeaseRow], claim: TaskRow | None, reason: str,
          review: str | None) -> None:
    if reason == "failed":
        return
    names = listed([row.file_path for row in leases]) or "nothing"
    kept = f" Your changes are kept for a human in {review}." if review else ""
    task = f" Task {claim.task_id} is no longer yours." if claim else ""
    notices.post(
        tx, holder, "lapsed",
        f"Your lease on {names} has ended ({WHY[reason]}). Do not write there without a new "
        f"lease.{task}{kept}",
        resources=[row.file_path for row in leases], review=review,
    )


def _merge(into: Ending, other: Ending) -> None:
    into.lapsed += other.lapsed
    into.released += other.released
    into.reviews += other.reviews
    into.tasks += other.tasks
    into.stale += other.stale

