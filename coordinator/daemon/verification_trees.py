"""Building trees of whole tasks only: the base, and on top of it what each task has left.

Git's plumbing builds them with an index of its own, so no index, branch or file of a person is
touched. Refs of their own (`refs/coord/verify/…`) keep them from git's tidying. Each unit is a
commit on top of the one before, so one ref keeps them all. Commits of people stand among the units
in the order in which they came.

The functions block, so they run in a thread. They do not decide what breaks what.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from coordinator.files.content import EXECUTABLE, is_link
from coordinator.files.git import EXECUTABLE as EXECUTABLE_MODE
from coordinator.files.git import LINK, NO_MODE, SUBMODULE, Git, GitError
from coordinator.rules.verification import Unit, Work, superseded, units
from coordinator.words import file_names

#: The refs that keep the base, and the trees that are being verified.
BASE_REF, TIP_REF = "refs/coord/verify/base", "refs/coord/verify/tip"
#: The author of these commits, which nobody sees except in the refs above.
_WHO = {"GIT_AUTHOR_NAME": "coord", "GIT_AUTHOR_EMAIL": "coord@localhost",
        "GIT_COMMITTER_NAME": "coord", "GIT_COMMITTER_EMAIL": "coord@localhost"}
_PLAIN_MODE, _NOTHING = "100644", "0" * 40


class Left(NamedTuple):
    """What a done task has left: its finished work, its contents by path (None: deleted), and the
    commits around it if it landed."""

    work: Work
    contents: Mapping[str, str | None]
    head: str | None
    before: str | None
    after: str | None


class Change(NamedTuple):
    """The new entry of a tree at a path of the repository's top: mode (`000000`: nothing), id."""

    mode: str
    id: str


class Plan(NamedTuple):
    """The plan of a verification.

    Attributes:
        base: the commit that it begins with.
        units: in order; those of no task are what was committed meanwhile.
        changes: of each finished work, by its number.
        committed: of each unit of no task.
        files: paths that each finished work changed, whatever its state.
        verified: numbers of finished work that is in the base.
        heads: for each unit of no task, and for the end (None), what is known of the history if all
            before it is in the base: (head, number of the last finished work).
        submodules: paths that are empty in the tree.
    """

    base: str
    units: list[Unit]
    changes: dict[int, dict[str, Change]]
    committed: dict[Unit, dict[str, Change]]
    files: dict[int, frozenset[str]]
    verified: frozenset[int]
    heads: list[tuple[Unit | None, str, int]]
    submodules: list[str]

    def piece(self, unit: Unit, below: Iterable[Unit]) -> dict[str, Change]:
        """What a unit changes on top of these others."""
        if unit in self.committed:
            return self.committed[unit]
        there = self.verified.union(*(unit.works for unit in below))
        piece: dict[str, Change] = {}
        for n in unit.works:
            over = superseded(self.files, n, there)
            piece |= {path: change for path, change in self.changes[n].items() if path not in over}
        return piece

    def on(self, base: str) -> Plan:
        """The plan on a base that already has everything that belongs to no task."""
        return self._replace(base=base, units=[unit for unit in self.units if unit.task],
                             heads=self.heads[-1:])


@dataclass(slots=True)
class _Course:
    """Units in the order in which they came about: finished work, and what was committed between.

    Attributes:
        head: the commit up to which all is among them.
        between: what was committed from one commit to another that is in none of these files
            (`later`); whether something of it has to wait.
        noted: paths of each finished work, by its number.
        owned: what belongs to a task, by path: where it was committed, too, it is still that
            task's.
        stuck: the number of the last work before something that has to wait.
    """

    head: str
    between: Callable[[str, str, set[str]], tuple[dict[str, Change], bool]]
    noted: Mapping[int, set[str]]
    sequence: list[Unit] = field(default_factory=list)
    by_hand: dict[Unit, dict[str, Change]] = field(default_factory=dict)
    heads: list[tuple[Unit | None, str, int]] = field(default_factory=list)
    owned: dict[str, set[Change]] = field(default_factory=dict)
    stuck: int | None = None

    def own(self, changes: Mapping[str, Change]) -> None:
        """These belong to a task."""
        for path, change in changes.items():
            self.owned.setdefault(path, set()).add(change)

    def add_finished(self, left: Sequence[Left], changes: Mapping[int, Mapping[str, Change]],
                     units_at: Mapping[int, Unit], since: int) -> int:
        """Add the finished work, with what was committed before each after the number `since`; the
        last number. `units_at`: the units, by their last work."""
        newest = since
        for leftover in sorted(left, key=lambda leftover: leftover.work.n):
            number = leftover.work.n
            if number > since and leftover.head is not None:
                self.go_to(leftover.head, number)
            newest = max(newest, number)
            if number in units_at:
                self.sequence.append(units_at[number])
                for n in units_at[number].works:
                    self.own(changes[n])
        return newest

    def go_to(self, upto: str, before: int) -> None:
        """Add what was committed up to here, before the work of this number."""
        if upto == self.head or self.stuck is not None:
            return
        later = set().union(*(paths for n, paths in self.noted.items() if n >= before))
        changes, skipped = self.between(self.head, upto, later)
        if changes:
            unit = Unit((), None, frozenset(changes), commit=upto)
            self.heads.append((unit, self.head, before - 1))
            self.sequence.append(unit)
            self.by_hand[unit] = changes
        if skipped:
            self.stuck = before - 1
        else:
            self.head = upto


