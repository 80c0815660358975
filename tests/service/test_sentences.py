"""Each kind of event as the sentence that people read; the archive and the log as they are asked."""

from __future__ import annotations

import json

import msgspec
import pytest

from coordinator.kernel.event_sentences import make_event_reply, tell_event
from coordinator.store import events as ev
from coordinator.store.events import SENTENCES
from coordinator.store.ledger import Tx
from coordinator.store.rows import LogRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.golden import assert_golden, said
from tests.world import World

AT = "2026-05-28T20:26:40.123Z"
#: Event -> what is left of it when it is told with all its words, and with few.
TOLD: list[dict[str, object]] = [
    {"kind": "agent_registered", "agent": "ann"},
    {"kind": "agent_state", "agent": "ann", "state": "stale", "reason": "silent"},
    {"kind": "lease_granted", "agent": "ann", "resource": "a", "mode": "shared", "fencing_token": 3, "expires_at": AT},
    {"kind": "lease_granted", "agent": "ann", "resource": "a", "mode": "shared", "fencing_token": 3, "expires_at": None},
    {"kind": "lease_granted"},
    {"kind": "lease_released", "agent": "ann", "resource": "a", "by": "eve"},
    {"kind": "lease_released", "agent": "ann", "resource": "a"},
    {"kind": "acquisition_refused", "agent": "bob", "resources": ["a", "b", "c", "d", "e"], "holders": ["ann", 1], "redirect": "T-2"},
    {"kind": "acquisition_refused", "agent": "bob", "resources": [], "holders": ["ann"], "redirect": None},
    {"kind": "unlock_asked", "agent": "bob", "holder": "ann", "resource": "a", "request": "U-1", "reason": "need\nit " + "x" * 600},
    {"kind": "unlock_answered", "request": "U-1", "agent": "bob", "resource": "a", "status": "approved", "by": "eve", "override": True,
     "answer": "yes\u202e " + "y" * 600},
    {"kind": "unlock_answered", "request": "U-1", "agent": "bob", "resource": "a", "status": "rejected", "by": "ann", "override": False, "answer": ""},
    {"kind": "task_added", "task": "T-1", "title": "do \"it\"\nnow"},
    {"kind": "task_changed", "task": "T-1", "state": "done", "agent": "ann", "why": "it was easy"},
    {"kind": "task_changed", "task": "T-1", "state": "ready", "agent": None, "why": ""},
    {"kind": "verdict_ended", "what": "revert", "review": "R-1", "outcome": "taken back", "why": "a was not written."},
    {"kind": "verdict_ended", "what": "revert", "review": "R-1", "outcome": "done"},
    {"kind": "target_moved", "target": "main", "before": "0123456789abcdef", "after": "fedcba9876543210", "why": "landed"},
    {"kind": "noted", "what": "a sweep", "facts": {"lapsed": 2, "reviews": ["R-1"]}},
    {"kind": "noted", "what": " started ", "facts": {}},
    {"kind": "something_new", "agent": "ann", "expires_at": 7},
]


def row(data: dict[str, object]) -> LogRow:
    return LogRow(7, AT, str(data["kind"]), "ann", "T-1", "a", json.dumps(data))


def test_each_event_as_a_sentence() -> None:
    lines = []
    for data in TOLD:
        told = make_event_reply(row(data))
        assert (told.seq, told.at, told.kind, told.agent, told.task, told.resource, told.data) == (
            7, AT, data["kind"], "ann", "T-1", "a", data)
        assert tell_event(row(data)) == f"2026-05-28T20:26:40Z {told.text}"
        lines.append(f"{data['kind']}: {told.text}")
    assert_golden("sentences.txt", "\n".join(lines))
    assert set(SENTENCES) == set(ev.KIND_OF.values())
    for kind in ev.KIND_OF:  # and each is told with what it has
        fields = dict.fromkeys(kind.__struct_fields__, "x" * 20)
        text = tell_event(row({"kind": ev.KIND_OF[kind], **fields, "facts": {}, "delta_ms": 1}), stamp=False)
        assert "?" not in text and text.strip() and "{" not in text


