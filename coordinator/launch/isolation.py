"""`--isolation worktree`: where each agent works, what it is told about that, and how its work
ends.

The module joins the worktrees of a run to the landing on its target, and reports what has landed
and what has not. Work that did not land stays in its worktree, on its branch.

Settings of agent CLIs that coord wired are carried into the worktree, because files such as
`.claude/settings.local.json` are often in no commit, and the agent would have no hooks. They are
put in before an agent begins and removed when it has ended, so they are no part of its work. A file
that git has gets its wired content hidden from git; another is copied. A copy that the agent itself
changed stays, as its work.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from coordinator.files.beneath import Root
from coordinator.files.blobs import BlobFolder
from coordinator.files.compare_exchange import Exchanger
from coordinator.files.content import is_link
from coordinator.files.git import Git, GitError
from coordinator.files.state import StateDir
from coordinator.files.verdict_steps import Source, Step, fitting_mode
from coordinator.launch import branch_landing, verification, worktrees
from coordinator.launch.branch_landing import LandingLine
from coordinator.launch.merge_meaning import MergeMeaning
from coordinator.launch.report import KeptWork, LandedWork
from coordinator.launch.verification import Verification
from coordinator.launch.worktrees import Target, Workplace
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.workers.process_group import Running


class _Wired(msgspec.Struct):
    path: str


def wired_files(state: StateDir) -> list[str]:
    """Return the files below the repository's root that coord has wired, relative to it."""
    try:
        matches = msgspec.json.decode((state.path / "wired").read_bytes(), type=list[_Wired])
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return []
    paths = [state.root / wired.path for wired in matches]
    return [str(path.relative_to(state.root)) for path in paths if path.is_relative_to(state.root)]


def put_in(root: Path, place: Path, names: Sequence[str]) -> None:
    """Give the worktree at `place` the wiring at `root`.

    Raises:
        GitError: git refused.
        OSError: the disk did.
    """
    git = Git(place)
    for name in names:
        source, goal = root / name, place / name
        if not source.is_file() or _same(source, goal):
            continue
        if _tag(git, name):
            git.run("update-index", "--skip-worktree", "--", name)
        elif goal.exists():
            continue
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, goal)


def take_out(root: Path, place: Path, names: Sequence[str], began: str) -> None:
    """Remove the files of `put_in`, even if the agent has committed them. `began`: the commit that
    the agent began at, or empty.

    Raises:
        GitError: git refused.
        OSError: the disk did.
    """
    git = Git(place)
    for name in names:
        tag = _tag(git, name)
        goal = place / name
        if tag == "S":
            git.run("update-index", "--no-skip-worktree", "--", name)
            git.run("--literal-pathspecs", "checkout", "--quiet", "--", name)
        elif _same(root / name, goal) and (not tag or (began and not _has(git, began, name))):
            goal.unlink()
            for folder in goal.parents:
                if folder == place:
                    break
                with contextlib.suppress(OSError):  # it has other content
                    folder.rmdir()


def _tag(git: Git, name: str) -> str:
    """Return the file's tag in the index: empty (not in it), `S` (hidden from git), or another."""
    return git.text("--literal-pathspecs", "ls-files", "-v", "--", name)[:1]


def _has(git: Git, commit: str, name: str) -> bool:
    try:
        return bool(git.text("--literal-pathspecs", "ls-tree", "--name-only", commit, "--", name))
    except GitError:
        return False


def _same(path: Path, other: Path) -> bool:
    try:
        return path.read_bytes() == other.read_bytes()
    except OSError:
        return False


Ask = Callable[[rq.Request[Any]], Any]


