"""The one write path, asked directly: contents and their permission bits, numbers, batches that fail."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from coordinator.files.content import digest
from coordinator.looking.facts import Bytes, Unready
from coordinator.slices.backlog.events import TaskAdded
from coordinator.slices.guard.events import UnleasedWrite
from coordinator.store import events as ev
from coordinator.store.database import open_writer
from coordinator.store.ledger import EVENTS_AT_ONCE, Ledger, Tx, View
from coordinator.words.refusals import Code, Refusal

NOW = 1_780_000_000_000
ONE, TWO = digest(b"one"), digest(b"two")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    path = tmp_path / "coord.sqlite3"
    made = Ledger(open_writer(path, synchronous="NORMAL", warm=False), path)
    yield made
    made.db.close()


def noted(n: int) -> ev.Noted:
    return ev.Noted(what=f"n{n}", facts={})


def whats(ledger: Ledger) -> list[str]:
    return [str(row[0]) for row in ledger.db.execute("SELECT data ->> 'what' FROM events ORDER BY seq")]


# ------------------------------------------------------------ contents

def test_a_content_is_open_to_no_more_people_than_any_of_its_files(ledger: Ledger) -> None:
    def keep(how: str, mode: int | None) -> Any:
        def job(tx: Tx) -> int | None:
            if how == "keep":
                tx.keep(ONE, b"one", mode)
            elif how == "stored":
                tx.keep_stored(ONE, 3, mode)
            elif how == "packed":
                tx.keep_packed(ONE, 3, zlib.compress(b"one"), mode)
            else:
                assert tx.keep_found(Bytes(ONE, b"one", 3, mode=mode))
            return tx.blob_mode(ONE)
        return ledger.run(job, NOW)

    for how in ("keep", "stored", "packed", "found"):
        assert [keep(how, mode) for mode in (None, 0o755, None, 0o640, 0o644, 0o600, 0o777, 0)] == [
            None, 0o755, 0o755, 0o640, 0o640, 0o600, 0o600, 0], how
        ledger.db.execute("DELETE FROM blobs")
        assert keep(how, 0o640) == 0o640
        ledger.db.execute("DELETE FROM blobs")


def test_what_is_kept_comes_back_and_what_is_not_is_none(ledger: Ledger) -> None:
    view = View(ledger.db, NOW)
    folder = view.blobs
    large = b"x" * 100
    folder.put(large)
    ledger.run(lambda tx: (tx.keep(ONE, b"one"), tx.keep_packed(TWO, 3, zlib.compress(b"two"), None),
                           tx.keep_stored(digest(large), 100), tx.keep_stored(digest(b"lost"), 4)), NOW)
    assert (view.blob(ONE), view.blob(TWO), view.blob(digest(large)), view.blob(digest(b"lost"))) == (b"one", b"two", large, None)
    assert view.blob(None) is None and view.source(None) is None and view.source(digest(b"?")) is None
    assert view.blob(digest(large), 99) is None and view.blob(digest(large), 100) == large
    assert view.source(digest(large)) == folder.place(digest(large)) and view.source(digest(b"lost")) is None
    sizes = dict(ledger.db.execute("SELECT hash, size FROM blobs").fetchall())
    assert sizes == {ONE: 3, TWO: 3, digest(large): 100, digest(b"lost"): 4}
    assert view.blob_mode(digest(b"?")) is None
    # One whose file was lost is kept anew; one whose file is there stays as it is
    ledger.run(lambda tx: (tx.keep(digest(b"lost"), b"lost"), tx.keep(digest(large), large)), NOW)
    assert view.source(digest(b"lost")) == b"lost" and isinstance(view.source(digest(large)), Path)


def test_what_a_look_has_found_is_kept_if_it_has_bytes(ledger: Ledger) -> None:
    def found(one: Bytes) -> Any:
        return ledger.run(lambda tx: tx.keep_found(one), NOW)

    assert not found(Bytes(None)) and not found(Bytes("unreadable")) and not found(Bytes(ONE, None, 3))
    assert not found(Bytes(ONE, b"one", 3, kept=True)), "a look says so, but it is not there"
    assert found(Bytes(ONE, b"one", 3)) and found(Bytes(ONE, None, 3)) and found(Bytes(ONE, b"one", 3, kept=True))


def test_compaction_is_told_of_all_that_is_kept_meanwhile(ledger: Ledger) -> None:
    ledger.run(lambda tx: tx.keep(digest(b"before"), b"before"), NOW)
    ledger.kept = set()
    ledger.run(lambda tx: (tx.keep(ONE, b"one"), tx.keep_stored(TWO, 3), tx.keep_packed(digest(b"3"), 1, zlib.compress(b"3"), None),
                           tx.keep(digest(b"before"), b"before")), NOW)
    assert ledger.kept == {ONE, TWO, digest(b"3"), digest(b"before")}


# ------------------------------------------------------------ numbers and the log

def test_each_number_is_given_once_even_after_a_crash(ledger: Ledger) -> None:
    def take(tx: Tx) -> tuple[int, ...]:
        return (*(tx.number("task") for _ in range(3)), tx.number("fencing"), tx.last_number("task"), tx.last_number("review"))

    def table() -> dict[str, int]:
        return dict(ledger.db.execute("SELECT name, value FROM counters WHERE value > 0").fetchall())

    assert ledger.run(take, NOW) == (1, 2, 3, 1, 3, 0) and table() == {"task": 3, "fencing": 64}
    assert ledger.run(take, NOW) == (4, 5, 6, 2, 6, 0) and table() == {"task": 6, "fencing": 64}
    again = Ledger(ledger.db, ledger.path)  # a coordinator that begins anew
    assert again.run(lambda tx: tx.last_number("fencing"), NOW) == 64
    assert again.run(take, NOW) == (7, 8, 9, 65, 9, 0) and table() == {"task": 9, "fencing": 128}
    assert [again.run(lambda tx: tx.number("fencing"), NOW) for _ in range(64)] == list(range(66, 130))
    assert table()["fencing"] == 129 + 63
    again.run(lambda tx: tx.raise_counters({"task": 5, "fencing": 300, "review": 1}), NOW)
    assert again.run(take, NOW) == (10, 11, 12, 301, 12, 1) and table() == {"task": 12, "fencing": 363, "review": 1}


@pytest.mark.parametrize("count", [1, EVENTS_AT_ONCE - 1, EVENTS_AT_ONCE, EVENTS_AT_ONCE + 1, 2 * EVENTS_AT_ONCE])
def test_events_are_appended_in_order(ledger: Ledger, count: int) -> None:
    def job(tx: Tx) -> int:
        for n in range(count):
            tx.record(noted(n))
        return tx.last_seq

    assert ledger.run(job, NOW) == count == ledger.seq == Ledger(ledger.db, ledger.path).seq
    assert whats(ledger) == [f"n{n}" for n in range(count)]
    assert ledger.run(job, NOW + 1) == 2 * count
    assert ledger.db.execute("SELECT seq, at, kind, agent, task, resource FROM events ORDER BY seq DESC LIMIT 1").fetchone() == (
        2 * count, "2026-05-28T20:26:40.001Z", "noted", None, None, None)


def test_a_transaction_knows_its_own_events_latest_first(ledger: Ledger) -> None:
    def job(tx: Tx) -> Any:
        tx.record(UnleasedWrite(resource="a", hash=None, agent="ann"))
        tx.record(noted(1))
        tx.record(UnleasedWrite(resource="b", hash=None))
        return tx.recorded_of(frozenset({"unleased_write"})), tx.recorded, tx.later(5), tx.later(5)

    found, recorded, *later = ledger.run(job, NOW)
    assert [(row.at, row.agent, row.resource) for row in found] == [("2026-05-28T20:26:40.000Z", None, "b"), ("2026-05-28T20:26:40.000Z", "ann", "a")]
    assert '"resource":"b"' in found[0].data and recorded == 3 and later == ["2026-05-28T20:26:40.005Z"] * 2


def test_somebody_else_who_wrote_is_noticed(ledger: Ledger) -> None:
    ledger.run(lambda tx: (tx.record(noted(1)), tx.number("task")), NOW)
    other = apsw.Connection(str(ledger.path))
    other.execute("INSERT INTO events VALUES (7, 'at', 'noted', NULL, NULL, NULL, '{\"what\":\"other\"}')")
    other.execute("UPDATE counters SET value = 9 WHERE name = 'task'")
    other.close()
    assert ledger.run(lambda tx: (tx.last_seq, tx.number("task")), NOW) == (7, 10)


# ------------------------------------------------------------ batches

def job(n: int, then: Exception | None = None) -> Any:
    def run(tx: Tx) -> int:
        tx.record(noted(n))
        if then is not None:
            raise then
        return n
    return run


def no(tx: Tx) -> None:
    raise Refusal(Code.INVALID, "no")


def test_one_that_fails_spoils_no_others_answer(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    late, unready = Refusal(Code.LIMIT, "late"), Unready()
    with caplog.at_level(logging.WARNING, "coord.store"):
        answers = ledger.run_all([job(1), no, job(2, ValueError("bug")), job(3), job(4, late), job(5, unready), job(6)], NOW)
    assert [answers[n] for n in (0, 3, 6)] == [1, 3, 6] and whats(ledger) == ["n1", "n3", "n6"]
    assert isinstance(answers[1], Refusal) and answers[1].message == "no" and answers[4] is late and answers[5] is unready
    assert (answers[2].code, answers[2].message) == (Code.INTERNAL, "coord met a bug (ValueError); nothing changed.")
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"] and "bug" in caplog.text
    with pytest.raises(Unready):
        ledger.run(job(7, unready), NOW)
    with pytest.raises(Refusal, match="late"):
        ledger.run(job(8, late), NOW)
    assert ledger.run(job(9), NOW) == 9 and whats(ledger) == ["n1", "n3", "n6", "n9"] and ledger.seq == 4


def test_a_refusal_that_is_returned_is_kept_with_its_events(ledger: Ledger) -> None:
    def kept(tx: Tx) -> Refusal:
        tx.record(noted(1))
        return Refusal(Code.LOCKED, "in line")

    with pytest.raises(Refusal, match="in line"):
        ledger.run(kept, NOW)
    assert whats(ledger) == ["n1"]


def test_a_disk_that_refuses_is_told_to_each(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    failing = [3]

    def trace(cursor: Any, statement: str, bindings: Any) -> bool:
        if statement.startswith("INSERT INTO events") and failing[0]:
            failing[0] -= 1
            raise apsw.FullError("injected")
        return True

    ledger.db.exec_trace = trace
    with caplog.at_level(logging.WARNING, "coord.store"):
        answers = ledger.run_all([job(1), job(2), job(3)], NOW)
    assert [getattr(answer, "code", answer) for answer in answers] == [Code.STORAGE, Code.STORAGE, 3]
    assert answers[0].message == f"Nothing was changed: the disk is full ({ledger.path})."
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "ERROR"]
    assert whats(ledger) == ["n3"] and not ledger.db.in_transaction and ledger.seq == 1


def test_only_what_was_recorded_is_told_of_and_a_teller_that_fails_is_no_harm(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[int] = []
    ledger.on_commit = lambda effects: told.append(len(effects.kinds()))
    ledger.run_all([no, lambda tx: 1], NOW)
    ledger.run_all([job(1), no, job(2)], NOW)
    assert told == [2]

    def fails(tx: Tx) -> None:
        raise ValueError("teller")

    ledger.on_commit = fails
    assert ledger.run(job(3), NOW) == 3 and "teller" in caplog.text


# ------------------------------------------------------------ rights that ended

def test_a_look_has_to_be_younger_than_the_last_end_of_a_right(ledger: Ledger) -> None:
    def age(kind: str, scope: str, seen: int = 1) -> Any:
        def job(tx: Tx) -> int:
            tx.looked.oldest = seen
            return tx.ended_since(kind, scope)
        return job

    def frees(tx: Tx) -> int:
        tx.looked.oldest = 1
        tx.free("a", "file", "p/a/")
        tx.record(noted(1))
        return tx.ended_since("file", "p/a/")

    ledger.run(job(0), NOW)
    assert ledger.run(age("file", "p/a/"), NOW) == 0
    asked = [age("file", "p/a/"), age("file", "p/b/"), age("dir", "p/"), age("file", "p/a/", 2)]
    assert ledger.run_all([frees, *asked], NOW) == [0, 2, 0, 2, 0], "what a job ends itself, it ends after its look"
    assert ledger.run_all(asked, NOW) == [2, 0, 2, 0], "and so it is after the commit"
    assert ledger.run_all([no, job(1)], NOW)[1] == 1 and ledger.run_all(asked, NOW) == [2, 0, 2, 0]
    assert ledger.run(lambda tx: (tx.free("b", "dir", "p/b/"), tx.freed), NOW)[1] == [("b", "dir", "p/b/")]
    assert ledger.run(age("file", "p/b/x/"), NOW) == 3


def test_tasks_that_nothing_holds_up_are_offered_again(ledger: Ledger) -> None:
    def added(n: int) -> ev.Event:
        return TaskAdded(task=f"T-{n}", n=n, title="t", prompt="", priority=0, state="ready", attempts_max=1, resources=[], after=[])

    lease = ev.LeaseGranted(fencing_token=1, resource="b", agent="ann", expires_at="e", lease_kind="file", mode="exclusive", scope="p/b/",
                            acquisition_id="A-1", ttl_ms=1, max_until="m")

    def parked() -> list[Any]:
        return ledger.db.execute("SELECT task_id, parked_on FROM ready_tasks ORDER BY n").fetchall()

    def park(tx: Tx) -> tuple[int, int, int]:
        for n in (1, 2, 3):
            tx.record(added(n))
        tx.record(lease)
        before = tx.present().parked
        tx.park("T-1", "p/a/")
        tx.park("T-2", "p/a/")
        tx.park("T-3", "p/b/")
        return before, tx.present().parked, tx.present().waiters

    def offer(tx: Tx) -> bool:
        tx.offer_parked_on_nothing()
        return tx.effects.offers

    assert ledger.run(park, NOW) == (0, 1, 0)
    assert parked() == [("T-1", "p/a/"), ("T-2", "p/a/"), ("T-3", "p/b/")]
    assert ledger.run(offer, NOW) is True and parked() == [("T-1", None), ("T-2", None), ("T-3", "p/b/")]
    assert ledger.run(offer, NOW) is False
    ledger.run(lambda tx: tx.free("b", "file", "p/b/"), NOW)
    assert parked()[2] == ("T-3", None)
