"""Carrying out a journal on the disk: one file after the other, outside of any transaction.

Each is a compare-and-exchange. A file that somebody changed meanwhile, or a disk that refuses, and
all that was written is taken back. For a worker.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

from coordinator.files.compare_exchange import Exchanger
from coordinator.files.content import is_link
from coordinator.files.verdict_steps import Outcome, Saved, Source, Step
from coordinator.kernel import repository_files
from coordinator.kernel.core import Service
from coordinator.kernel.use_cases import Worker
from coordinator.kernel.writing.journal import Journal
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import StepRow

#: Steps after which the journal is brought up to date.
REPORT_EVERY = 32


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


def perform(svc: Service, worker: Worker, journal: Journal, after_crash: bool) -> Performed:
    """Carry out the steps, and take all back if one cannot be done. For a worker."""
    performed = Performed()
    with ExitStack() as stack:
        links = frozenset(row.path for row in journal.steps
                          if is_link(row.old_hash or "") or is_link(row.new_hash or ""))
        writers = _Writers(svc, worker.view, stack, after_crash, links)
        reached = _Reached()
        _write(performed, reached, worker, journal, writers, after_crash)
        if performed.first is None:
            performed.first = writers.sync()
        if performed.first is None:
            if reached.fresh and performed.state == "halted":  # else the end is noted in a moment
                _report(worker, journal, reached.fresh)
            performed.linked = [(path, file[1]) for file, (path, left) in reached.names.items()
                                if left > 0]
        else:
            _take_back(performed, worker, journal, writers, reached.steps)
        performed.saved = writers.saved()
    return performed


@dataclass(slots=True)
class _Reached:
    """How far carrying out has come.

    Attributes:
        steps: those that may have been written.
        fresh: numbers of those that the journal does not tell of yet.
        names: what is left of a file's names: a path, and how many.
    """

    steps: list[StepRow] = field(default_factory=list)
    fresh: list[int] = field(default_factory=list)
    names: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)


def _write(performed: Performed, reached: _Reached, worker: Worker, journal: Journal,
           writers: _Writers, after_crash: bool) -> None:
    """One step after the other, until one cannot be done or the coordinator stops."""
    for row in journal.steps:
        if worker.halted():
            performed.state = "halted"
            break
        with worker.piece():
            outcome = writers.run(row, _forward(row))
        if outcome.state == "changed" and row.done:
            outcome = Outcome("done")  # it was written before; what was built on it stays
        if outcome.state in ("done", "failed") or (outcome.state == "barred" and after_crash):
            reached.steps.append(row)
        if outcome.state != "done":
            performed.first = (row.path, outcome)
            if after_crash:  # those that follow may have been written before, too
                reached.steps += journal.steps[journal.steps.index(row) + 1 :]
            break
        if outcome.out is not None:
            reached.names[outcome.out] = (row.path, outcome.names)
        reached.fresh.append(row.n)
        if len(reached.fresh) == REPORT_EVERY:
            _report(worker, journal, reached.fresh)
            reached.fresh.clear()


def _take_back(performed: Performed, worker: Worker, journal: Journal, writers: _Writers,
               reached: list[StepRow]) -> None:
    """Put the old contents back, the last one first."""
    performed.state = "back"
    _report(worker, journal, [row.n for row in reached], back=True)
    for row in reversed(reached):
        with worker.piece():
            outcome = writers.run(row, _forward(row).reversed(row.old_mode))
        if outcome.state == "done":
            performed.undone.append(row.n)
        else:
            performed.left.append((row.path, outcome.why))
            if outcome.state != "changed":
                performed.state = "stuck"
    if writers.sync() is not None:
        performed.state = "stuck"


def _report(worker: Worker, journal: Journal, steps: list[int], *, back: bool = False) -> None:
    event = ev.VerdictStepped(review=journal.review, steps=list(steps), back=back)

    def job(tx: Tx) -> None:
        if steps and tx.has("verdict_get", journal.review):
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
        source = self._view.source(name)
        if source is None:
            raise OSError(f"its bytes ({name[:20]}…) are not kept any more")
        return source

    def sync(self) -> tuple[str, Outcome] | None:
        """Bring to the disk what was renamed; why that cannot be done."""
        for writer in self._made.values():
            try:
                writer.sync()
            except OSError as no:
                return writer.root.path, Outcome("failed", (no.strerror or str(no)).lower())
        return None

    def saved(self) -> list[Saved]:
        """What somebody saved meanwhile, kept as a blob."""
        return [saved for writer in self._made.values() for saved in writer.saved]