class Isolation:
    """The worktrees of one run. Used from all its threads."""

    def __init__(self, root: Path, state: StateDir, target: Target, run: str, ask: Ask,
                 verification: Verification | None = None,
                 meaning: MergeMeaning | None = None) -> None:
        self.target = target
        self.run = run
        self.landed: list[LandedWork] = []
        self.kept: list[KeptWork] = []
        self._root, self._state = root, state
        self._trees = worktrees.Worktrees(target, state.worktrees / run)
        self._verification = verification
        self._meaning = meaning
        self._ask = ask
        self._git = Git(target.top)
        self._lock = threading.Lock()
        self._line: LandingLine[branch_landing.Work] = LandingLine()

    def make(self, agent: str) -> Workplace:
        """Make a worktree for this agent.

        Raises:
            Refusal: STORAGE.
        """
        return self._trees.make(agent)

    def begin(self, work: Workplace, claimed: rq.Claimed, agent: str, number: int,
              ask: Ask) -> None:
        """Begin a task in a worktree without anything of its own: at the tip, its leases bound to
        the files there. Then put in what is left of an earlier attempt.

        Raises:
            Refusal: STORAGE, or what the coordinator says.
        """
        task = claimed.task.task
        self._trees.begin(work, f"coord/{self.run}/{task}-{number}")
        self._carry(work, there=True)
        ask(rq.TaskWorktree(agent=agent, task=task, worktree=str(work.place)))
        if claimed.partial is not None:
            _put_in(work, ask(rq.ReviewShow(review=claimed.partial.review, content=True)),
                    BlobFolder(self._state.blobs))

    def gather(self, work: Workplace, claimed: rq.Claimed, agent: str) -> rq.Unlanded:
        """Gather the agent's work into a commit on its branch.

        Raises:
            Refusal: it cannot be gathered.
        """
        self._carry(work, there=False)
        commit = worktrees.gather(work, _message(claimed.task, agent))
        return rq.Unlanded(worktree=str(work.place), began=work.began, commit=commit)

    def land(self, work: Workplace, claimed: rq.Claimed, agent: str, commit: str,
             finish: Callable[[str], bool], verifying: Callable[[Running], None]) -> None:
        """Land what was gathered, then call `finish` with the target's new commit (empty: there was
        nothing to land). `verifying` gets the process that verifies it.

        Raises:
            Refusal: why nothing landed.
        """
        task = claimed.task
        ignored = branch_landing.only_ignored(work, self._root, claimed.leases)
        if ignored:
            raise Refusal(
                Code.INVALID, f"{task.task} did not land: git ignores {', '.join(ignored[:5])}, "
                "which it leased and wrote. Nothing of it landed.",
                next="Copy it from the worktree, or take it out of .gitignore.", paths=ignored,
            )
        try:
            modules = worktrees.in_submodules(work)
        except GitError as bad:
            raise bad.refusal(f"{task.task} did not land") from None
        if modules:
            raise Refusal(
                Code.INVALID, f"{task.task} did not land: it wrote in {', '.join(modules[:5])}, a "
                "submodule. That is a repository of its own, of which a worktree has an empty "
                "folder. Nothing of it landed.",
                next="Copy it from the worktree into the submodule; or launch without "
                "`--isolation worktree`.", paths=modules,
            )
        if self._git.contains(self.target.ref, commit):
            finish("")
            return
        verified = self._verification
        verify = None if verified is None else (
            lambda batch: verified.check(batch, verifying))

        def landed(after: str) -> bool:  # still in its turn
            if verified is not None:
                verified.landed(after)
            return finish(after)

        lander = branch_landing.Lander(self._state, self.target, self._ask, verify, self._line,
                                       self._meaning)
        after = lander.land(
            branch_landing.Work(agent, task.task, _message(task, agent), commit,
                                branch_landing.rights(claimed.leases)), landed,
        )
        with contextlib.suppress(GitError):
            paths = [e.path for e in self._git.changes(work.began, commit)]
            with self._lock:
                self.landed.append(LandedWork(task=task.task, commit=after, paths=paths))

    def has_landed(self, task: str) -> bool:
        """Whether files have landed for this task."""
        with self._lock:
            return any(landed_work.task == task and landed_work.paths for landed_work
                       in self.landed)

    def _carry(self, work: Workplace, *, there: bool) -> None:
        """Let the files that coord has wired be there, or not.

        Raises:
            Refusal: STORAGE.
        """
        names = wired_files(self._state)
        try:
            if there:
                put_in(self._root, work.place, names)
            else:
                take_out(self._root, work.place, names, work.began)
        except GitError as bad:
            raise bad.refusal(f"The wired settings in {work.place} could not be changed") from None
        except OSError as bad:
            raise Refusal(Code.STORAGE, f"{bad.filename} cannot be written: {bad.strerror}."
                          ) from None

    def where(self, work: Workplace) -> str:
        """Return the place of work that did not land, for a person."""
        return f"branch {work.branch}, worktree {self._shown(work)}"

    def after(self, work: Workplace, claimed: rq.Claimed, why: str) -> Workplace | None:
        """After an attempt: the worktree, to be used again; or None if it holds work that did not
        land, and is kept for a person."""
        with contextlib.suppress(Refusal):
            self._carry(work, there=False)
        if self._trees.untouched(work) and not branch_landing.only_ignored(work, self._root,
                                                                           claimed.leases):
            return work
        with self._lock:
            self.kept.append(KeptWork(task=claimed.task.task, branch=work.branch,
                                      worktree=self._shown(work), why=why))
        return None

    def end(self) -> str:
        """End the launch. Return the words on the landed work for a person, mostly none."""
        if self._meaning is not None:
            self._meaning.close()
        if self._verification is None:
            return ""
        try:
            return self._verification.last_word()
        finally:
            self._verification.close()

    def close(self, work: Workplace) -> None:
        """Remove the agent's worktree, if it has nothing of its own."""
        self._trees.drop(work)

    def _shown(self, work: Workplace) -> str:
        return (str(work.top.relative_to(self._root)) if work.top.is_relative_to(self._root)
                else str(work.top))


