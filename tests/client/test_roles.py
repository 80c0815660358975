"""A task carried by roles that a user fills: what each is shown, and where it ends."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from coordinator import Client, Code, Refusal
from coordinator.client.roles import Command, Work, carry
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.effort import crossed
from tests.launch.conftest import alive
from tests.waiting import until

TEXT = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


class Editor:
    """Commits one text after the other; each may be made from what it is shown."""

    def __init__(self, *rounds: Callable[[Work], Sequence[rq.RegionText]]) -> None:
        self.rounds = list(rounds)
        self.shown: list[Work] = []

    def edit(self, work: Work) -> Sequence[rq.RegionText]:
        self.shown.append(work)
        return self.rounds.pop(0)(work)


def text(name: str, body: str) -> Callable[[Work], Sequence[rq.RegionText]]:
    return lambda work: [rq.RegionText(resource=name, text=body)]


def fresh(name: str) -> Callable[[Work], Sequence[rq.RegionText]]:
    def made(work: Work) -> Sequence[rq.RegionText]:
        assert work.refusal is not None
        return [rq.RegionText(resource=name, text=str(work.refusal.facts["text"]).replace("100", "101"))]

    return made


@pytest.fixture
def ann(repo: Repo) -> Client:
    repo.write("a.py", TEXT)
    repo.write("b.py", TEXT)
    return repo.client("ann")


def add(client: Client, *resources: str) -> str:
    return client.call(rq.TaskAdd(title="Make f faster", prompt="It is slow.", resources=list(resources))).task


def test_each_outcome_has_its_next_attempt(repo: Repo, ann: Client) -> None:
    task = add(ann, "a.py::f")

    def meanwhile(work: Work) -> Sequence[rq.RegionText]:
        repo.write("a.py", TEXT.replace("return 1\n", "return 100\n"))
        return text("a.py::f", "def f():\n    return 2\n")(work)

    editor = Editor(text("a.py::f", "def f(:\n"), meanwhile, fresh("a.py::f"))
    done = carry(ann, task=task, editor=editor, planner=type("P", (), {"plan": lambda self, work: ["b.py::g"]})())
    assert done.state == "done" and "return 101" in repo.read("a.py")
    first, second, third = editor.shown
    assert first.refusal is None and {one.resource for one in first.leases} == {"a.py::f", "b.py::g"}
    assert second.refusal is not None and second.refusal.code is Code.PARSE_INVALID
    assert third.refusal is not None and third.refusal.code is Code.REGION_CHANGED and third.rounds == 2
    assert third.refusal.facts["intent"]["prompt"] == "It is slow."
    assert ann.call(rq.Locks()).items == []


def test_a_validator_sends_it_back_with_its_words(repo: Repo, ann: Client, tmp_path: Path) -> None:
    task = add(ann, "a.py::f")
    editor = Editor(text("a.py::f", "def f():\n    return 3\n"), text("a.py::f", "def f():\n    return 4\n"))
    check = Command(f"'{sys.executable}' -B -c \"import a; assert a.f() == 4, 'it is not four'\"", repo.root)
    assert carry(ann, task=task, editor=editor, validator=check).state == "done"
    refusal = editor.shown[1].refusal
    assert refusal is not None and refusal.code is Code.VERIFY_FAILED and "it is not four" in refusal.message
    said = " ".join(ann.call(rq.Explain(subject=task)).sentences)
    assert "VERIFY_FAILED, so it is to be corrected" in said and said.count("COMMITTED") == 2


def test_what_took_too_long_ends_with_all_that_it_started(ann: Client, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    command = Command(f"sleep 600 & echo $! > '{note}'; wait", seconds=1.0)
    claimed = ann.claim(add(ann, "a.py"))
    assert "took over 1 s" in command.validate(Work(claimed.task, claimed))
    started = int(note.read_text())
    until(lambda: not alive(started))


def test_what_is_written_each_time_and_never_passes_its_check_is_a_persons(repo: Repo, ann: Client) -> None:
    task = add(ann, "a.py::f")
    editor = Editor(*[text("a.py::f", f"def f():\n    return {n}\n") for n in range(10, 20)])
    ended = carry(ann, task=task, editor=editor, validator=Command("false"))
    assert len(editor.shown) == 6 and ended.state == "review" and [one.outcome for one in ended.tried] == ["COMMITTED", "VERIFY_FAILED"] * 6
    assert ended.tried[-1].remedy == "person"


def test_what_nobody_gets_right_is_a_persons(repo: Repo, ann: Client) -> None:
    task = add(ann, "a.py::f")
    editor = Editor(*[text("a.py::f", "def f(:\n")] * 10)
    ended = carry(ann, task=task, editor=editor)
    assert ended.state == "dead" and len(editor.shown) == 6 and len(ended.tried) == 6


def test_a_recovery_may_give_up_before(repo: Repo, ann: Client) -> None:
    task = add(ann, "a.py::f")
    editor = Editor(text("a.py::f", "def f(:\n"))
    gives_up = type("R", (), {"remedy": lambda self, work, refusal: "person"})()
    ended = carry(ann, task=task, editor=editor, recovery=gives_up)
    assert ended.state == "failed" and "could not be read" in str(ended.result)
    assert ann.call(rq.Locks()).items == []


def test_what_others_hold_sends_the_task_back_to_the_line(repo: Repo, ann: Client) -> None:
    """It needs a caller, too, which another has leased: it is offered again with both in its plan."""
    repo.write("calls.py", "from a import f\n\n\ndef h():\n    return f()\n")
    bob = repo.client("bob")
    bob.acquire("b.py::f")
    numbers = itertools.count()
    until(lambda: not bob.commit_region("b.py::f", f"def f(x={next(numbers)}):\n    return 1\n").warnings)  # all is read now
    bob.acquire("calls.py::h")
    task = add(ann, "a.py::f")
    ended = carry(ann, task=task, editor=Editor(text("a.py::f", "def f(x):\n    return x\n")))
    assert ended.claimed_by is None and repo.read("a.py") == TEXT and set(ended.resources) == {"a.py::f", "calls.py::h"}
    bob.release("calls.py::h")

    def both(work: Work) -> Sequence[rq.RegionText]:
        assert {one.resource for one in work.leases} == {"a.py::f", "calls.py::h"}
        (before,) = work.claimed.tried
        return [rq.RegionText(resource="a.py::f", text=str(before.regions[0].text)),
                rq.RegionText(resource="calls.py::h", text="def h():\n    return f(1)\n")]

    assert carry(ann, editor=Editor(both)).state == "done" and "f(1)" in repo.read("calls.py")


def test_a_role_that_fails_leaves_no_claim(repo: Repo, ann: Client) -> None:
    task = add(ann, "a.py::f")
    with pytest.raises(ZeroDivisionError):
        carry(ann, task=task, editor=Editor(lambda work: [1 // 0]))  # type: ignore[list-item]
    with pytest.raises(Refusal) as met:
        carry(ann, task=add(ann, "b.py::f"), editor=Editor(text("a.py::g", "def g():\n    return 7\n")))
    assert met.value.code is Code.UNKNOWN_LEASE and ann.call(rq.Locks()).items == []
    assert {one.state for one in ann.call(rq.Tasks()).items} == {"failed"}


@pytest.mark.parametrize(("by_lease", "where"), crossed([True, False], ["worktree", "sub"]))
def test_it_is_carried_where_the_program_works(repo: Repo, monkeypatch: pytest.MonkeyPatch, where: str, by_lease: bool) -> None:
    for name in ("a.py", "sub/a.py"):
        repo.write(name, TEXT)
    subprocess.run("git add -A && git -c user.name=P -c user.email=p@x commit -qm one && git worktree add -q ../side -b side",
                   shell=True, cwd=repo.root, check=True)
    place = repo.root.parent / "side" if where == "worktree" else repo.root / "sub"
    monkeypatch.chdir(place)
    with Client(repo.root, agent="ann") as ann:
        task = ann.task_add("carry", resources=["a.py::f"]).task
        planner = type("P", (), {"plan": lambda self, work: ["a.py::g"]})()

        def made(work: Work) -> Sequence[rq.RegionText]:
            names = [one.resource for one in work.leases] if by_lease else ["a.py::f", "a.py::g"]
            assert {one.worktree for one in work.leases} == {str(place) if where == "worktree" else None}
            return [rq.RegionText(resource=name, text=f"def {name[-1]}():\n    return 'carried'\n") for name in names]

        check = Command("test $(grep -c carried a.py) = 2")
        assert carry(ann, task=task, editor=Editor(made), planner=planner, validator=check).state == "done"
    assert (place / "a.py").read_text().count("carried") == 2 and repo.read("a.py") == TEXT
