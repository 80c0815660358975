"""Running verifications beside everything else, one at a time, in a thread of its own.

Once a second the thread looks whether a verification is due. It has the trees built
(`verification_trees`), runs the command on them as `rules.verification` asks, and returns the
result to the service. It takes no lease, so nobody waits for it. A verification that a crash cut
off is still marked as running, and the next daemon runs it again. The command ends with the daemon,
however the daemon ends (`workers.command_keeper`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from coordinator.daemon.verification_trees import Left, Plan, Unmakeable, VerificationTrees
from coordinator.daemon.writer import Writer
from coordinator.files.git import Git, GitError, clean_environment
from coordinator.files.scratch_tree import ScratchTree
from coordinator.files.state import StateDir
from coordinator.kernel.core import Service
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.rules.verification import Findings, Told, Unit, Work, search
from coordinator.slices.verify import verifications
from coordinator.slices.verify.verifications import Culprit, Result
from coordinator.store.ledger import Job, View
from coordinator.store.rows import ContentRow, VerificationRow, WorkRow
from coordinator.words.clock import Clock
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import resource
from coordinator.words.texts import quoted
from coordinator.workers.kept_command import Ended, how, run, tail

log = logging.getLogger("coord.verify")
#: Logs of runs that are kept.
LOGS_KEPT = 50
#: How long the end of a run is waited for when the daemon ends (seconds).
CLOSE_S = 15.0


class _Halted(Exception):
    """The daemon is about to end: the verification stays as it is, for the next one."""


class _Run(NamedTuple):
    how: str
    tail: str


class Verifier:
    """The verifier of one daemon. It is used from the loop's thread, except where a method says
    otherwise.

    Args:
        look: runs a reading against one committed snapshot; a `Refusal` is a value.
        open_reader: a connection for the thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service, state: StateDir,
                 writer: Writer, look: Callable[[Callable[[View], object]], object],
                 open_reader: Callable[[], apsw.Connection], clock: Clock) -> None:
        self._loop, self._service, self._state = loop, service, state
        self._writer, self._look, self._open_reader = writer, look, open_reader
        self._clock = clock
        self._halt = threading.Event()
        self._threads: ThreadPoolExecutor | None = None
        self.busy = False

    @property
    def command(self) -> str:
        """The command; empty if there is none."""
        return self._service.settings.verify.command.strip()

    def start(self) -> None:
        """Begin with what is committed now, if nothing was verified before. If nothing is to be
        verified any more, forget what waits."""
        begun = self._look(lambda view: view.has("verified_base"))
        if begun and not self.command:
            self._submit(lambda tx: verifications.begin_with(tx, None))
        elif self.command and not begun:
            done = self._thread().submit(Git(self._service.tree.root).commit, "HEAD")
            done.add_done_callback(lambda head: self._soon(self._begin_with, head.result()))

    def tick(self) -> None:
        """Continue the running verification, or begin one that is due."""
        if self.busy or self._halt.is_set():
            return
        verification = self._look(verifications.running)
        if isinstance(verification, VerificationRow):
            self.busy = True
            self._thread().submit(self._carry_out, verification)
        elif self._look(lambda view: verifications.due(self._service, view)) is True:
            self._submit(lambda tx: verifications.begin(self._service, tx, verifications.BY_ITSELF))

    def close(self) -> None:
        """Stop what runs; it is left for the next start."""
        self._halt.set()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def closed(self) -> None:
        """Wait until nothing runs any more, for a limited time."""
        until = self._loop.time() + CLOSE_S
        while self.busy and self._loop.time() < until:
            await asyncio.sleep(0.05)

    def _begin_with(self, head: str | None) -> None:
        if head is not None:
            self._submit(lambda tx: verifications.begin_with(tx, head)
                         if not tx.has("verified_base") else None)

    def _submit(self, job: Job) -> None:
        self._writer.submit(job, _tell)

    def _thread(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="verify")
        return self._threads

    def _soon(self, call: Callable[..., None], *given: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call, *given)

    # ------------------------------------------------------------ in the thread

    def _carry_out(self, row: VerificationRow) -> None:
        try:
            result = self._verify()
        except _Halted:
            self._soon(self._over, row, None)
            return
        except Unmakeable as no:
            result = Result("untold", 0, said=str(no))
        except (GitError, OSError, Refusal, apsw.Error) as bad:
            text = bad.said if isinstance(bad, GitError) else str(bad)
            result = Result("untold", 0, said=f"The trees to verify could not be made ({text}).")
        except Exception as bad:
            log.exception("%s failed", row.verification_id)
            result = Result("untold", 0, said=f"coord met a bug ({type(bad).__name__}).")
        self._soon(self._over, row, result)

    def _over(self, row: VerificationRow, result: Result | None) -> None:
        """In the loop."""
        if result is None:
            self.busy = False
            return

        def told(value: object) -> None:
            self.busy = False
            _tell(value)

        self._writer.submit(lambda tx: verifications.end(self._service, tx, row, result), told)

    def _verify(self) -> Result:
        """Make the trees, run the command on them, and tell what it came to."""
        if not self.command:
            return Result("untold", 0, said="No command is set any more (verify.command).")
        db = self._open_reader()
        try:
            view = View(db, self._clock.now_ms())
            folder = self._state.path / "verify"
            folder.mkdir(mode=0o700, exist_ok=True)
            trees = VerificationTrees(self._service.tree.root, folder, view.source)
            base = view.first(verifications.BaseRow, "verified_base")
            since = base.since if base is not None else 0
            plan = trees.plan(
                None if base is None else (base.base_commit, base.head, since), _left(view),
                lambda path: _is_leased(self._service, view, path))
        finally:
            db.close()
        runs = _Runs(self, trees, folder)
        findings = runs.search(plan)
        committed = tuple(unit for unit in plan.units if unit.task is None)
        if findings.outcome == "base" and committed:
            # Perhaps what was committed since mends it.
            plan = plan.on(trees.commit(plan, committed))
            findings = runs.search(plan)
        return runs.told(plan, findings, anew=base is None)


