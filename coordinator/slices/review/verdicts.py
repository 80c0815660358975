"""A verdict that writes files, step by step, so that it cannot tear.

It has four parts. `plan` looks at the files and works out what each is to become: nothing is
changed. `begin` is a transaction: it notes the whole plan (the journal), keeps every byte that will
be overwritten, and takes leases on the files, so that they are given to nobody meanwhile. `perform`
writes one file after the other, outside of any transaction; each is a compare-and-exchange. A file
that somebody changed meanwhile, or a disk that refuses, and all that was written is taken back.
`conclude` is a transaction again: it notes how that went.

A crash leaves the journal. Whoever comes next (the coordinator's start, its sweep, the next command
for that review) goes on with it: each step finds out by itself how far it had come.

`carry_out` is all of that in order (`kernel.use_cases`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import msgspec

from coordinator.files.compare_exchange import Exchanger
from coordinator.files.content import is_link
from coordinator.files.verdict_steps import Outcome, Saved, Source, Step
from coordinator.kernel import answered, repository_files
from coordinator.kernel.core import Service
from coordinator.kernel.leasing import free_windows
from coordinator.kernel.use_cases import OnDisk, Pause, Steps, Worker, Write, decide
from coordinator.rules.leases import as_resource
from coordinator.slices.review import parts, reviews, verdict_plan
from coordinator.slices.review.verdict_plan import Plan
from coordinator.slices.review.verdict_words import stuck, taken_back, warnings, where_to_look
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, PartRow, ReviewFileRow, ReviewRow, StepRow, VerdictRow
from coordinator.words import file_names, purposes
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import write_window

#: What names begin with that are no agents'.
_OWN = "coord/"
#: The leases of a verdict that is carried out last so long (ms), and are renewed at each sweep.
HOLD_MS = 3_600_000
#: While somebody writes a file of which others hold parts it is waited: so often, and so long each
#: time (seconds).
TRIES, AGAIN_S = 500, 0.02
#: Steps after which the journal is brought up to date.
REPORT_EVERY = 32


Asked = rq.ReviewDecide | rq.ReviewUndo


class Journal(NamedTuple):
    """A verdict that has begun."""

    verdict: VerdictRow
    steps: tuple[StepRow, ...]
    parts: tuple[ev.ReviewPart, ...] = ()

    @property
    def review(self) -> str:
        """The review that it is about."""
        return self.verdict.review_id


@dataclass(slots=True)
class Performed:
    """How carrying out went.

    Attributes:
        state: `done`; `back`: all that was written was taken back, but for `left`; `stuck`: even
            that could not be done for all; `halted`: the coordinator stops.
        first: why it is not done: (path, outcome).
        left: (path, why) of what was written and could not be taken back.
        undone: numbers of the steps that were taken back.
        linked: (path, inode) of files whose old content still is there under another name.
        saved: what somebody saved meanwhile, and is kept as a blob.
    """

    state: str = "done"
    first: tuple[str, Outcome] | None = None
    left: list[tuple[str, str]] = field(default_factory=list)
    undone: list[int] = field(default_factory=list)
    linked: list[tuple[str, int]] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)


def holder(review: str) -> str:
    """Who holds the files of a verdict meanwhile. No agent can be called so."""
    return f"{_OWN}{review}"


def is_own(agent: str) -> bool:
    """Whether this is no agent, but coord while it writes."""
    return agent.startswith(_OWN)


def journal_of(view: View, review: str) -> Journal | None:
    """The verdict on this review that has begun and not ended."""
    row = view.first(VerdictRow, "verdict_get", review)
    if row is None:
        return None
    found = view.each(PartRow, "verdict_parts_of", review)
    return Journal(
        row, tuple(view.each(StepRow, "verdict_steps_of", review)),
        tuple(ev.ReviewPart(
            path=one.path, hunks=one.numbers, part_before=one.part_before,
            part_after=one.part_after, rest_before=one.rest_before, rest_after=one.rest_after,
        ) for one in found),
    )


def unfinished(view: View) -> list[str]:
    """Reviews whose verdict has begun and not ended."""
    return [str(row[0]) for row in view.rows("verdicts_open")]


# ------------------------------------------------------------ the whole, in order


def carry_out(svc: Service, request: Asked) -> Steps:
    """See `requests.ReviewDecide`, `requests.ReviewUndo`."""
    tries = 0
    while True:
        found = yield OnDisk(lambda worker: _journal_or_plan(svc, worker.view, request))
        if isinstance(found, Refusal):
            return found
        if isinstance(found, Plan):
            begun = yield decide(partial(begin, svc, request, found))
            if begun is None:
                continue  # a part of the review was decided meanwhile
            if free_windows.is_busy(begun) and tries < TRIES:
                tries += 1  # somebody writes one of the files: in a moment it is another text
                yield Pause(AGAIN_S)
                continue
            if not isinstance(begun, Journal):
                return begun  # refused, or nothing had to be written
            return (yield from finish(svc, begun, after_crash=False))
        if found.review in svc.at_work:
            return _at_work(found)
        answer = yield from finish(svc, found, after_crash=True)
        if isinstance(answer, Refusal) or _is_asked(found, request):
            return answer


def resume(svc: Service, review: str) -> Steps:
    """Go on with a verdict that a crash or a disk has cut off."""
    found = yield OnDisk(lambda worker: journal_of(worker.view, review))
    if isinstance(found, Journal) and review not in svc.at_work:
        return (yield from finish(svc, found, after_crash=True))
    return found


def hold(svc: Service, tx: Tx) -> None:
    """Renew the leases of verdicts that have begun and not ended; those of what never began end."""
    from coordinator.slices.review import commit_journal  # which is carried out by this

    commit_journal.close_left(svc, tx)
    for review in unfinished(tx):
        held = tx.each(LeaseRow, "leases_of_holder", holder(review))
        if held:
            until = tx.later(HOLD_MS)
            tx.record(ev.LeaseRenewed(agent=holder(review),
                                      until=[(row.fencing_token, until) for row in held]))


def _journal_or_plan(svc: Service, view: View, request: Asked) -> Journal | Plan:
    row = reviews.find(view, request.review)
    return journal_of(view, row.review_id) or verdict_plan.plan(svc, view, request, row)


def finish(svc: Service, journal: Journal, *, after_crash: bool,
           last: Callable[[Tx, Any], Any] = lambda tx, answer: answer) -> Steps:
    """Carry out what the journal has, and note how it went. `last` makes the answer to the whole,
    in the transaction that notes the end."""
    svc.at_work.add(journal.review)
    try:
        done = yield OnDisk(lambda worker: perform(svc, worker, journal, after_crash))
        if isinstance(done, Refusal):
            return done
        if done.state == "halted":
            return Refusal(
                Code.SHUTTING_DOWN, f"The coordinator is shutting down in the middle of the "
                f"{journal.verdict.what} of {journal.review}. It goes on with that at its next "
                "start.", next=where_to_look(journal),
            )
        return (yield Write(
            lambda tx, actor: _told(tx, journal, last(tx, _end(svc, tx, journal, done))),
            last=True))
    finally:
        svc.at_work.discard(journal.review)


def _told(tx: Tx, journal: Journal, answer: Any) -> Any:
    """The answer, which is kept for those who had asked for it under an idempotency key; they wait
    on where a disk has stopped it in the middle."""
    from coordinator.slices.review import commit_journal  # which is carried out by this

    if journal_of(tx, journal.review) is not None:
        return answer
    for asker, asked in answered.awaited(tx, journal.review):
        if isinstance(answer, list):  # nobody is there any more who knows what was asked
            answer = commit_journal.answer(asked.op, journal, answer)
        if not isinstance(answer, Refusal):
            answered.note(tx, asker or None, asked, answer)
    answered.wait_no_more(tx, journal.review)
    return answer


def begun_by(value: object) -> str | None:
    """The name under which files are written from now on, if this is what began it."""
    journal = value if isinstance(value, Journal) else getattr(value, "journal", None)
    return journal.review if isinstance(journal, Journal) else None


def _is_asked(journal: Journal, request: Asked) -> bool:
    """Whether what was begun is what is asked for."""
    if isinstance(request, rq.ReviewUndo):
        return journal.verdict.what == "undo"
    names = () if request.edited is None else parts.edited_names(request.edited)
    if journal.verdict.what == "keep" and journal.steps[0].new_hash not in names:
        return False
    if journal.verdict.what != request.verdict or bool(journal.parts) != bool(
            request.files or request.hunks):
        return False
    begun = {part.path: part.hunks for part in journal.parts}
    return begun == {path: sorted(set(request.hunks)) for path in request.files}


def _at_work(journal: Journal) -> Refusal:
    return Refusal(
        Code.BAD_TRANSITION,
        f"The {journal.verdict.what} of {journal.review} is being carried out just now.",
        next=f"`coord review show {journal.review}` in a moment.",
    )


# ------------------------------------------------------------ its parts


def begin(svc: Service, request: Asked, plan: Plan, tx: Tx) -> Journal | rq.Review | None:
    """Note the plan and hold its files; or, where no file has to be written, the verdict itself.
    None: the review has other files than the plan was made for.

    Raises:
        Refusal: what has come in between.
    """
    row = reviews.find(tx, plan.review)
    going = journal_of(tx, plan.review)
    if going is not None:
        raise _at_work(going)
    verdict_plan.may(tx, request, row)
    if not parts.still_so(tx, plan.review, plan.seen):
        return None
    if plan.steps:
        verdict_plan.free_to_write(svc, tx, row, plan)
    for content in plan.keeps:
        repository_files.keep(tx, content)
    if not plan.steps:
        return reviews.decide(tx, request, row, plan.parts)
    by, note = request.by or "operator", getattr(request, "note", "")[:reviews.NOTE_MAX]
    tx.record(ev.VerdictBegun(review=plan.review, agent=row.agent, task=row.task_id,
                              what=plan.what, by=by, note=note, steps=plan.steps,
                              parts=plan.parts))
    _hold_files(svc, tx, plan)
    if plan.what == "undo":
        reviews.reopen_task(tx, row)  # nobody may claim it while its files change
    begun = journal_of(tx, plan.review)
    assert begun is not None  # it was recorded a moment ago
    return begun


def _hold_files(svc: Service, tx: Tx, plan: Plan) -> None:
    name, acquisition = holder(plan.review), ""
    until = tx.later(HOLD_MS)
    # Two spellings of one name (NFC, NFD) are one resource.
    for step in {step.scope: step for step in plan.steps}.values():
        file = as_resource(step.path, "file", step.scope)
        parts = plan.beside.get(step.path)
        # (Of a file of which others hold parts, the rest is written by turns with them.)
        for one in (file,) if parts is None else (*parts, write_window(step.path, svc.fold_case)):
            token = tx.number("fencing")
            acquisition = acquisition or f"A-{token}"
            tx.record(ev.LeaseGranted(
                fencing_token=token, resource=one.name, agent=name, expires_at=until,
                lease_kind=one.kind, mode="exclusive", scope=one.scope, acquisition_id=acquisition,
                ttl_ms=HOLD_MS, max_until=until, description=f"{plan.what} of {plan.review}",
                purpose=purposes.of_writing(plan.review),
                inode=None if one.kind == "key" else plan.inodes.get(step.path),
                worktree=None if one.kind == "key" else step.worktree,
                content_hash=step.old if one is file else None,
            ))


def perform(svc: Service, worker: Worker, journal: Journal, after_crash: bool) -> Performed:
    """Carry out the steps, and take all back if one cannot be done. For a worker."""
    out = Performed()
    with ExitStack() as stack:
        links = frozenset(row.path for row in journal.steps
                          if is_link(row.old_hash or "") or is_link(row.new_hash or ""))
        writers = _Writers(svc, worker.view, stack, after_crash, links)
        reached: list[StepRow] = []
        fresh: list[int] = []
        names: dict[tuple[int, int], tuple[str, int]] = {}  # file -> what is left of its names
        for row in journal.steps:
            if worker.halted():
                out.state = "halted"
                break
            with worker.piece():
                outcome = writers.run(row, _forward(row))
            if outcome.state == "changed" and row.done:
                outcome = Outcome("done")  # it was written before; what was built on it stays
            if outcome.state in ("done", "failed") or (outcome.state == "barred" and after_crash):
                reached.append(row)
            if outcome.state != "done":
                out.first = (row.path, outcome)
                if after_crash:  # those that follow may have been written before, too
                    reached += journal.steps[journal.steps.index(row) + 1 :]
                break
            if outcome.out is not None:
                names[outcome.out] = (row.path, outcome.names)
            fresh.append(row.n)
            if len(fresh) == REPORT_EVERY:
                _report(worker, journal, fresh)
                fresh = []
        if out.first is None:
            out.first = writers.sync()
        if out.first is None:
            if fresh and out.state == "halted":  # else the end is noted in a moment
                _report(worker, journal, fresh)
            out.linked = [(path, file[1]) for file, (path, left) in names.items() if left > 0]
        else:
            _take_back(out, worker, journal, writers, reached)
        out.saved = writers.saved()
    return out


def _take_back(out: Performed, worker: Worker, journal: Journal, writers: _Writers,
               reached: list[StepRow]) -> None:
    """Put the old contents back, the last one first."""
    out.state = "back"
    _report(worker, journal, [row.n for row in reached], back=True)
    for row in reversed(reached):
        with worker.piece():
            outcome = writers.run(row, _forward(row).reversed(row.old_mode))
        if outcome.state == "done":
            out.undone.append(row.n)
        else:
            out.left.append((row.path, outcome.why))
            if outcome.state != "changed":
                out.state = "stuck"
    if writers.sync() is not None:
        out.state = "stuck"


def _report(worker: Worker, journal: Journal, steps: list[int], *, back: bool = False) -> None:
    event = ev.VerdictStepped(review=journal.review, steps=list(steps), back=back)

    def job(tx: Tx) -> None:
        if steps and tx.row("verdict_get", journal.review) is not None:
            tx.record(event)

    worker.report(job)


def _forward(row: StepRow) -> Step:
    return Step(row.path, row.old_hash, row.new_hash, row.new_mode, row.aside, bool(row.in_place))


class _Writers:
    """One `Exchanger` for each working tree, opened when it is needed."""

    def __init__(self, svc: Service, view: View, stack: ExitStack, after_crash: bool,
                 links: frozenset[str]) -> None:
        self._svc, self._view, self._stack = svc, view, stack
        self._after_crash, self._links = after_crash, links
        self._made: dict[str | None, Exchanger] = {}

    def run(self, row: StepRow, step: Step) -> Outcome:
        """Carry out one step."""
        try:
            writer = self._made.get(row.worktree) or self._open(row.worktree)
            return writer.run(step)
        except OSError as no:
            return Outcome("failed", (no.strerror or str(no)).lower())

    def _open(self, worktree: str | None) -> Exchanger:
        root = self._stack.enter_context(repository_files.root_of(self._svc, worktree))
        made = Exchanger(root, self._svc.blobs, self._source, self._after_crash, self._links)
        return self._made.setdefault(worktree, made)

    def _source(self, name: str) -> Source:
        found = self._view.source(name)
        if found is None:
            raise OSError(f"its bytes ({name[:20]}…) are not kept any more")
        return found

    def sync(self) -> tuple[str, Outcome] | None:
        """Bring to the disk what was renamed; why that cannot be done."""
        for writer in self._made.values():
            try:
                writer.sync()
            except OSError as no:
                return writer.root.path, Outcome("failed", (no.strerror or str(no)).lower())
        return None

    def saved(self) -> list[Saved]:
        """What somebody saved meanwhile, and is kept as a blob."""
        return [one for writer in self._made.values() for one in writer.saved]


def conclude(svc: Service, tx: Tx, journal: Journal, done: Performed) -> rq.Review | Refusal:
    """Note how it went. What is returned as a refusal is on disk, too."""
    row = reviews.find(tx, journal.review)
    for one in done.saved:
        tx.keep_stored(one.name, one.size)
    if done.state == "stuck":
        if done.undone:
            tx.record(ev.VerdictStepped(review=journal.review, steps=done.undone, back=True))
        return stuck(journal, done)
    for lease in tx.each(LeaseRow, "leases_of_holder", holder(journal.review)):
        tx.free(lease.file_path, lease.kind, lease.scope)
        tx.record(ev.LeaseReleased(
            fencing_token=lease.fencing_token, resource=lease.file_path, scope=lease.scope,
            agent=lease.locked_by, lease_kind=lease.kind,
        ))
    said = warnings(svc, done)
    if journal.verdict.what == "keep":
        said += _stayed(tx, journal)
    refusal = taken_back(svc, journal, done) if done.state == "back" else None
    tx.record(ev.VerdictEnded(
        review=journal.review, agent=row.agent, task=row.task_id, what=journal.verdict.what,
        outcome="taken back" if refusal is not None else "done",
        why=refusal.message if refusal is not None else " ".join(said),
        saved=[(one.path, one.name) for one in done.saved],
    ))
    if refusal is not None:
        if journal.verdict.what == "undo":
            reviews.close_task_again(tx, row)
        return refusal
    if journal.verdict.what == "undo":
        reply = reviews.undone(tx, row, journal.verdict.by, reopened=True)
    else:
        verdict = journal.verdict
        if journal.parts:
            row = reviews.split(tx, row, journal.parts)
        reply = reviews.decided(tx, row, verdict.what, verdict.by, verdict.note, journal.steps)
    return msgspec.structs.replace(reply, warnings=said)


def _stayed(view: View, journal: Journal) -> list[str]:
    """What was saved in a file since it was flagged, and stays beside the text that was written."""
    flagged = {file.path: file.flagged_hash
               for file in view.each(ReviewFileRow, "review_files_of", journal.review)}
    return [f"{file_names.shown(step.path)} was saved since it was flagged: what was saved stays, "
            "beside the edited text." for step in journal.steps
            if step.old_hash != flagged[step.path]]


def _end(svc: Service, tx: Tx, journal: Journal, done: Performed) -> Any:
    if journal.verdict.what != "commit":
        return conclude(svc, tx, journal, done)
    from coordinator.slices.review import commit_journal  # which is carried out by this

    return commit_journal.conclude(svc, tx, journal, done)


def describe(view: View, row: ReviewRow) -> str:
    """What is being done about a review now, in words; empty if nothing is."""
    journal = journal_of(view, row.review_id)
    if journal is None:
        return ""
    done = sum(step.done for step in journal.steps)
    return f"its {journal.verdict.what} is being carried out ({done} of {len(journal.steps)} files)"
