"""The end of leases and claims that their holder did not end: expiry, silence, death, failure.

Expired leases are closed one holder and task at a time, each group in a transaction of its own. The
sweep, a takeover and a dispatch name the groups that block them and continue when these are closed.
What changed since the grant becomes a review. Its bytes are kept as they were looked at, and
nothing on disk is touched (invariant 6). Holder and waiters are told.

A claim ends by its own clock. A lease that was taken incidentally and not used ends alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator.kernel import tasks, unserved
from coordinator.kernel.core import Service, listed
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing import kept_edits, partial_work, pending_unlocks, review_words
from coordinator.looking.facts import Lapsed
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AgentRow, LeaseRow, PlaceRow, Row, TaskRow, WaiterRow
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import WINDOW, is_window
from coordinator.words.texts import quoted

WHY = {
    "expired": "its lease expired",
    "silent": "it fell silent",
    "left": "it ended in the middle",
    "failed": "its attempt failed",
}


@dataclass(slots=True)
class Ending:
    """The result of closing leases."""

    lapsed: list[LeaseRow] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)

    def add(self, other: Ending) -> None:
        """Take in what another closing did."""
        self.lapsed += other.lapsed
        self.released += other.released
        self.reviews += other.reviews
        self.tasks += other.tasks


def subject(which: Lapsed) -> str:
    """The name of one holder's expired leases of one task when they are set aside."""
    return f"{which.holder}/{which.task or '-'}"


def due(view: View, most: int = 200) -> list[Lapsed]:
    """Groups of leases and claims that have expired and were not closed, the oldest first."""
    if not view.has("any_lapsed", view.now):
        return []
    lapses = (Lapsed(row.locked_by, row.task_id)
              for row in view.each(LapsedRow, "lapsed_groups", view.now, most))
    return [lapse for lapse in lapses if not unserved.rests(view, "lapse", subject(lapse))]


class LapsedRow(Row, frozen=True):
    """The holder and the task of expired leases."""

    locked_by: str
    task_id: str | None
    expires_at: str


def close_group(svc: Service, tx: Tx, which: Lapsed, *, unseen: str = "") -> Ending:
    """Close the expired leases of one holder and task, and flag what changed.

    `unseen`: why the files could not be looked at. Then they are not compared, and the review says
    so.

    Raises:
        Unready: the files have to be looked at.
    """
    ending = Ending()
    rows = [row for row in _list_leases(tx, which.holder, which.task) if row.expires_at <= tx.now]
    claim = _claim(tx, which.holder, which.task)
    if claim is not None and claim.claim_until is not None and claim.claim_until > tx.now:
        claim = None  # the claim continues; only these leases are over
    elif claim is not None:
        rows = _list_leases(tx, which.holder, which.task)
    group = _Group(which.holder, which.task, claim, rows)
    _end_group(svc, tx, ending, group, _End("expired", "", unseen=unseen))
    unserved.take_up(tx, "lapse", subject(which))
    return ending


def silent(view: View) -> list[str]:
    """Agents that were not heard of for longer than they promised."""
    return [
        row.agent for row in view.each(AgentRow, "agents_silent")
        if view.now_ms - from_iso(row.seen_at) >= (row.silence_ms or 0)
    ]


def fall_silent(svc: Service, tx: Tx, name: str, *, unseen: str = "") -> Ending:
    """Mark an agent as stale that was silent for too long, and expire what it holds.

    Raises:
        Unready: the files have to be looked at.
    """
    row = tx.agent(name)
    if row is None or name not in silent(tx):
        return Ending()
    ending = _close_holder(svc, tx, name, "silent", "", unseen=unseen)
    tx.record(ev.AgentState(agent=name, state="stale", reason=f"silent since {row.seen_at}"))
    return ending


