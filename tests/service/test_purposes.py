"""What coord decides about a lease follows from its purpose, never from a text for people."""

from __future__ import annotations

import hashlib
import shutil
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator.settings import Settings, Strategies
from coordinator.slices.guard import git_turns
from coordinator.store import rebuild
from coordinator.store.database import in_memory
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.sessions import Session
from tests.world import World

#: Fields of events in which a text for people stands.
SAID = ("description", "reason", "note", "why", "text", "summary", "progress", "title", "result")
FUNCTION = "def f():\n    return %s\n\n\ndef g():\n    return 2\n"


@pytest.fixture(scope="module")
def coords_own(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], list[Any]]:
    """Every text that coord writes in the story below, with its field, and who holds what in it."""
    world = made(tmp_path_factory.mktemp("neutral"))
    held = story(world, "a text of nobody's")
    texts = {
        value: name for (data,) in world.db.execute("SELECT data FROM events")
        for name, value in reversed(msgspec.json.decode(data).items())
        if name in SAID and isinstance(value, str) and value
    }
    world.close()
    return texts, held


def made(folder: Path) -> World:
    world = World(folder / "repo", Settings(strategies=Strategies(by_glob={"docs/**": "optimistic"}, losses_max=1)))
    world.checked = False  # the same states are held against the invariants in a hundred tests
    return world


def story(world: World, text: str) -> list[Any]:
    """All that ends a lease by itself, with this text in every field that a client fills: who holds what after each step."""
    for name, content in (("a.py", FUNCTION % 1), ("docs/a.md", "one\n"), (".gitignore", "*.log\n"), ("debug.log", "1\n"), ("notes.md", "x\n")):
        world.write(name, content)
    line = " ".join(text.split())[:200]
    steps: list[Any] = []

    def after(step: str) -> None:
        steps.append((step, sorted((row.file_path, row.locked_by, row.mode, row.expires_at) for row in world.live())))
        steps.append([(row[1], row[0]) for row in world.db.execute("SELECT acquisition_id, agent FROM waiters ORDER BY 1")])

    token = world.ask(rq.Register(agent="pat", description=line, profile="claude-code")).token
    world.ask(rq.Heartbeat(agent="pat", progress=line), token)
    hooked = Session(world, "ann")
    hooked.read("docs/a.md")
    ann = hooked.name
    world.acquire(ann, "git:index", description=line)
    world.decide(lambda tx: git_turns.take(world.service, tx, ann, [("git commit", None)]))
    world.decide(lambda tx: git_turns.end(tx, ann))
    after("git's turn")
    world.ask(rq.Release(agent=ann, resources=["git:index"]))
    world.decide(lambda tx: git_turns.take(world.service, tx, ann, [("git commit", None)]))
    world.decide(lambda tx: git_turns.end(tx, ann))
    after("git's turn alone")
    task = world.task(line, "held.py", prompt=text)
    world.ask(rq.TaskClaim(agent="pat", task=task), token)
    after("claimed")
    for name in ("notes.md", "debug.log", "docs/kept.md", "a.py::f"):
        world.acquire(ann, name, description=line)
    world.ask(rq.CommitRegion(agent=ann, regions=[rq.RegionText(resource="a.py::f", text="def f():\n    return 3\n")]))
    after("a commit of regions")
    world.ask(rq.Propose(agent=ann, note=line, changes=[rq.ProposedChange(resource="new.md", content="x\n")]))
    after("a proposal")
    hooked.shell("echo 1 > other.log", {"other.log": "1\n"})
    after("a command")
    hooked.edit("docs/a.md", "two\n")
    after("an optimistic write")
    waiting = world.refused(rq.Acquire(agent="bob", resources=["notes.md"], description=line)).facts["acquisition_id"]
    question = world.ask(rq.RequestFile(agent="bob", resource="a.py::f", reason=text))
    after("two wait")
    late = [rq.ProposedChange(resource="docs/a.md", version=sha(text), content="won\n") for text in ("one\n", "two\n")]
    world.refused(rq.Propose(agent="bob", note=line, changes=late[:1]))
    world.settle()
    after("lost too often")
    world.ask(rq.Propose(agent="bob", note=line, changes=late[1:]))
    after("won")
    world.ask(rq.RequestAnswer(request=question.request, agent=ann, answer=text, verdict="reject"))
    world.ask(rq.Release(agent=ann, resources=["notes.md"]))
    world.settle()
    after(f"{waiting} is served")
    world.ask(rq.TaskFail(agent="pat", task=task, reason=text), token)
    world.ask(rq.Leave(agent="pat", reason=text), token)
    after("left")
    return steps


