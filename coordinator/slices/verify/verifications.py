"""Verifications: a person's command runs on finished tasks, and its result has consequences.

The daemon builds the trees and runs the command, beside everybody's requests. `rules.verification`
attributes a failure. Here a verification begins and ends, each in one transaction. It takes no
lease and waits for none. coord takes no work back: what breaks the command stays in the shared
tree, and its task is to be done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.kernel import blackboard, branches, tasks
from coordinator.kernel.core import Actor, Service, listed, ms
from coordinator.kernel.holders import notices
from coordinator.rules.verification import Outcome
from coordinator.slices.verify.events import VerificationBegun, VerificationEnded, VerifiedFrom
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import Row, VerificationRow, WorkRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import harmless, quoted

#: The name in a verification that nobody asked for.
BY_ITSELF = "coord"
#: Verifications, and finished work that is not verified, in one answer.
LISTED_MAX, LEFT_MAX = 200, 200
#: How much of a command's output a task's blackboard holds (characters).
TAIL_CHARS = 1_500


class Culprit(NamedTuple):
    """A task that broke the command, and how that went.

    Attributes:
        works: numbers of its finished work, and of what had to be verified with it.
        how: the end of a sentence that begins with the command.
        tail: the command's last output.
        held: tasks whose work lies on top of it.
    """

    task: str
    works: tuple[int, ...]
    how: str
    tail: str
    held: tuple[str, ...] = ()


class Result(NamedTuple):
    """The result of a verification.

    Attributes:
        good: numbers of finished work that is in the base now.
        held: (number, the task whose repair it waits for).
        said: why it came to no more, in a sentence; empty where `culprits` say it, or all is well.
        base: the commit that the command passes on now; None: as before.
        head: what had been committed by then is in it; `since`: the last finished work before.
    """

    outcome: Outcome
    runs: int
    good: tuple[int, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    held: tuple[tuple[int, str], ...] = ()
    said: str = ""
    tail: str = ""
    base: str | None = None
    head: str = ""
    since: int = 0


def running(view: View) -> VerificationRow | None:
    """The running verification."""
    return view.first(VerificationRow, "verification_running")


def due(svc: Service, view: View) -> bool:
    """Whether one should begin by itself: enough was finished since the last one began, or
    something was, and nothing else for a while."""
    own = svc.settings.verify
    (waits,) = view.each(WaitingWorkRow, "work_waiting")
    if not own.command.strip() or not waits.count or running(view) is not None:
        return False
    last = view.first(VerificationRow, "verifications_list", 1)
    if last is not None and waits.newest <= last.upto:
        return False  # the same would be told once more
    return waits.count >= own.after_tasks or (
        view.now_ms - from_iso(str(waits.at)) >= ms(own.quiet_s))


def begin(svc: Service, tx: Tx, by: str) -> VerificationRow:
    """Begin a verification, or return the running one."""
    going_on = running(tx)
    if going_on is not None:
        return going_on
    n = tx.number("verification")
    upto = int(tx.value("work_highest") or 0)
    command = svc.settings.verify.command.strip()
    tx.record(VerificationBegun(verification=f"V-{n}", n=n, by=by, command=command[:2000],
                                upto=upto))
    begun = running(tx)
    assert begun is not None
    return begun


def begin_with(tx: Tx, commit: str | None) -> None:
    """From now on verifications begin with this commit, and everything finished so far counts as in
    it. None: nothing is verified any more."""
    since = int(tx.value("work_highest") or 0)
    tx.record(VerifiedFrom(base=commit or "", since=since))


def ask(svc: Service, tx: Tx, actor: Actor, req: rq.Verify) -> rq.Verification:
    """See `requests.Verify`."""
    if not svc.settings.verify.command.strip():
        raise Refusal(
            Code.INVALID, "No command is set that could verify anything (`verify.command`), or it "
            "lies in coord.toml and no person has trusted it. Nothing was run.",
            next="Set it, then `coord trust` and `coord down`: settings are read at the start.",
        )
    if req.afresh:
        if (verification := running(tx)) is not None:
            raise Refusal(
                Code.BAD_TRANSITION,
                f"{verification.verification_id} goes on; nothing was changed.",
                next="`coord verify` waits for its end; then repeat this.", state="running",
            )
        head = tx.looked.after("the commit that is checked out", lambda: branches.head(svc))
        if head is None:
            raise Refusal(Code.INVALID, "There is no commit that a verification could begin with. "
                          "Nothing was changed.", next="Commit something first.")
        begin_with(tx, head)
    return _reply(begin(svc, tx, req.by or "operator"))


class WaitingWorkRow(Row, frozen=True):
    """How much finished work waits to be verified, its highest number and its newest instant."""

    count: int
    newest: int
    at: str | None


class BaseRow(Row, frozen=True):
    """The row of `verified_base`."""

    base_commit: str
    head: str
    since: int
    at: str


def listing(svc: Service, view: View, actor: Actor, req: rq.Verifications) -> rq.VerificationList:
    """See `requests.Verifications`."""
    rows = view.each(VerificationRow, "verifications_list", min(req.limit, LISTED_MAX))
    base = view.first(BaseRow, "verified_base")
    return rq.VerificationList(
        items=[_reply(row) for row in rows],
        command=svc.settings.verify.command.strip(), base=base.base_commit if base else None,
        left=[rq.FinishedWork(task=row.task_id, agent=row.agent, at=row.at, state=row.state,
                              because=row.because)
              for row in view.each(WorkRow, "work_left", LEFT_MAX)],
    )


def _reply(row: VerificationRow) -> rq.Verification:
    return rq.Verification(
        verification=row.verification_id, state=row.state, by=row.by, begun_at=row.begun_at,
        ended_at=row.ended_at, command=row.command, runs=row.runs, tasks=row.tasks.split(),
        said=row.said, tail=row.tail,
    )


def warnings(svc: Service, view: View) -> list[str]:
    """What a person has to know of the last verification, if it could not do its work."""
    row = view.first(VerificationRow, "verifications_list", 1)
    if not svc.settings.verify.command.strip():
        return []
    if row is None or row.state in ("running", "good", "broken"):
        return []
    return [f"{row.verification_id}: {row.said} `coord verify` runs it again."]


def end(svc: Service, tx: Tx, row: VerificationRow, result: Result) -> None:
    """It is over: what passed is in the base, what broke the command is to be done again."""
    if (verification := running(tx)) is None or verification.verification_id != row.verification_id:
        return
    agents = {work.n: work.agent for row_row in tx.each(WorkRow, "work_of")
              for work in (row_row,)}
    works: list[tuple[int, str, str | None]] = [(n, "good", None) for n in result.good]
    works += [(n, "held", task) for n, task in result.held]
    for culprit in result.culprits:
        works += [(n, "broken", culprit.task) for n in culprit.works]
    base = result.base
    tx.record(VerificationEnded(
        verification=row.verification_id, n=row.n, outcome=result.outcome, runs=result.runs,
        works=works, tasks=[culprit.task for culprit in result.culprits],
        task=result.culprits[0].task if result.culprits else None,
        said=result.said or _summary(result), tail=result.tail[-4000:], base=base, head=result.head,
        since=result.since,
    ))
    for culprit in result.culprits:
        last = max(culprit.works)
        _reopen(tx, row, culprit, agents.get(last, "operator"))


def _summary(result: Result) -> str:
    if not result.culprits and not result.held:
        return "all of it passes"
    if not result.culprits:
        waits = listed(list(dict.fromkeys(task for _, task in result.held)))
        return f"what does not lie on top of the work of {waits}, which is to be repaired, passes"
    names = listed([culprit.task for culprit in result.culprits])
    return f"{names} broke it and {'is' if len(result.culprits) == 1 else 'are'} to be done again"


def _reopen(tx: Tx, row: VerificationRow, culprit: Culprit, agent: str) -> None:
    try:
        task = tasks.find(tx, culprit.task)
    except Refusal:
        return
    if task.state != "done":
        return  # a person was faster
    text = (f"{row.verification_id}: {quoted(row.command)} {culprit.how} with what {task.task_id} "
            "changed, twice, and passed without it. coord takes nothing back: correct it in the "
            "working tree. (What a person has edited there counts once it is committed.)")
    output = harmless(culprit.tail).strip()
    text_with_output = f"{text} Last output:\n{output}" if output else text
    state = tasks.broke(tx, task, why=f"{row.verification_id}: the command {culprit.how}",
                        result=text_with_output[:10_000])
    room = 2000 - len(text) - 20
    short = f"{text} Last output:\n{output[-min(room, TAIL_CHARS):]}" if output else text
    blackboard.note(tx, task, agent, Code.VERIFY_FAILED,
                    "person" if state == "dead" else "correct", [], short)
    then = ("It has no attempt left, so a person has it now." if state == "dead" else
            f"It is open again: `coord task claim {task.task_id}`.")
    beside = f" {_on_top(culprit.held)}" if culprit.held else ""
    notices.post(tx, agent, "verify_failed", f"{text}{beside} {then}", task=task.task_id,
                 verification=row.verification_id, output=output)


def _on_top(held: Sequence[str]) -> str:
    names = listed(held)
    return (f"{names} changed the same files after it, and {'is' if len(held) == 1 else 'are'} "
            "verified with its repair.")