def end_agent(svc: Service, tx: Tx, name: str, *, clean: bool, reason: str,
              log_tail: str = "") -> Ending:
    """Let an agent leave, with its sub-agents. Its leases are released if it leaves cleanly, and
    expire otherwise.

    Raises:
        Unready: the files have to be looked at.
    """
    ending, members = Ending(), family(tx, name)
    at_rest = {name for name in members if clean and not tx.has("tasks_of_holder", name)}
    partial_work.look_at(svc, tx, [
        row for name in members if name not in at_rest for row in _leases_of(tx, name)])
    for text in members:
        kept_edits.look_at(svc, tx, text)
    for text in members:
        kept_edits.check(svc, tx, text)
    for text in reversed(members):
        leave_line(tx, text, None, "its agent left")
        if text in at_rest:
            _release_all(tx, text, ending)
        else:
            ending.add(_close_holder(svc, tx, text, "left", log_tail))
        tx.record(ev.AgentState(agent=text, state="gone", reason=reason))
    return ending


def family(view: View, name: str) -> list[str]:
    """An agent and its sub-agents that have not left, each once, whatever names its parent."""
    members = [name]
    for text in members:  # grows while it is read
        members += [str(child) for child in view.values("agent_children", text)
                    if child not in members]
    return members


def is_landing(svc: Service, view: View, name: str) -> bool:
    """Whether a task of this agent lands just now."""
    return not svc.landing.isdisjoint(
        task.task_id for task in view.each(TaskRow, "tasks_of_holder", name))


def check_may_end(svc: Service, tx: Tx, name: str) -> None:
    """Whether an agent may leave now: not while a task of its lands.

    Raises:
        Refusal: LOCKED.
    """
    if is_landing(svc, tx, name):
        raise Refusal(
            Code.LOCKED, f"A task of {name} is landing just now; nothing was changed.",
            next="Repeat it in a moment.", conflicts=[], retry_after_s=1.0,
        )


def _release_all(tx: Tx, name: str, ending: Ending) -> None:
    for row in _leases_of(tx, name):
        tx.free(row.file_path, row.kind, row.scope)
        tx.record(ev.LeaseReleased(fencing_token=row.fencing_token, resource=row.file_path,
                                   scope=row.scope, agent=name, lease_kind=row.kind,
                                   task=row.task_id))
        ending.released.append(row.file_path)


def leave_line(tx: Tx, agent: str, task: str | None, reason: str) -> None:
    """Remove an agent's waiters, of one task or all, from the queue. A grant would come for work
    that is over."""
    if not tx.present().waiters:
        return
    for waiter in tx.each(WaiterRow, "waiters_of_agent", agent):
        if task is not None and waiter.task_id != task:
            continue
        tx.freed += [(place.name, place.kind, place.scope) for place in
                     tx.each(PlaceRow, "waiter_places_of", waiter.acquisition_id)]
        tx.record(ev.WaiterLeft(acquisition_id=waiter.acquisition_id, agent=agent, reason=reason))
        pending_unlocks.left_line(tx, waiter.acquisition_id, reason)


def fail_claim(svc: Service, tx: Tx, task: TaskRow, failure: tasks.Failure, *,
               log_tail: str = "", also: Sequence[ev.FlaggedFile] | None = None,
               worktree: str | None = None) -> Ending:
    """The holder gives its task back: like an expiry, but in its own words. With `also` (work that
    did not land) there is a review in any case, of these files and what changed below its leases:
    those of the task, and those that it took for none in the `worktree` of that work.

    Raises:
        Unready: the files have to be looked at.
    """
    ending, holder = Ending(), str(task.claimed_by)
    group = _Group(holder, task.task_id, task, _list_leases(tx, holder, task.task_id, worktree))
    _end_group(svc, tx, ending, group, _End("failed", log_tail, failure, also))
    return ending


def end_alone(svc: Service, tx: Tx, row: LeaseRow, reason: str, why: str, *,
              now_at: str | None = None, over: str | None = None
              ) -> partial_work.Flagged | None:
    """End one lease against its holder's will (`moved`, `overridden`). Returns the review, if
    something under it had changed. `now_at`: where the file is now, if it was moved; `over`: the
    content that was replaced there.

    Raises:
        Unready: the files have to be looked at.
    """
    files = partial_work.changed_since(svc, tx, [row], now_at=now_at, over=over, shared=True)
    flagged = None
    if files:
        flagged = partial_work.flag(
            tx, files,
            partial_work.Occasion(
                reason=reason, agent=row.locked_by, task=row.task_id, leased_at=row.locked_at,
                why=why + review_words.beside(svc, tx, [row])))
    _lapse_one(tx, row, reason, flagged.review if flagged else None)
    return flagged