def _message(task: rq.Task, agent: str) -> str:
    return f"{task.task}: {task.title}\n\nCoord-Task: {task.task}\nCoord-Agent: {agent}\n"


def uncommitted(target: Target) -> int:
    """Count tracked files of the main worktree with changes that no agent will see."""
    try:
        return len(Git(target.top).names("status", "--porcelain", "-z", "-uno", "--no-renames"))
    except GitError:
        return 0


def tidy_up(root: Path, state: StateDir, run: str) -> list[str]:
    """Remove the worktrees that a dead run left. Those with work of their own stay: return them."""
    folder = state.worktrees / run
    if not folder.is_dir():
        return []
    try:
        target = worktrees.find_target(root)
    except Refusal:
        return [str(folder.relative_to(root))]
    verification.remove(target, folder)
    if not folder.is_dir():
        return []
    trees = worktrees.Worktrees(target, folder)
    left = worktrees.left_by(target, folder)
    for work in left:
        with contextlib.suppress(GitError, OSError):
            take_out(root, work.place, wired_files(state), "")
    return [f"{work.top.relative_to(root.resolve())} (branch {work.branch or 'none'})"
            for work in left if not trees.drop(work)]


def _put_in(work: Workplace, review: rq.Review, blobs: BlobFolder) -> None:
    """Put reassigned partial work into the worktree, file by file, where the file is as it was when
    that work began. The rest is in the prompt, as a difference.

    Raises:
        Refusal: STORAGE.
    """
    contents = _find_contents(review)
    links = frozenset(f.path for f in review.files
                      if is_link(f.flagged_hash or "") or is_link(f.baseline_hash or ""))
    try:
        with Root(work.place) as root:
            by = Exchanger(root, blobs, contents.__getitem__, own_links=links)
            # Deletions first, so that their places are free for new files.
            in_order = sorted(review.files, key=lambda file: file.flagged_hash is not None)
            for n, file in enumerate(in_order):
                if not file.kept or file.flagged_hash not in (None, *contents):
                    continue
                mode = root.snapshot(file.path, 0).mode or 0o644
                outcome = by.run(Step(
                    file.path, file.baseline_hash, file.flagged_hash,
                    fitting_mode(mode, file.flagged_hash or ""), f".coord-{review.review}-{n}.tmp",
                ))
                if outcome.state == "failed":
                    raise Refusal(
                        Code.STORAGE, f"The partial work in {file.path} ({review.review}) could "
                        f"not be put into {work.place}: {outcome.why}.",
                    )
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{work.place} cannot be read: {bad.strerror}.") from None


def _find_contents(review: rq.Review) -> dict[str, Source]:
    """Return the contents of partial work, or their places, by their hashes."""
    contents: dict[str, Source] = {}
    for file in review.files:
        if file.flagged_hash is None:
            continue
        if file.flagged is not None:
            contents[file.flagged_hash] = base64.b64decode(file.flagged)
        elif file.flagged_at is not None:
            contents[file.flagged_hash] = Path(file.flagged_at)
    return contents