class _Runs:
    """The runs of one verification. In the thread."""

    def __init__(self, own: Verifier, trees: VerificationTrees, folder: Path) -> None:
        self._own, self._trees, self._folder = own, trees, folder
        self._scratch = ScratchTree(trees.top, folder / "tree")
        self._count = 0
        #: How the last failing run of these units went.
        self._failed: dict[tuple[Unit, ...], _Run] = {}
        self._last = _Run("", "")

    def search(self, plan: Plan) -> Findings:
        """Have the rule find what breaks the command."""
        self._failed.clear()
        course = search(plan.units)
        try:
            asked = next(course)
            while True:
                asked = course.send(self._run(plan, asked))
        except StopIteration as end:
            findings: Findings = end.value
            return findings

    def _run(self, plan: Plan, with_: tuple[Unit, ...]) -> Told:
        """Run the command on the base with these units.

        Raises:
            _Halted; GitError; OSError.
        """
        if self._own._halt.is_set():
            raise _Halted
        self._scratch.check_out_whatever_is_there(self._trees.commit(plan, with_))
        self._count += 1
        logs = self._folder / "logs"
        logs.mkdir(exist_ok=True)
        log_of_it = logs / f"{self._own._clock.now_ms()}-{self._count}.log"
        log_of_it.touch(mode=0o600)
        for old in sorted(logs.iterdir(), key=lambda path: path.stat().st_mtime)[:-LOGS_KEPT]:
            old.unlink(missing_ok=True)
        environment = {name: value for name, value in clean_environment().items()
                       if not name.startswith("COORD_")}
        place = self._scratch.place / self._trees.below
        place.mkdir(parents=True, exist_ok=True)
        ended = run(self._own.command, cwd=place, env=environment, log=log_of_it,
                    seconds=self._own._service.settings.verify.seconds_max,
                    unwanted=self._own._halt.is_set)
        if self._own._halt.is_set():
            raise _Halted
        self._last = _Run(how(ended), tail(log_of_it))
        if ended == Ended(0):
            return "passed"
        if ended.code is None:
            return "untold"
        self._failed[with_] = self._last
        return "failed"

    def _describe_culprit(self, plan: Plan, findings: Findings, unit: Unit) -> Culprit:
        task = str(unit.task)
        ran = next((run for with_, run in reversed(self._failed.items())
                    if with_ and with_[-1] in (unit, *_with_part(plan.units, unit))),
                   self._last)
        on_top = dict.fromkeys(str(other.task) for other, because in findings.held
                               if because == task and other.task)
        return Culprit(task, unit.works, ran.how, ran.tail, tuple(on_top))

    def told(self, plan: Plan, findings: Findings, *, anew: bool) -> Result:
        """The result, in the service's words.

        Raises:
            GitError.
        """
        good = tuple(n for unit in findings.good for n in unit.works)
        held = [(n, because) for unit, because in findings.held for n in unit.works]
        culprits = [self._describe_culprit(plan, findings, unit) for unit in findings.broken]
        base, head, since = None, "", 0
        if findings.good or (anew and findings.outcome in ("good", "broken")):
            _, head, since = next(head for head in plan.heads
                                  if head[0] is None or head[0] not in findings.good)
            base = self._trees.flattened(self._trees.commit(plan, findings.good), head)
            self._trees.keep_base(base)
        failed = next(reversed(self._failed.values()), self._last)
        text, output = self._describe_findings(plan, findings, failed), ""
        if findings.outcome != "good":
            output = culprits[0].tail if culprits else failed.tail
        return Result(findings.outcome, self._count, good, tuple(culprits), tuple(held), text,
                      output,
                      base, head, since)

    def _describe_findings(self, plan: Plan, findings: Findings, failed: _Run) -> str:
        command = quoted(self._own.command)
        empty = (f" (Submodules are empty in the tree that it ran in: "
                 f"{', '.join(plan.submodules[:3])}.)" if plan.submodules else "")
        if findings.outcome == "base":
            return (f"{command} {failed.how} without anything that tasks have done since it last "
                    f"passed, too, so nobody is blamed.{empty}")
        if findings.outcome == "committed":
            return (f"{command} {failed.how} with what was committed besides the tasks, so nobody "
                    "is blamed.")
        if findings.outcome == "flaky":
            return (f"{command} failed and passed on one and the same tree ({failed.how}), so "
                    "nobody is blamed.")
        if findings.outcome == "untold":
            return f"{command} {self._last.how}, so nothing was told."
        return ""


def _with_part(units: list[Unit], part: Unit) -> list[Unit]:
    return [unit for unit in units if part in unit.parts]


def _left(view: View) -> list[Left]:
    result = []
    for row in view.each(WorkRow, "work_of"):
        files = {file.path: file.hash for file in view.each(ContentRow, "work_files_of", row.n)}
        work = Work(row.n, row.task_id, row.state, row.because, frozenset(files))
        result.append(Left(work, files, row.head, row.before, row.after))
    return result


def _is_leased(service: Service, view: View, path: str) -> bool:
    asked = resource(path, "file", fold_case=service.fold_case)
    rows = leases_near(view, asked)
    return any(row.expires_at > view.now and row.mode == "exclusive" and row.kind != "key"
               for row in rows)


def _tell(value: object) -> None:
    if isinstance(value, Exception):
        log.warning("a verification could not be noted: %s", value)