def sha(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def assert_none_counts(folder: Path, texts: list[str], held: list[Any]) -> None:
    for n, text in enumerate(texts):
        world = made(folder / str(n))
        assert story(world, text) == held, text
        assert world.replay_differs() == []
        world.close()
        shutil.rmtree(folder / str(n))


def test_no_description_changes_who_holds_what(tmp_path: Path, coords_own: tuple[dict[str, str], list[Any]]) -> None:
    texts, held = coords_own
    descriptions = [text for text, field in texts.items() if field == "description"]
    assert {"writes C-2", "Bash by its hook", "it has lost its writes too often", "git commit"} <= set(descriptions)
    assert_none_counts(tmp_path, [*descriptions, "writes C-1", "changed by its command", "launched by run x"], held)


@pytest.mark.slow
def test_no_other_text_changes_who_holds_what(tmp_path: Path, coords_own: tuple[dict[str, str], list[Any]]) -> None:
    texts, held = coords_own
    others = [text for text, field in texts.items() if field != "description"]
    assert len(others) > 10
    assert_none_counts(tmp_path, others, held)


def test_a_registered_name_is_no_label_or_session_whatever_it_says(world: World) -> None:
    world.ask(rq.Register(agent="manual", profile="manual", description="acted for by a person"))
    world.ask(rq.Register(agent="claude-code-s1", profile="claude-code", description="a session of claude-code"))
    assert world.refused(rq.Register(agent="manual")).code is Code.NAME_TAKEN
    assert world.refused(rq.Join(profile="claude-code", session="s1")).code is Code.UNAUTHORIZED


def test_what_was_taken_for_it_stays_once_its_holder_asks_for_it(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.write("docs/a.md", "one\n")
    ann = Session(world, "ann")
    ann.call("Write", {"file_path": str(world.root / "docs/a.md"), "content": "two\n"})
    (taken,) = world.ask(rq.Locks()).items
    assert taken.purpose == "hook:Write"
    assert world.acquire(ann.name, "docs/a.md").leases[0].purpose == "asked"
    ann.edit("docs/a.md", "two\n")
    (kept,) = world.ask(rq.Locks()).items
    assert (kept.fencing_token, kept.purpose) == (taken.fencing_token, "asked") and world.replay_differs() == []
    world.close()


def test_older_rows_are_read_once(world: World) -> None:
    """From their texts, in the state, in the log and in a snapshot: all three give the same."""
    world.write("a.py", FUNCTION % 1)
    task = world.task("do it", "held.py")
    world.ask(rq.TaskClaim(agent="pat", task=task))
    world.acquire("ann", "b.py", description="mine")
    hooked = Session(world, "ann")
    hooked.call("Write", {"file_path": str(world.root / "c.py"), "content": "x\n"})
    world.refused(rq.Acquire(agent="bob", resources=["b.py"], description="Edit by its hook"))
    before = {name: world.rows()[name] for name in ("file_locks", "agents", "waiters")}
    assert {row[-1] for row in before["agents"]} == {"person", "session"}
    assert {row[-1] for row in before["file_locks"]} == {"claim", "asked", "hook:Write"}
    body = rebuild.snapshot(world.db, world.db.execute("SELECT max(seq) FROM events").get)
    world.engine.close()
    for column in ("file_locks.purpose", "waiters.purpose", "agents.origin"):
        table, name = column.split(".")
        world.db.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
    world.db.execute("UPDATE events SET data = json_remove(data, '$.purpose', '$.origin')")
    world.db.execute("DROP INDEX tasks_by_rank; CREATE INDEX tasks_by_state ON tasks (state, n);"
                     "DROP TABLE waypoints; DROP TABLE landings")
    world.db.execute("PRAGMA user_version = 26")
    world.db.close()
    world.open()
    # (The one that was asked for by a text that meant a hook is taken for a hook's, once.)
    before["waiters"] = [(*row[:-1], "hook:Edit") for row in before["waiters"]]
    assert {name: world.rows()[name] for name in before} == before and world.replay_differs() == []
    older = msgspec.json.decode(zlib.decompress(body))
    for name in before:
        older[name] = [row[:-1] for row in older[name]]
    fresh = in_memory()
    rebuild.restore_into(fresh, zlib.compress(msgspec.json.encode(older)))
    assert {name: rebuild.state(fresh)[name] for name in before} == before