class Unmakeable(Exception):
    """The trees cannot be made; the message is a whole sentence for people."""


class VerificationTrees:
    """Those of one verification.

    Args:
        root: the repository's root.
        folder: of coord's own, for the index.
        source: the bytes of a content by its name, or the file that has them.
    """

    def __init__(self, root: Path, folder: Path,
                 source: Callable[[str], bytes | Path | None]) -> None:
        self._git = Git(root)
        self._folder, self._source = folder, source
        self._made: dict[tuple[str, tuple[Unit, ...]], str] = {}
        self._blobs: dict[str, Change] = {}
        try:
            text = self._git.text("rev-parse", "--show-toplevel", "--show-prefix")
        except GitError as bad:
            raise Unmakeable(_no_repository(bad)) from None
        top, _, self.below = text.partition("\n")
        self.top = Path(top)

    def head(self) -> str:
        """The commit that is checked out.

        Raises:
            Unmakeable: there is none.
        """
        text = self._git.commit("HEAD")
        if text is None:
            raise Unmakeable("There is no commit yet that a verification could begin with: commit "
                             "something first.")
        return text

    def plan(self, base: tuple[str, str, int] | None, left: Sequence[Left],
             leased: Callable[[str], bool]) -> Plan:
        """What to verify. `base` is its commit, head and number; `leased`: whether an unfinished
        task holds a path now.

        Raises:
            Unmakeable; GitError; OSError.
        """
        now = self.head()
        commit, head, since = base if base is not None and self._git.commit(base[0]) else (
            now, now, 0)
        self.keep_base(commit)
        gitlinks = self._submodules(commit)
        open_ = [leftover for leftover in left if leftover.work.state != "good"]
        changes = {leftover.work.n: self._changes(leftover, gitlinks) for leftover in open_}
        works = [leftover.work._replace(files=frozenset(changes[leftover.work.n]))
                 for leftover in open_]
        noted = {leftover.work.n: {self.below + path for path in leftover.contents}
                 | set(changes.get(leftover.work.n, ())) for leftover in left}
        course = _Course(head, lambda before, after, later: self._between(
            commit, before, after, later, leased, course.owned), noted)
        for leftover in left:
            if leftover.work.state in ("broken", "held"):
                course.own(changes[leftover.work.n])
        newest = course.add_finished(
            left, changes, {max(unit.works): unit for unit in units(works)}, since)
        course.go_to(now, newest + 1)
        course.heads.append((None, course.head, newest if course.stuck is None else course.stuck))
        files = {n: frozenset(paths) for n, paths in noted.items()}
        return Plan(commit, course.sequence, changes, course.by_hand, files,
                    frozenset(noted.keys() - changes.keys()), course.heads, gitlinks)

    def commit(self, plan: Plan, with_: tuple[Unit, ...]) -> str:
        """The base with these units on top, as a commit that git keeps for now.

        Raises:
            GitError.
        """
        made = self._commit(plan, with_)
        self._git.run("update-ref", TIP_REF, made)
        return made

    def keep_base(self, commit: str) -> None:
        """Have git keep this as the base. Earlier trees are not needed any more.

        Raises:
            GitError.
        """
        self._git.run("update-ref", BASE_REF, commit)
        with contextlib.suppress(GitError):
            self._git.run("update-ref", "-d", TIP_REF)

    def flattened(self, commit: str, head: str) -> str:
        """The same tree as a commit that has only `head` before it. Otherwise git would keep all
        trees that were ever verified.

        Raises:
            GitError.
        """
        tree = self._git.text("rev-parse", f"{commit}^{{tree}}")
        return self._record(tree, head, "coord: what is verified")

    # ------------------------------------------------------------ within

    def _commit(self, plan: Plan, with_: tuple[Unit, ...]) -> str:
        if not with_:
            return plan.base
        if (plan.base, with_) in self._made:
            return self._made[plan.base, with_]
        below = self._commit(plan, with_[:-1])
        unit = with_[-1]
        changes = plan.piece(unit, with_[:-1])
        index = self._folder / "index"
        index.unlink(missing_ok=True)
        git = Git(self.top, index)
        git.run("read-tree", below)
        gone = [(path, change) for path, change in changes.items() if change.mode == NO_MODE]
        there = [(path, change) for path, change in changes.items() if change.mode != NO_MODE]
        lines = b"".join(f"{change.mode.lstrip('0') or '0'} {change.id}\t".encode()
                         + os.fsencode(path)
                         + b"\0" for path, change in (*gone, *there))
        git.run("update-index", "-z", "--add", "--replace", "--index-info", data=lines)
        tree = git.text("write-tree")
        made = self._record(tree, below, f"coord: {unit.task or 'commits'}")
        self._made[plan.base, with_] = made
        return made

    def _record(self, tree: str, below: str, why: str) -> str:
        made = self._git.run("commit-tree", tree, "-p", below, "-m", why, env=_WHO)
        return made.decode().strip()

    def _submodules(self, commit: str) -> list[str]:
        return [path for line in self._git.names("ls-tree", "-r", "-z", "--full-tree", commit)
                for about, _, path in (line.partition("\t"),) if about.startswith(SUBMODULE)]

    def _changes(self, left: Left, gitlinks: Iterable[str]) -> dict[str, Change]:
        """By path from the top.

        Raises:
            Unmakeable; GitError; OSError.
        """
        if left.before is not None and left.after is not None:
            return {entry.path: Change(entry.new_mode, entry.new)
                    for entry in self._git.changes(left.before, left.after) if not entry.submodule}
        names = {path: os.fsdecode(file_names.to_bytes(path)) for path in left.contents}
        for path, name in names.items():
            inside = next((link for link in gitlinks if (self.below + name).startswith(link + "/")),
                          None)
            if inside is not None:
                raise Unmakeable(f"{left.work.task} changed {path}, which lies in the submodule "
                                 f"{inside}: no tree of this repository has that, so nothing was "
                                 "verified.")
        ignored = self._ignored(list(names.values()))
        return {self.below + name: self._change(left, path, name)
                for path, name in names.items() if name not in ignored}

    def _ignored(self, names: Sequence[str]) -> set[str]:
        if not names:
            return set()
        data = b"".join(os.fsencode(name) + b"\0" for name in names)
        try:
            output = self._git.run("check-ignore", "-z", "--stdin", data=data)
        except GitError as bad:
            if bad.code == 1:  # none of them
                return set()
            raise
        return {os.fsdecode(name) for name in output.split(b"\0") if name}

    def _change(self, left: Left, path: str, name: str) -> Change:
        content = left.contents[path]
        if content is None:
            return Change(NO_MODE, _NOTHING)
        if content not in self._blobs:
            self._blobs[content] = self._blob(left, path, name, content)
        return self._blobs[content]

    def _blob(self, left: Left, path: str, name: str, content: str) -> Change:
        """Give git a content that is kept."""
        found_path = self._source(content)
        data = found_path.read_bytes() if isinstance(found_path, Path) else found_path
        if data is None:
            raise Unmakeable(
                f"What {left.work.task} left in {path} could not be kept (too large for "
                "review.kept_bytes_max, or not readable), so nothing was verified. When it is "
                "committed, `coord verify --afresh` begins with that.")
        if is_link(content):
            output = self._git.run("hash-object", "-w", "--stdin", data=data)
            return Change(LINK, output.decode().strip())
        output = self._git.run("hash-object", "-w", "--stdin", f"--path={name}", data=data)
        executable = content.endswith(EXECUTABLE)
        return Change(EXECUTABLE_MODE if executable else _PLAIN_MODE, output.decode().strip())

    def _between(self, base: str, before: str, after: str, later: set[str],
                 leased: Callable[[str], bool], left_out: Mapping[str, set[Change]],
                 ) -> tuple[dict[str, Change], bool]:
        """What was committed between two commits and is not finished work, and whether something of
        it has to wait because an unfinished task holds it.

        Raises:
            GitError.
        """
        matches: dict[str, Change] = {}
        skipped = False
        entries = self._git.changes(before, after)
        there = {entry.path: Change(entry.new_mode, entry.new) for entry
                 in self._git.changes(base, after)}
        for entry in entries:
            change = Change(entry.new_mode, entry.new)
            if entry.path in later or change in left_out.get(entry.path, ()):
                continue
            if entry.path not in left_out and entry.path not in there:
                continue  # the base has it already
            if leased(self._from_root(entry.path)):
                skipped = True
                continue
            matches[entry.path] = change
        return matches, skipped

    def _from_root(self, path: str) -> str:
        """The path as coord names it. A path outside of the root gets a name that nobody can lease.
        """
        if not path.startswith(self.below):
            return "../" + path
        return file_names.from_bytes(os.fsencode(path[len(self.below):]))


def _no_repository(bad: GitError) -> str:
    if bad.code == 127:
        return f"Nothing can be verified without git: {bad.said}."
    return ("Nothing can be verified where there is no git repository: the trees to verify are "
            "made by git.")
