"""What is typed below the root, in a folder that is gone, or in another spelling, means what it means everywhere."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata

import pytest

from coordinator import Refusal
from coordinator.slices.story import dashboard
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.conftest import Repo
from tests.world import World


def test_names_typed_below_the_root_are_told_as_what_they_mean(repo: Repo) -> None:
    repo.write("src/m.py", "x = 1\n")
    below = repo.root / "src"
    repo.coord("lock", "src/m.py", "--agent", "ann")
    repo.coord("signal", "add", "src/m.py", "warning", "--agent", "ann")
    hint = "`:/src/m.py` from here"
    for words in (("locks", "src/m.py"), ("signal", "list", "src/m.py")):
        told = repo.coord(*words, cwd=below).stdout
        assert "src/src/m.py" in told and hint in told, told
        assert "src/m.py" in repo.coord(*words[:-1], "m.py", cwd=below).stdout
    for name, cwd in (("m.py", below), ("./m.py", below), (":/src/m.py", below), ("./src/m.py", repo.root), ("src/m.py", repo.root)):
        assert "ann got src/m.py" in repo.coord("events", "--resource", name, cwd=cwd).stdout, name
    assert "No event of src/other.py fits." in repo.coord("events", "--resource", "other.py", cwd=below).stdout
    done = repo.coord("unlock", "src/m.py", "absent.py", "--agent", "ann")
    assert done.returncode == 7 and "begin at the root" not in done.stderr
    done = repo.coord("unlock", "src/m.py", "--agent", "ann", cwd=below)
    assert done.returncode == 7 and "`:/src/m.py`" in done.stderr


def test_below_the_root_of_a_linked_worktree_names_mean_what_lies_there(repo: Repo) -> None:
    repo.write("m.py", "def f():\n    return 1\n")
    repo.write("src/m.py", "def f():\n    return 1\n")
    subprocess.run("git add -A && git -c user.name=P -c user.email=p@x commit -qm one && git worktree add -q ../side -b side",
                   shell=True, cwd=repo.root, check=True)
    side = repo.root.parent / "side"
    below = side / "src"

    def held() -> set[tuple[str, str | None]]:
        return {(one["resource"], one.get("worktree")) for one in json.loads(repo.coord("locks", "--json").stdout)["items"]}

    for name, cwd in (("m.py", below), (":/m.py", below), ("m.py::f", repo.root)):
        done = repo.coord("lock", name, "--agent", "ann", cwd=cwd)
        assert done.returncode == 0, done.stderr
    assert held() == {("src/m.py", str(side)), ("m.py", str(side)), ("m.py::f", None)}
    told = repo.coord("unlock", "src/m.py", "--agent", "ann", cwd=below)
    assert told.returncode == 7 and "`:/src/m.py`" in told.stderr
    told = repo.coord("lock", ":/src/m.py", "--agent", "bob", "--no-retry", cwd=below)
    assert told.returncode == 3
    assert repo.coord("unlock", "m.py", "--agent", "ann", cwd=below).returncode == 0
    assert held() == {("m.py", str(side)), ("m.py::f", None)}, "not that of the same name at the root"
    assert repo.coord("unlock", ":/m.py", "--agent", "ann", cwd=below).returncode == 0
    assert held() == {("m.py::f", None)}


def test_a_task_is_known_by_each_of_its_spellings(world: World) -> None:
    world.acquire("ann", "b.py")
    world.task("t", "a.py")
    world.ask(rq.TaskClaim(agent="ann", task="T-1"))
    world.write("a.py", "x\n")
    assert world.ask(rq.Acquire(agent="ann", resources=["c.py"], task="1")).leases[0].task == "T-1"
    world.ask(rq.TaskFail(agent="ann", task="1", reason="x"))
    for name in ("1", "t-1", "T-1"):
        assert [one.review for one in world.ask(rq.Reviews(task=name)).items] == ["R-1"]
        assert world.ask(rq.Events(task=name)).items[0].kind == "task_added"
    for request in (rq.Reviews(task="T-9"), rq.Events(task="9"), rq.Acquire(agent="ann", resources=["d"], task="T-9")):
        assert world.refused(request).code is Code.UNKNOWN_TASK
    world.task("two")
    world.ask(rq.TaskClaim(agent="ann", task="T-2"))
    assert world.refused(rq.TaskClaim(agent="bob", task="T-2")).next == "`coord task claim --agent bob` takes another."


@pytest.mark.parametrize("words", ["lock key:a --agent a", "down", "task list", "mcp", "launch -", "attach", "run shell -- true", "init", "help", "lokc"])
def test_in_a_folder_that_is_gone_nothing_is_done_and_that_is_said(repo: Repo, words: str) -> None:
    repo.coord("up")
    gone = repo.root / "gone"
    gone.mkdir()
    line = f"cd '{gone}' && rmdir '{gone}' && exec '{sys.executable}' -m coordinator.cli.main {words}"
    done = subprocess.run(["sh", "-c", line + " --json"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert done.returncode == 2 and "working directory does not exist any more. Nothing was done." in done.stderr, done
    if "--" not in words.split():
        assert json.loads(done.stdout)["error"]["code"] == "INVALID"
    assert repo.coord("locks", "-q").stdout == ""


@pytest.mark.parametrize(("on_disk", "typed"), [("NFD", "NFC"), ("NFC", "NFD"), ("NFD", "NFD")])
@pytest.mark.parametrize("whole", [False, True])
def test_a_region_is_committed_by_either_unicode_form(world: World, on_disk: str, typed: str, whole: bool) -> None:
    disk, said = (unicodedata.normalize(form, "\u00e9.py") for form in (on_disk, typed))
    world.write(disk, "def f():\n    return 1\n")
    world.acquire("ann", said if whole else f"{said}::f")
    world.ask(rq.CommitRegion(agent="ann", regions=[rq.RegionText(resource=f"{said}::f", text="def f():\n    return 2\n")]))
    assert (world.root / disk).read_text() == "def f():\n    return 2\n" and len([*world.root.glob("*.py")]) == 1


def test_who_owns_a_key_until_idle_tells_what_was_not_applied(repo: Repo) -> None:
    with repo.client("bob") as bob:
        for wanted in (1, 2):
            bob.change_add("key:acc", wanted)
    done = repo.coord("state", "own", "key:acc", "--agent", "owner", "--until-idle", "--", "sh", "-c", "exit 100")
    assert done.returncode == 0 and done.stdout == "0 changes applied, 2 refused\n", done
    with repo.client("bob") as bob:
        bob.change_add("key:acc", 3)
    once = repo.root / "once"
    script = f"test -e '{once}' && echo 5 || {{ touch '{once}'; exit 1; }}"
    done = repo.coord("state", "own", "key:acc", "--agent", "owner", "--until-idle", "--", "sh", "-c", script)
    assert done.returncode == 1 and done.stdout == "0 changes applied\n", done
    assert "K-3 was not applied: exit code 1" in done.stderr and "`coord state changes key:acc` tells" in done.stderr


@pytest.mark.parametrize("height", [9, 12, 16, 20, 24, 40])
def test_a_small_screen_keeps_what_waits_for_a_person(world: World, height: int) -> None:
    for n in range(6):
        world.acquire(f"ag-{n}", f"f{n}.py")
        world.write(f"f{n}.py", "half\n")
    world.ask(rq.Leave(agent="ag-0", clean=False))
    world.refused(rq.Acquire(agent="bob", resources=["f3.py"]))
    world.ask(rq.RequestFile(agent="maria", resource="f2.py", reason="typo"))
    shown = [text for text, _ in dashboard.lines(world.ask(rq.Status(events=20)), 60, height)]
    assert len(shown) <= height - 1, shown
    at = next(n for n, line in enumerate(shown) if line.startswith("reviews waiting"))
    assert shown[at + 2].startswith("R-1"), shown
    for heading in ("recent", "agents", "leases"):
        last = next((n for n, line in enumerate(shown) if line.split(" ")[0] == heading), None)
        assert last is None or last + 1 < len(shown), shown


def test_what_has_no_task_is_refused_by_name(repo: Repo) -> None:
    with repo.client("ann") as ann, pytest.raises(Refusal):
        ann.review_list(task="T-1")