def flag_overridden(
    svc: Service, tx: Tx, rows: Sequence[LeaseRow], files: Sequence[ev.FlaggedFile], by: str
) -> partial_work.Flagged | None:
    """The review of what one holder had changed under leases that a person is about to end by
    force; None if nothing changed. `by`: that person, or the agent in whose name it is done.

    Raises:
        Unready: the files have to be looked at.
    """
    if not files:
        return None
    holder, names = rows[0].locked_by, listed([file.path for file in files])
    return partial_work.flag(
        tx, files,
        partial_work.Occasion(
            reason="overridden", agent=holder, task=rows[0].task_id,
            leased_at=min(row.locked_at for row in rows),
            why=f"{holder} had changed {names} when its lease was released by force ({by})."
            + review_words.beside(svc, tx, rows, files)))


def look_first(svc: Service, tx: Tx, holder: str, task: str, worktree: str | None = None) -> None:
    """Before anything is recorded: whether what a holder's leases of a task are on was looked at.
    `worktree`: see `fail_claim`.

    Raises:
        Unready: it was not.
    """
    partial_work.look_at(svc, tx, _list_leases(tx, holder, task, worktree))


def _leases_of(tx: Tx, holder: str) -> list[LeaseRow]:
    return tx.each(LeaseRow, "leases_of_holder", holder)


def _list_leases(tx: Tx, holder: str, task: str | None,
                 worktree: str | None = None) -> list[LeaseRow]:
    """A holder's leases of one task, or of none; and those of none in a worktree that it has for
    the task alone."""
    all_ = task is None or worktree is not None
    rows = (tx.each(LeaseRow, "leases_of_holder", holder) if all_ else
            tx.each(LeaseRow, "leases_of_task", task))
    return [row for row in rows if row.locked_by == holder and (
        row.task_id == task
        or (worktree is not None and row.task_id is None and row.worktree == worktree))]


def _claim(tx: Tx, holder: str, task_id: str | None) -> TaskRow | None:
    if task_id is None:
        return None
    task = tx.first(TaskRow, "task_get", task_id)
    return task if task is not None and task.claimed_by == holder else None


def _close_holder(svc: Service, tx: Tx, name: str, reason: str, log_tail: str, *,
                  unseen: str = "") -> Ending:
    """Close all that an agent holds, its claims first."""
    ending = Ending()
    rows = _leases_of(tx, name)
    if not unseen:
        partial_work.look_at(svc, tx, rows)
    claims = {task.task_id: task for task in tx.each(TaskRow, "tasks_of_holder", name) if task}
    groups: dict[str | None, list[LeaseRow]] = {task: [] for task in claims}
    for row in rows:
        groups.setdefault(row.task_id, []).append(row)
    for task_id, leases in groups.items():
        group = _Group(name, task_id, claims.get(task_id or ""), leases)
        _end_group(svc, tx, ending, group, _End(reason, log_tail, unseen=unseen))
    return ending


class _Group(NamedTuple):
    """One holder's leases of one task, or of none; and its claim, where it has the task."""

    holder: str
    task_id: str | None
    claim: TaskRow | None
    leases: list[LeaseRow]


class _End(NamedTuple):
    """How a group ends. `also`: work that did not land; `unseen`: why nothing can be looked at."""

    reason: str
    log_tail: str
    failure: tasks.Failure | None = None
    also: Sequence[ev.FlaggedFile] | None = None
    unseen: str = ""

    @property
    def why(self) -> str:
        """The reported reason of its failure."""
        return self.failure.why if self.failure is not None else ""


