"""The replay with real agents: NEW is reached byte for byte, with kills too; without coord it is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.__main__ import main
from benchmarks.replay.command import describe
from benchmarks.replay.difference import read_tree
from benchmarks.replay.driver import Asked, Result, run
from benchmarks.replay.plan_making import plan
from benchmarks.replay.scratch_repository import ScratchRepository, priorities
from coordinator.client.client import Client
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import BARE

pytestmark = pytest.mark.slow

DATA = Path(__file__).parent.parent / "data" / "replay"


def replay(old: Path, new: Path, **more: object) -> Result:
    return run(Asked(old=old, new=new, **more))  # type: ignore[arg-type]


def test_agents_carry_old_to_new_past_each_other(tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    result = replay(DATA / "old", DATA / "new", agents=4, think="lognormal:300ms", seed=3,
                    discovered=0.7, keep=keep)
    assert result.good and result.equal and result.lost_edits == 0, result
    assert result.conflicts and result.redirects_taken, result
    assert result.tasks == 16 and result.reviews == 0 and result.killed == 0
    assert 0 < result.speedup <= result.best_speedup + 0.1
    # the figures that programs rely on have these names
    assert {"lost_edits", "wall_s", "serial_s", "speedup", "best_speedup", "conflicts",
            "redirects", "reviews", "overhead_ms"} <= set(result.__struct_fields__)
    got = read_tree(keep / "repo", {".git", ".coord", "coord.toml"})
    assert got == read_tree(DATA / "new", {"__pycache__"})
    # and no write of theirs counted as one without a lease
    with Client(keep / "repo") as client:
        try:
            assert client.call(rq.Events(kind="unleased_write", limit=100)).items == []
            assert client.call(rq.Replay()).equal
        finally:
            client.call(rq.Shutdown())


@pytest.mark.parametrize("seed", [2, 6])
def test_killed_agents_leave_reviews_and_nothing_is_lost(
    releases: tuple[Path, Path], seed: int
) -> None:
    old, new = releases
    shown: list[rq.Review] = []
    result = run(
        Asked(old=old, new=new, agents=5, think="fixed:100ms", seed=seed, kill=3, discovered=0.5),
        show=shown.append,
    )
    assert result.good and result.equal, result
    assert result.killed == 3 and result.reviews >= 3
    assert all(review.files and review.task for review in shown)
    assert any("killed by signal 9" in review.summary for review in shown)


def test_without_coordination_edits_are_lost() -> None:
    result = replay(DATA / "old", DATA / "new", agents=6, think="fixed:150ms", uncoordinated=True)
    assert result.lost_edits > 0 and not result.equal and not result.coordinated
    assert len(result.lost) == result.lost_edits
    said = "\n".join(describe(result))
    assert "without coordination" in said and "  lost: R-" in said


def test_the_heaviest_chain_goes_first() -> None:
    made = plan(DATA / "old", DATA / "new", seed=1, agents=4)
    ranks = priorities(made)
    weight: dict[str, float] = {}
    for task in made.tasks:
        for path in (*task.files, *task.discovered):
            weight[path] = weight.get(path, 0) + task.think_s
    hottest = max(weight, key=lambda path: weight[path])
    first = max(made.tasks, key=lambda task: ranks[task.id])
    assert hottest in (*first.files, *first.discovered)
    assert sorted(ranks.values()) == list(range(len(made.tasks)))


def test_the_ground_is_a_repository_of_its_own(tmp_path: Path) -> None:
    with ScratchRepository(DATA / "old") as ground:
        root = ground.root
        log = subprocess.run(["git", "-C", str(root), "status", "--porcelain"],
                             capture_output=True, text=True, check=True)
        assert "??" not in log.stdout
        assert read_tree(root, {".git", "coord.toml"}) == read_tree(DATA / "old", {"__pycache__"})
    assert not root.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [({"old": Path("/nowhere")}, "not a directory"), ({"think": "soon"}, "soon"),
     ({"new": DATA / "old"}, "do not differ"), ({"agents": 0}, "at least 1")],
)
def test_what_cannot_be_replayed_is_refused(change: dict[str, object], said: str) -> None:
    asked = {"old": DATA / "old", "new": DATA / "new", **change}
    with pytest.raises(Refusal) as caught:
        run(Asked(**asked))  # type: ignore[arg-type]
    assert caught.value.code is Code.INVALID and said in caught.value.message


def test_the_demonstration_works_without_a_network(tmp_path: Path) -> None:
    # pip is shown an empty index, so that the data that comes along is used
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "demo", "--think", "lognormal:500ms"], capture_output=True, text=True,
        timeout=300, check=False, cwd=DATA.parent.parent.parent,
        env={**BARE, "PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr + done.stdout[-3000:]
    assert "tidemark" in done.stdout and "$ coord review show R-1" in done.stdout
    assert "the result equals NEW, byte for byte" in done.stdout
    left = [one for one in psutil.process_iter(["cmdline"]) if any(str(tmp_path) in word for word in one.info["cmdline"] or [])]
    assert psutil.wait_procs(left, timeout=10)[1] == [], "no coordinator outlives it"


def test_json_on_the_command_line(
    releases: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = releases
    code = main(["replay", str(old), str(new), "--agents", "3", "--think", "fixed:10ms", "--json"])
    out = json.loads(capsys.readouterr().out)
    assert code == 0 and out["lost_edits"] == 0 and out["equal"] is True
