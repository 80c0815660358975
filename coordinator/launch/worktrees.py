"""A linked git worktree for each launched agent: made, begun afresh for each task, kept or removed.

They are in `.coord/worktrees/RUN/`, one directory for an agent. Each task has a branch of its own,
`coord/RUN/TASK-ATTEMPT`, which begins at the tip of the target. An agent's work is gathered into a
commit on that branch; `landing` decides whether it lands. A worktree with anything that is not on
the target is never removed here.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coordinator.files.git import CHECKOUT_TIMEOUT_S, SUBMODULE, Git, GitError, under_way
from coordinator.words.refusals import Code, Refusal

#: Paths that a refusal names.
NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class Target:
    """The branch that work lands on, and the place of the repository's root in its working tree.

    `below` is the root's place below the top of the working tree: empty, or with a final slash.
    """

    top: Path
    below: str
    ref: str

    @property
    def name(self) -> str:
        """The branch's name for a person."""
        return self.ref.removeprefix("refs/heads/")


@dataclass(slots=True)
class Workplace:
    """One linked worktree, and its present use."""

    top: Path
    place: Path  # the repository's root in it: where the agent works
    branch: str = ""
    began: str = ""  # the commit that the branch began at

    @property
    def ref(self) -> str:
        """The branch's full name."""
        return f"refs/heads/{self.branch}"


def find_target(root: Path) -> Target:
    """Return the branch that is checked out at `root`.

    Raises:
        Refusal: INVALID: no git, no commit yet, no branch.
    """
    git = Git(root)
    try:
        top = Path(git.text("rev-parse", "--show-toplevel"))
    except GitError as bad:
        why = "is not in a git working tree" if bad.code != 127 else f"cannot be asked: {bad.said}"
        raise _cannot(f"{root} {why}", "`git init` and a first commit make it one; or leave out "
                      "--isolation.") from None
    ref = git.branch()
    if ref is None:
        raise _cannot("no branch is checked out (HEAD is detached), so there is none to land on",
                      "`git switch BRANCH`, or `git switch -c NEW`; then launch again.")
    if git.commit("HEAD") is None:
        raise _cannot(f"{ref.removeprefix('refs/heads/')} has no commit yet to begin from",
                      "Make a first commit (`git add . && git commit`), then launch "
                      "again.")
    below = os.path.relpath(root.resolve(), top.resolve())
    return Target(top, "" if below == "." else below + "/", ref)


def check_at_rest(target: Target) -> None:
    """Check that no merge or the like is under way there: nothing could land.

    Raises:
        Refusal: INVALID.
    """
    doing = under_way(target.top / Git(target.top).text("rev-parse", "--git-dir"))
    if doing:
        raise _cannot(f"a {doing} is under way in {target.top}, so nothing that agents do could "
                      "land", f"Finish it, or `git {doing} --abort`; then launch again.")


def _cannot(why: str, step: str) -> Refusal:
    return Refusal(Code.INVALID, f"--isolation worktree is not possible: {why}. Nothing was "
                   "started.", next=step)


class Worktrees:
    """The linked worktrees of one run. Used from all its threads."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self._git = Git(target.top)
        self._lock = threading.Lock()

    def make(self, agent: str) -> Workplace:
        """Make a worktree for this agent, at the tip.

        Raises:
            Refusal: STORAGE.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock:  # git itself takes no turns: it meets worktrees that are half made
            top = next(path for path in self._places(agent) if not path.exists())
            try:
                self._git.run("worktree", "add", "--quiet", "--detach", str(top), self.tip(),
                              timeout_s=CHECKOUT_TIMEOUT_S)
            except GitError as bad:
                raise bad.refusal(f"No worktree could be made for {agent}") from None
        top = top.resolve()
        return Workplace(top, top / self.target.below)

    def _places(self, agent: str) -> Iterator[Path]:
        yield self.folder / agent
        for number in range(2, 100_000):
            yield self.folder / f"{agent}.{number}"

    def tip(self) -> str:
        """Return the target's present commit.

        Raises:
            Refusal: VERSION_CHANGED: the branch is gone.
        """
        text = self._git.commit(self.target.ref)
        if text is None:
            raise Refusal(Code.VERSION_CHANGED, f"The branch {self.target.name} is gone.",
                          next="`git branch` shows those that there are; then launch again.")
        return text

    def begin(self, work: Workplace, branch: str) -> None:
        """Let a worktree that holds nothing of its own begin a task: on a new branch, at the tip.

        Raises:
            Refusal: STORAGE.
        """
        git, tip = Git(work.top), self.tip()
        before = (work.branch, work.ref, git.commit(work.ref) if work.branch else None)
        try:
            git.run("checkout", "--quiet", "--no-track", "-B", branch, tip,
                    timeout_s=CHECKOUT_TIMEOUT_S)
        except GitError as bad:
            raise bad.refusal(f"{work.top} could not begin at {self.target.name}") from None
        work.branch, work.began = branch, tip
        if before[2] is not None and before[0] != branch:
            self._forget(before[1], before[2])

    def untouched(self, work: Workplace) -> bool:
        """Whether everything in it is on the target, except what git ignores."""
        git = Git(work.top)
        try:
            if git.run("status", "--porcelain", "-z", "--untracked-files=all",
                       "--ignore-submodules=none") or in_submodules(work):
                return False
        except GitError:
            return False
        names = ["HEAD"] + ([work.ref] if work.branch else [])
        matches = [git.commit(name) for name in names]
        return all(text is None or self._git.contains(self.target.ref, text) for text in matches)

    def drop(self, work: Workplace) -> bool:
        """Remove a worktree and its branch, if it holds nothing of its own; whether it did."""
        if not self.untouched(work):
            return False
        place = self._git.commit(work.ref) if work.branch else None
        try:
            self._git.run("worktree", "remove", str(work.top))
        except GitError:
            return False  # git sees something that we did not
        if place is not None:
            self._forget(work.ref, place)
        with contextlib.suppress(OSError):  # others are still there
            self.folder.rmdir()
            self.folder.parent.rmdir()
        return True

    def _forget(self, ref: str, place: str) -> None:
        """Delete a branch whose commits are all on the target."""
        if self._git.contains(self.target.ref, place):
            with contextlib.suppress(GitError):
                self._git.run("update-ref", "-d", ref, place)