def _end_group(svc: Service, tx: Tx, ending: Ending, group: _Group, end: _End) -> None:
    """Close one holder's leases of one task: compare, flag, free, move the task, tell."""
    holder, task_id, claim, leases = group
    if not leases and claim is None:
        return
    files = _find_work(svc, tx, leases, end)
    flagged = None
    if files or end.also is not None or (end.unseen and leases):
        flagged = partial_work.flag(
            tx, files,
            partial_work.Occasion(
                reason=end.reason if end.also is None else "unlanded", agent=holder, task=task_id,
                leased_at=min((row.locked_at for row in leases), default=None),
                log_tail=end.log_tail, why=_describe_end(svc, tx, group, end, files)))
        flagged = flagged._replace(whole=flagged.whole and not end.unseen)
        ending.reviews += [flagged.review, *flagged.others]
    review = flagged.review if flagged else None
    for row in leases:
        _lapse_one(tx, row, end.reason, review)
        ending.lapsed.append(row)
    if claim is not None:
        leave_line(tx, holder, claim.task_id, "its task is over")
        failure = (end.failure or tasks.Failure(""))._replace(why=end.why or WHY[end.reason])
        tasks.attempt_over(svc, tx, claim, failure, agent=holder, review=review)
        ending.tasks.append(claim.task_id)
    _tell(tx, holder, leases, claim, end.reason, flagged)


def _find_work(svc: Service, tx: Tx, leases: list[LeaseRow], end: _End) -> list[ev.FlaggedFile]:
    """What was changed under these leases, and what did not land."""
    files = (partial_work.unseen(svc, leases) if end.unseen
             else partial_work.changed_since(svc, tx, leases, shared=True))
    listed_already = {(file.path, file.worktree) for file in files}
    return files + [file for file in end.also or ()
                    if (file.path, file.worktree) not in listed_already]


def _describe_end(svc: Service, tx: Tx, group: _Group, end: _End,
                  files: list[ev.FlaggedFile]) -> str:
    """What a person is told of a group that ended in the middle of its work."""
    holder, _, claim, leases = group
    title = f" while on {claim.task_id} {quoted(claim.title)}" if claim else ""
    names = listed([f.path for f in files]) or "no file that can be shown"
    text = f": {quoted(end.why, 500)}" if end.why else ""
    beside = review_words.beside(svc, tx, leases, files)
    if end.unseen:
        held = listed([row.file_path for row in leases])
        return (f"{holder} held {held}{title}, then {WHY[end.reason]}; whether it changed anything "
                f"could not be looked at: {end.unseen}")
    return f"{holder} changed {names}{title}, then {WHY[end.reason]}{text}.{beside}"


def _lapse_one(tx: Tx, row: LeaseRow, reason: str, review: str | None) -> None:
    tx.record(ev.LeaseLapsed(
        fencing_token=row.fencing_token, resource=row.file_path, scope=row.scope,
        agent=row.locked_by, lease_kind=row.kind, task=row.task_id, reason=reason,
        review=review, expired_at=min(row.expires_at, tx.now),
    ))
    tx.free(row.file_path, row.kind, row.scope)


def _tell(tx: Tx, holder: str, leases: list[LeaseRow], claim: TaskRow | None, reason: str,
          flagged: partial_work.Flagged | None) -> None:
    if reason == "failed":
        return
    rest = _tell_of_windows(tx, holder, leases)
    if leases and not rest and claim is None:
        return
    names = listed([row.file_path for row in rest]) or "nothing"
    text = flagged.told("Your changes are") if flagged else ""
    task = f" Task {claim.task_id} is no longer yours." if claim else ""
    notices.post(
        tx, holder, "lapsed",
        f"Your lease on {names} has ended ({WHY[reason]}). Do not write there without a new "
        f"lease.{task}{text}",
        resources=[row.file_path for row in rest],
        review=flagged.review if flagged else None,
    )


def _tell_of_windows(tx: Tx, holder: str, leases: list[LeaseRow]) -> list[LeaseRow]:
    """The holder hears of the write windows among these; the other leases."""
    windows = [row for row in leases if is_window(row.kind, row.file_path)]
    if windows:
        names = [row.file_path.removeprefix(WINDOW) for row in windows]
        notices.post(
            tx, holder, "lapsed",
            f"Nobody has told that your edit of {listed(names)} has ended, so its time is over. "
            "What it wrote stays. Read it afresh before you write there again.", resources=names)
    return [row for row in leases if row not in windows]
