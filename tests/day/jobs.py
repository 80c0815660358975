"""What an agent does in a day: each kind of job once, by commands that succeed for one agent alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from tests.day.agent import Agent, Commit, Doom
from tests.day.repositories import Repository

_NUMBERS = itertools.count(1)


class Worker(Agent):
    """An agent with a place of its own in a repository, and work to do there."""

    repository: Repository
    doomed_job: tuple[str, Doom] | None = None

    def do(self, kind: str) -> None:
        """Do one job. Every line and every commit of it has a name that no other has.

        Raises:
            KilledError: it is dead.
        """
        self.kind, self.id = kind, f"{self.nick}_{next(_NUMBERS)}"
        self.lines = 0
        if self.doomed_job and self.doomed_job[0] == kind:
            self.doom, self.doomed_job = self.doomed_job[1], None
        JOBS[kind](self)
        if self.doom:  # it had no such call
            self.doom = None
            self.kill()

    @property
    def root(self) -> Path:
        return self.stand.root

    def own(self, n: int = 1) -> str:
        return f"own/{self.nick}{n}.py"

    def line(self, spaces: str = " ") -> str:
        self.lines += 1
        return f"{self.id}_{self.lines}{spaces}={spaces}1"

    def add(self, name: str, place: Path | None = None, **how: str) -> bool:
        """One more line in a file, by the edit tool."""
        return self.edit((place or self.root) / name, self.line(), **how)

    def commit(self, words: str, files: set[str], place: Path | None = None, *, label: str = "commit", part: str = "", patient: bool = True) -> bool:
        """`git commit`, `{id}` in its words the name of the commit."""
        name, place = self.id + part, place or self.root
        commit = self.journal.commits.setdefault(name, Commit(self.nick, place, files))
        commit.files |= files
        commit.acknowledged = self.run(label, f"git commit {words.replace('{id}', name)}", place, patient=patient) is not None
        return commit.acknowledged

    def fail(self, what: str) -> None:
        self.journal.faults.append(f"{self.nick}: {self.kind} ({self.id}): {what}")


def commit_by_path(worker: Worker) -> None:
    worker.add(worker.own())
    worker.run("add", f"git add {worker.own()}")
    worker.commit(f"-qm {{id}} -- {worker.own()}", {worker.own()})


def commit_all(worker: Worker) -> None:
    worker.add(worker.own())
    worker.add(worker.own(2))
    worker.commit("-qam {id}", {worker.own(), worker.own(2)})


def commit_staged_part(worker: Worker) -> None:
    """The first line is committed, the second is left for a second commit."""
    worker.add(worker.own(2))
    worker.run("add", f"git add {worker.own(2)}")
    worker.add(worker.own(2), label="second edit")
    worker.commit("-qm {id}", {worker.own(2)})
    shown = worker.run("show", f"git show HEAD:{worker.own(2)}; git status --short") or ""
    if f"{worker.id}_2" in shown:
        worker.fail("what was not staged is in the commit")
    worker.commit(f"-qm {{id}} {worker.own(2)}", {worker.own(2)}, part="_rest", label="second commit")


def amend(worker: Worker) -> None:
    worker.add(worker.own())
    worker.commit(f"-qm {{id}} -- {worker.own()}", {worker.own()})
    worker.add(worker.own(2), label="second edit")
    if worker.run("amend", f"git commit -q --amend --no-edit -- {worker.own(2)}", patient=False) is not None:
        worker.journal.commits[worker.id].files.add(worker.own(2))
    else:
        worker.commit(f"-qm {{id}} -- {worker.own(2)}", {worker.own(2)}, part="_rest", label="second commit")


def stash(worker: Worker) -> None:
    worker.add(worker.own())
    worker.run("stash", f"git stash push -q -m {worker.id} -- {worker.own()}")
    if f"{worker.id}_1" in (worker.root / worker.own()).read_text():
        worker.fail("the stash left the line in the file")
    if worker.run("pop", "git stash pop -q", patient=False) is None:
        # Others' entries come and go between the two commands.
        worker.run("own pop", f"for k in 1 2 3 4 5; do git stash pop -q $(git stash list | grep {worker.id}$ | cut -d: -f1) && exit 0; sleep 0.3; done; exit 1")
    worker.commit(f"-qm {{id}} {worker.own()}", {worker.own()})


def apply(worker: Worker) -> None:
    line = worker.line()
    name = worker.own(3)
    worker.run("write patch", f"cp {name} /tmp/{worker.id} && sed -i 's/^# end/{line}\\n# end/' /tmp/{worker.id}; "
               f"git diff --no-index {name} /tmp/{worker.id} | sed 's,[ab]/tmp/{worker.id},b/{name},' >/tmp/{worker.id}.patch; rm /tmp/{worker.id}")
    if worker.run("apply", f"git apply /tmp/{worker.id}.patch && rm /tmp/{worker.id}.patch") is not None:
        worker.journal.written[line.split()[0]] = worker.root / name
    worker.commit(f"-qm {{id}} -- {name}", {name})


def write_by_shell(worker: Worker) -> None:
    line = worker.line()
    name = f"own/{worker.id}.py"
    if worker.run("echo", f"printf '%s\\n# end\\n' '{line}' > {name}") is not None:
        worker.journal.written[line.split()[0]] = worker.root / name
    worker.run("add", f"git add {name}")
    worker.commit("-qm {id}", {name})


def commit_formatted(worker: Worker) -> None:
    """The hooks format it; where the manager wants it so, it is committed again."""
    worker.edit(worker.root / worker.own(), worker.line("  "))
    worker.run("add", f"git add {worker.own()}")
    if not worker.commit("-qm {id}", {worker.own()}):
        worker.run("add", f"git add {worker.own()}")
        worker.commit("-qm {id}", {worker.own()}, label="second commit")


def run_manager(worker: Worker) -> None:
    """The formatter, and what runs it, typed by hand."""
    worker.edit(worker.root / worker.own(2), worker.line("  "))
    worker.run("format", f"python3 tools/format.py {worker.own(2)}")
    worker.run("add", f"git add {worker.own(2)}")
    for n, command in enumerate(worker.repository.by_hand(worker.own(2))):
        worker.run(f"manager {n}", command, patient=False)
    worker.commit(f"-qm {{id}} -- {worker.own(2)}", {worker.own(2)})


def share_file(worker: Worker) -> None:
    """All of them want this file."""
    worker.add("shared/notes.txt")
    worker.commit("-qm {id} -- shared/notes.txt", {"shared/notes.txt"})
    worker.run("unlock", "coord unlock shared/notes.txt", patient=False)


def share_regions(worker: Worker) -> None:
    """Each has a function of its own in this file."""
    name = "shared/regions.py"
    worker.edit(worker.root / name, f"    {worker.line()}", f'    return "{worker.nick}"\n')
    # By its own part alone, as one does by `git add -p`: others have theirs in the same file.
    patch = f"/tmp/{worker.id}.patch"
    worker.run("part", f"git diff -U1 -- {name} | python3 tools/hunk.py {worker.id}_ > {patch} && git apply --cached {patch} && rm {patch}")
    worker.commit("-qm {id}", {name})
    worker.run("unlock", "coord unlock --all", patient=False)


def change_parts(worker: Worker) -> None:
    """In the submodule and the nested repository, and the step of the submodule in the one around."""
    sub, nested = worker.root / "libs/sub", worker.root / "fixtures/nested"
    worker.add(f"{worker.nick}.txt", nested)
    worker.run("add", f"git add {worker.nick}.txt", nested)
    worker.commit("-qm {id}", {f"{worker.nick}.txt"}, nested, part="_nested")
    worker.add(f"{worker.nick}.txt", sub)
    worker.commit(f"-qm {{id}} -- {worker.nick}.txt", {f"{worker.nick}.txt"}, sub, part="_sub", label="second commit")
    # Another may have stepped the submodule over this commit already.
    if worker.run("status", "git status --short libs/sub"):
        worker.run("add step", "git add libs/sub")
        if worker.run("status", "git diff --cached --name-only libs/sub"):
            worker.commit("-qm {id} -- libs/sub", {"libs/sub"}, label="third commit", patient=True)


def work_in_tree(worker: Worker) -> None:
    """In a linked worktree; it lands at the end of the hour."""
    tree = worker.root / f".claude/worktrees/{worker.id}"
    worker.run("worktree", f"git worktree add -q -b {worker.id} {tree.relative_to(worker.root)}")
    for command in worker.repository.in_a_new_tree(tree):
        worker.run("tree setup", command, tree)
    name = f"landed/{worker.nick}.txt"
    worker.add(name, tree)
    worker.run("add", f"git add {name}", tree)
    worker.commit("-qm {id}", {name}, tree)
    worker.journal.written[f"{worker.id}_1"] = worker.root / name
    worker.run("unlock", "coord unlock --all", patient=False)
    if worker.run("merge", f"git merge -q --no-edit {worker.id}") is not None:
        worker.journal.landings += 1
    worker.run("remove", f"git worktree remove {tree.relative_to(worker.root)}")
    worker.run("branch", f"git branch -q -d {worker.id}")


#: The kinds of jobs; `change_parts` is for a repository that has parts.
JOBS: dict[str, Callable[[Worker], None]] = {job.__name__: job for job in (
    commit_by_path, commit_all, commit_staged_part, amend, stash, apply, write_by_shell, commit_formatted, run_manager,
    share_file, share_regions, change_parts, work_in_tree)}