def in_submodules(work: Workplace) -> list[str]:
    """Return the submodules, from the top, that were written to. A worktree has an empty folder of
    each, and git does not look into it. In a filled one, uncommitted changes count.

    Raises:
        GitError
    """
    result = []
    for line in Git(work.top).names("ls-files", "--stage", "-z"):
        about, _, path = line.partition("\t")
        if not about.startswith(SUBMODULE):
            continue
        place = work.top / path
        try:
            filled = (place / ".git").exists()
            left = bool(Git(place).run(
                "status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=none",
            )) if filled else any(place.iterdir())
        except FileNotFoundError:
            continue
        except (OSError, GitError):
            left = True  # it may hold something
        if left:
            result.append(path)
    return result


def left_by(target: Target, folder: Path) -> list[Workplace]:
    """Return the worktrees in the folder of a run that died."""
    workplaces = []
    for top in sorted(folder.glob("*")):
        if (top / ".git").is_file():
            real, branch = top.resolve(), Git(top).branch() or ""
            workplaces.append(Workplace(real, real / target.below,
                                        branch.removeprefix("refs/heads/")))
    return workplaces


def gather(work: Workplace, message: str) -> str:
    """Commit the agent's uncommitted work on its branch, on top of its own commits, and return the
    tip. Without any work, it is the commit that its branch began at.

    Raises:
        Refusal: INVALID: unresolved conflicts, or it left its branch behind; STORAGE.
    """
    git = Git(work.top)
    head, own = git.commit("HEAD"), git.commit(work.ref)
    if head is None or (own is not None and not git.contains(head, own)):
        raise _kept(f"its worktree is no longer on {work.branch}, which has commits that would be "
                    "left behind")
    try:
        conflicts = sorted({line.partition("\t")[2] for line in git.names("ls-files", "-u", "-z")})
        if conflicts:
            raise _kept("a merge in its worktree has unresolved conflicts: "
                        + ", ".join(conflicts[:NAMED_MAX]))
        git.run("add", "--all", timeout_s=CHECKOUT_TIMEOUT_S)
        tree = git.text("write-tree")
        commit = head
        if tree != git.text("rev-parse", f"{head}^{{tree}}"):
            commit = record(git, tree, [head], message)
        if commit != own:
            git.run("update-ref", "-m", "coord: gathered", work.ref, commit)
        if git.branch() != work.ref:
            git.run("symbolic-ref", "HEAD", work.ref)
    except GitError as bad:
        raise bad.refusal("What the agent left could not be gathered into a commit") from None
    return commit


def _kept(why: str) -> Refusal:
    return Refusal(Code.INVALID, f"The work cannot land: {why}. It is kept as it is.",
                   next="Look at it, and merge it by hand.")


def record(git: Git, tree: str, parents: list[str], message: str) -> str:
    """Make a commit of this tree, by git's configured person, and return its id.

    Raises:
        GitError: the disk refused.
    """
    env: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        if git.maybe("var", f"GIT_{role}_IDENT") is None:
            env |= {f"GIT_{role}_NAME": "coord", f"GIT_{role}_EMAIL": "coord@localhost"}
    args = [word for parent in parents for word in ("-p", parent)]
    made = git.run("commit-tree", tree, *args, data=message.encode(), env=env)
    return made.decode().strip()