def test_the_log_is_read_in_pages_from_either_end(world: World) -> None:
    for n in range(5):
        world.task(f"t{n}", f"f{n}")
    world.acquire("ann", "a")
    last = world.ledger.seq

    def asked(**more: object) -> tuple[list[int], int | None]:
        found = world.ask(rq.Events(**more))  # type: ignore[arg-type]
        return [one.seq for one in found.items], found.next

    every = list(range(1, last + 1))
    assert asked(limit=last) == (every, None) and asked(limit=last - 1) == (every[:-1], last - 1)
    assert asked(limit=2) == ([1, 2], 2) and asked(limit=2, after=2) == ([3, 4], 4)
    assert asked(limit=2, tail=True) == (every[-2:], None) and asked(limit=2, after=last) == ([], None)
    assert asked(limit=100, task="T-2")[0] == [2] and asked(limit=100, resource="a")[0] == [last]
    assert asked(limit=100, kind="task_added")[0] == every[:5] and asked(limit=100, agent="ann")[0] == every[5:]
    assert len(world.ask(rq.Status(events=2)).events) == 2 and world.ask(rq.Status(events=0)).events == []
    assert world.ask(rq.Replay()) == rq.ReplayResult(events=last, equal=True, differences=[])
    world.db.execute("UPDATE tasks SET title = 'forged' WHERE task_id = 'T-1'")
    world.checked = False
    answer = world.ask(rq.Replay())
    assert answer.events == last and not answer.equal
    assert len(answer.differences) == 2 and "only in the database" in answer.differences[0] and "forged" in answer.differences[0]
    assert answer.differences[1].startswith("tasks: only in the replay: ('T-1',")


def test_the_archive_is_asked(world: World) -> None:
    folder = world.root / "context_archive"
    folder.mkdir()
    (folder / "a.md").write_text("---\npaths: [src/pay/, b.py]\n---\n# One\n\nAbout lettuce.\n\n## Two\n\nAbout lettuce and salt.\n")
    (folder / "bad.md").write_text("---\npaths: 7\n---\n# Bad\n\nAbout pepper.\n")
    text = ""

    def told(case: str, request: rq.Request[object]) -> None:
        nonlocal text
        try:
            text += f"{case}\n  {msgspec.json.encode(world.ask(request)).decode()}\n\n"
        except Refusal as refusal:
            text += said(case, refusal)

    told("first", rq.ArchiveIndexNow())
    told("found", rq.ArchiveSearch(query="lettuce"))
    told("one", rq.ArchiveSearch(query="lettuce", limit=1))
    told("none is not a number of them", rq.ArchiveSearch(query="lettuce", limit=0))
    told("nothing", rq.ArchiveSearch(query="turnip"))
    for ref in ("1", "Two", "a.md", "turnip", "x" * 501):
        told(f"section {ref[:9]}", rq.ArchiveShow(ref=ref))
    (folder / "a.md").write_text("# One\n\nAbout turnip.\n")
    (folder / "bad.md").unlink()
    told("changed", rq.ArchiveIndexNow())
    assert_golden("archive.txt", text)


def test_the_story_of_each_subject(world: World) -> None:
    world.task("first", "a")
    world.acquire("ann", "a")
    world.ask(rq.RequestFile(agent="bob", resource="a", reason="I need it"))
    world.refused(rq.Acquire(agent="cyd", resources=["b", "a"]))
    text = ""
    for subject in ("T-1", " t-1 ", "U-1", "u-1", "ann", "a", "./a", "absent"):
        story = world.ask(rq.Explain(subject=subject))
        text += "\n".join([f"{subject!r}: {story.subject}", *story.sentences, "", ""])
    assert world.refused(rq.Explain(subject="../x")).code is Code.OUTSIDE_REPO
    text = text.replace(str(world.root), "ROOT").replace(str(world.root.parent), "FOLDER")
    assert_golden("stories.txt", text)


@pytest.mark.parametrize(("digest", "said"), [("sha256:1", "ann wrote a.py"), (None, "ann deleted a.py")])
def test_who_wrote_a_file_last_is_told_though_nothing_else_is(world: World, digest: str | None, said: str) -> None:
    def seen(tx: Tx) -> None:
        tx.record(ev.VersionsSeen(versions=[("a.py", digest, "ann"), ("b.py", digest, None)]))

    world.decide(seen)
    (line,) = world.ask(rq.Explain(subject="a.py")).sentences
    assert line.endswith(f"Z {said}")
    assert world.ask(rq.Explain(subject="b.py")).sentences == ["The log tells nothing of b.py."]
    world.clock.advance(1_000)
    world.acquire("ann", "a.py")
    assert "got a.py" in world.ask(rq.Explain(subject="a.py")).sentences[-1], "it was before that"
    world.clock.advance(1_000)
    world.decide(seen)
    assert "got a.py" in world.ask(rq.Explain(subject="a.py")).sentences[-2]
    assert world.ask(rq.Explain(subject="a.py")).sentences[-1].endswith(f"Z {said}")
