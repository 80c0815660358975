"""The whole state, held against the invariants: after every commit of any test that has a `World`.

Judged by plain arithmetic over the rows and the disk, as far as possible not by the code under
test. What a commit leaves to be done (waiters that are about to be served) is looked at when that
is done (`assert_settled`).
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from coordinator.rules.globs import overlaps
from coordinator.rules.leases import TREE, as_resource
from coordinator.store import events as ev
from coordinator.store.database import in_memory
from coordinator.store.ledger import Tx
from coordinator.store.rebuild import state
from coordinator.store.rows import LeaseRow, PlaceRow, WaiterRow
from coordinator.store.writer_cache import Present
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import path_scope

if TYPE_CHECKING:
    from tests.world import World

#: States of more rows than this are compared with the replay only now and then.
ROWS_MAX = 300
EVERY = 40
#: Fields of events that people and models read.
WORDS = ("text", "summary", "reason", "why", "what", "description")


@cache
def _empty() -> bytes:
    """A database with nothing in it: to read it is faster than to make it."""
    return bytes(in_memory().serialize("main"))


class Shadow:
    """The state as the log gives it, kept beside the database event by event."""

    def __init__(self) -> None:
        self._db = apsw.Connection(":memory:")
        self._db.deserialize("main", _empty())
        self._seq = 0
        self._commits = 0

    def assert_equal(self, db: apsw.Connection) -> None:
        rows = db.execute("SELECT seq, at, data FROM events WHERE seq > ? ORDER BY seq",
                          (self._seq,)).fetchall()
        for seq, at, data in rows:
            assert seq == self._seq + 1, f"the log has no event {self._seq + 1}"
            event = ev.ANY.decode(data)
            event.apply(self._db, at)
            for field in WORDS:
                assert "None" not in (getattr(event, field, None) or ""), f"{field} of {event}"
            self._seq = seq
        self._commits += 1
        if self._seq > ROWS_MAX and self._commits % EVERY:
            return
        have, made = state(db), state(self._db)
        for table in have:
            assert have[table] == made[table], f"{table} is not what the log gives"


def _carried_rows_are_the_databases(world: World) -> None:
    """What is carried in memory from commit to commit is what the database says."""
    for carried in world.ledger._cache.agents.values():
        row = world.view().agent(carried.agent)
        assert row == carried, f"{carried} is carried, and there is {row}"


def _is_unasked(lease: LeaseRow) -> bool:
    return lease.purpose == "adopted" or (lease.purpose.startswith("hook:") and not lease.purpose.startswith("hook:*"))


def _are_two_files(one: LeaseRow, two: LeaseRow) -> bool:
    """Two copies in two working trees, which hooks have taken and nobody has asked for (invariant 10)."""
    return (one.kind != "key" and one.worktree != two.worktree and _is_unasked(one) and _is_unasked(two)
            and (one.inode is None or one.inode != two.inode))


def assert_sound(world: World) -> None:
    """What must hold after every commit."""
    db = world.db
    now = world.view().now
    _carried_rows_are_the_databases(world)
    live = world.live()
    for at, one in enumerate(live):
        for two in live[at + 1:]:
            if _are_two_files(one, two):
                continue
            if one.locked_by != two.locked_by and not one.mode == two.mode == "shared":
                assert not overlaps(_resource(one), _resource(two)), f"{one} and {two}"
            elif one.locked_by != two.locked_by and one.agreed_as != two.agreed_as:
                assert not overlaps(_resource(one), _resource(two)), f"who writes {one} has not agreed with {two}"
    for one in live:
        if one.slot.startswith(TREE) and "\n" in one.slot and not _is_unasked(one):
            beside = {row.locked_by for row in live if (row.scope, row.kind, row.file_path, row.mode) == (
                one.scope, one.kind, one.file_path, "exclusive")}
            assert one.mode == "shared" or beside == {one.locked_by}, f"{one} is a further copy of what {beside} hold"
    copies = [(one.scope, one.kind, one.file_path, one.locked_by, one.mode, one.worktree) for one in live if one.kind != "key"]
    assert len(copies) == len(set(copies)), f"one holder has a lease twice in one working tree: {sorted(copies, key=str)}"
    for turn in live:
        for one in live if turn.scope.startswith("k/git/index/") else ():
            if one.kind != "key" and turn.worktree == one.worktree and not one.mode == turn.mode == "shared":
                assert _family(db, one.locked_by) & _family(db, turn.locked_by), f"{one} while git changes the tree: {turn}"
    _new_grants_on_disk(world, live)
    _parked_tasks_have_blockers(db)
    _tasks_follow_what_they_come_after(db)
    _counters_are_above(db)
    for agent, in db.execute(
        "SELECT claimed_by FROM tasks WHERE state = 'claimed' AND claimed_by NOT IN "
        "(SELECT agent FROM agents WHERE state <> 'gone')"
    ):
        raise AssertionError(f"{agent} has left and has a claim")
    for name, in db.execute(
        "SELECT acquisition_id FROM waiters WHERE agent NOT IN "
        "(SELECT agent FROM agents WHERE state <> 'gone')"
    ):
        raise AssertionError(f"{name} waits for an agent that has left")
    for row in db.execute(
        "SELECT fencing_token, locked_by FROM file_locks WHERE locked_by NOT IN "
        "(SELECT agent FROM agents WHERE state <> 'gone') AND locked_by NOT LIKE 'coord/%'"
    ):
        raise AssertionError(f"{row} is held by an agent that has left")
    for row in db.execute("SELECT fencing_token, expires_at, max_until FROM file_locks "
                          "WHERE locked_at > ?", (now,)):
        raise AssertionError(f"{row} begins later than now")
    for row in db.execute("SELECT fencing_token, path FROM baselines WHERE fencing_token NOT IN "
                          "(SELECT fencing_token FROM file_locks)"):
        raise AssertionError(f"{row} is of no lease")
    world.shadow.assert_equal(db)


def _family(db: apsw.Connection, agent: str) -> set[str]:
    return {agent, *(name for name, in db.execute("SELECT parent FROM agents WHERE agent = ? AND parent IS NOT NULL", (agent,)))}


def assert_settled(world: World) -> None:
    """What must hold when nothing is left to be done: whoever waits has something in its way."""
    view = world.view()
    leases = [LeaseRow(*row) for row in world.db.execute("SELECT * FROM file_locks")]
    waiters = {
        row[0]: WaiterRow(*row) for row in world.db.execute(
            "SELECT acquisition_id, agent, mode, priority, asked_at, until, held, ttl_ms, task_id, "
            "description FROM waiters")
    }
    wants = {name: [as_resource(row.name, row.kind, row.scope) for row in view.each(PlaceRow, "waiter_places_of", name)]
             for name in waiters}
    met = dict(world.db.execute("SELECT acquisition_id, met FROM waiters").fetchall())
    aside = {row[0] for row in world.db.execute(
        "SELECT subject FROM set_aside WHERE what = 'waiter'")}
    for name, waiter in waiters.items():
        if waiter.until <= view.now or name in aside:
            continue
        held = any(
            lease.locked_by != waiter.agent
            and ("exclusive" in (lease.mode, waiter.mode) or lease.agreed_as is not None)
            and (overlaps(_resource(lease), want) or lease.scope == met[name]
                 or (want.scope.startswith("k/git/index/") and lease.kind != "key"))
            for lease in leases for want in wants[name]
        )
        behind = any(
            other != name and waiters[other].agent != waiter.agent
            and any(overlaps(mine, theirs) for mine in wants[name] for theirs in wants[other])
            for other in waiters
        )
        closed = any(overlaps(_file(world, path), want) for path in _kept_nowhere(world)
                     for want in wants[name])
        assert held or behind or closed or world.settings.review.quarantine, (
            f"{waiter} waits for nothing")
    _somebody_can_go_on(world, leases, [want for some in wants.values() for want in some])


def _somebody_can_go_on(world: World, leases: list[LeaseRow], waited_for: list[Any]) -> None:
    """Where all ready tasks are parked, each has something in its way that is not one of them: else
    they would wait for each other for ever."""
    db = world.db
    if db.execute("SELECT 1 FROM ready_tasks WHERE parked_on IS NULL").fetchall():
        return
    reviews = db.execute(
        "SELECT f.path, (SELECT t.task_id FROM tasks t WHERE t.partial = v.review_id "
        "  AND t.state IN ('ready', 'failed')) AS owner FROM review_files f "
        "JOIN reviews v USING (review_id) WHERE v.state = 'open' "
        "OR (v.state = 'reassigned' AND owner IS NOT NULL)").fetchall()
    for task, parked_on in db.execute(
        "SELECT task_id, parked_on FROM ready_tasks WHERE parked_on <> '!aside'").fetchall():
        wants = [as_resource(*row) for row in db.execute(
            "SELECT name, kind, scope FROM task_resources WHERE task_id = ?", (task,))]
        in_the_way = [_resource(lease) for lease in leases] + waited_for
        in_the_way += [_file(world, path) for path, owner in reviews if owner != task]
        met = any(lease.scope == parked_on for lease in leases)  # under another name, perhaps
        assert met or any(overlaps(want, other) for want in wants for other in in_the_way), (
            f"{task} is parked on {parked_on}, and nothing is in its way")


def _file(world: World, path: str) -> Any:
    return as_resource(path, "file", path_scope(path, world.service.fold_case))


def _kept_nowhere(world: World) -> list[str]:
    """Files whose partial work is open to a verdict and lies only where it was done."""
    return [row[0] for row in world.db.execute(
        "SELECT path FROM review_files JOIN reviews USING (review_id) WHERE kept = 0 "
        "AND state <> 'kept' AND state <> 'reverted' AND flagged_hash NOT IN "
        "(SELECT hash FROM blobs)")]


def assert_well_said(refusal: Refusal) -> None:
    """A refusal is one of the catalogue, says what happened in a sentence, and what to do next."""
    assert isinstance(refusal.code, Code), refusal
    for text in (refusal.message, refusal.next or "Do it."):
        assert isinstance(text, str) and text.strip() == text and text, refusal
        assert "None" not in text, text
    assert refusal.message.endswith((".", ")", "?", "`", "\"")) or refusal.code is Code.INVALID, refusal.message
    body = msgspec.json.decode(msgspec.json.encode(refusal.body()))
    again = Refusal.from_body(body.get("error", body))
    assert (again.code, again.message) == (refusal.code, refusal.message)


def assert_circles_told(world: World, request: rq.Request[Any], refusal: Refusal) -> None:
    """Who is refused is told of the circle that it is in, and one alone gives way. (Circles through
    the line, sub-agents or other names of a file are told, too, and not looked for here.)"""
    if not isinstance(request, rq.Acquire) or "give_way" not in refusal.facts:
        return
    agent, told = request.agent, refusal.facts
    circle = {agent, *told["deadlock"]} if told["deadlock"] else set()
    assert (told["victim"] in circle) if circle else (told["victim"] is None and not told["give_way"]), told
    assert told["give_way"] == (told["victim"] == agent) or "for whom you work" in refusal.message, told
    if told["give_way"]:
        assert str(refusal.next).startswith("coord "), refusal
        assert told["redirect"] is None
    view = world.view()
    waits: dict[str, set[str]] = {}
    live = world.live()
    for name, kind, scope, waiter, mode in world.db.execute(
        "SELECT name, kind, scope, agent, mode FROM waiters JOIN waiter_resources USING (acquisition_id) "
        "WHERE until > ?", (view.now,),
    ).fetchall():
        for lease in live:
            if lease.locked_by != waiter and ("exclusive" in (lease.mode, mode) or lease.agreed_as) and overlaps(
                    as_resource(name, kind, scope), _resource(lease)):
                waits.setdefault(waiter, set()).add(lease.locked_by)
    met, todo = set[str](), [agent]
    while todo:
        todo += (new := waits.get(todo.pop(), set()) - met)
        met |= new
    assert agent not in met or circle, f"{agent} is in a circle, and was not told: {waits}"


def assert_well_answered(world: World, request: rq.Request[Any], answer: Any) -> None:
    """An answer has the shape that its request promises; leases are told as they are."""
    shape = type(request).reply_shape()
    again = msgspec.json.decode(msgspec.json.encode(answer), type=shape)
    assert again == answer, f"{again} and {answer}"
    told = answer.leases if isinstance(answer, rq.Acquired | rq.Renewed | rq.Claimed) else (
        answer.items if isinstance(answer, rq.LockList) else [])
    live = {row.fencing_token: row for row in world.live()} if told else {}
    for one in told:
        row = live.get(one.fencing_token)
        if row is None:  # so short that it has ended, or it was passed on at once
            continue
        assert (one.resource, one.kind, one.mode, one.locked_by, one.locked_at, one.expires_at) == (
            row.file_path, row.kind, row.mode, row.locked_by, row.locked_at, row.expires_at)
        assert (one.task, one.description, one.content_hash) == (
            row.task_id, row.task_description, row.content_hash)
        seal = world.service.seal(one.fencing_token)
        assert one.lease_token == (None if isinstance(answer, rq.LockList) else seal)


def assert_none_overlooked(tx: Tx) -> None:
    """What a transaction carries of who waits and the like leaves nobody out. (It may say that
    somebody is there who has gone in the same transaction: then one looks in vain.)"""
    carried, there = tx.present(), tx.first(Present, "presence")
    for name in Present.__struct_fields__:
        assert getattr(carried, name) or not getattr(there, name), (name, carried, there)


def _resource(lease: LeaseRow) -> Any:
    return as_resource(lease.file_path, lease.kind, lease.scope)


def _new_grants_on_disk(world: World, live: list[LeaseRow]) -> None:
    """A lease is never granted on a file that another holds under another name."""
    fresh = {row.fencing_token for row in live if row.fencing_token > world.checked_token}
    if not fresh:
        return
    world.checked_token = max(fresh)
    named = [row for row in live if row.kind == "file"]
    files: dict[tuple[int, int], LeaseRow] = {}
    for row in sorted(named, key=lambda row: row.fencing_token in fresh):
        where = world.service.where(row.worktree, row.file_path)
        try:
            if os.path.realpath(where) != where or not os.path.isfile(where):
                continue  # it became a link since: its lease follows with the next sweep
            found = os.stat(where)
        except OSError:  # swapped by the test itself while this looked: EINVAL of a readlink, too
            continue
        other = files.setdefault((found.st_dev, found.st_ino), row)
        if row.goes_with and not str(other.inode).startswith(f"{found.st_dev}:{found.st_ino}:"):
            continue  # its own file has moved; a hard link of it was moved over the other's before
        if row.fencing_token in fresh and other.locked_by != row.locked_by:
            assert other.mode == row.mode == "shared", f"{other} and {row} are one file"


def _parked_tasks_have_blockers(db: apsw.Connection) -> None:
    for task, scope in db.execute(
        "SELECT task_id, parked_on FROM ready_tasks r WHERE parked_on IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM file_locks l WHERE l.scope = r.parked_on "
        "  OR (r.parked_on LIKE 'k/key/pool/%' AND l.scope LIKE r.parked_on || '%')) "
        "AND NOT EXISTS (SELECT 1 FROM waiter_resources w WHERE w.scope = r.parked_on "
        "  OR (r.parked_on LIKE 'k/key/pool/%' AND w.scope LIKE r.parked_on || '%')) "
        "AND NOT EXISTS (SELECT 1 FROM reviews v WHERE '!' || v.review_id = r.parked_on "
        "  AND (v.state = 'open' OR (v.state = 'reassigned' AND EXISTS (SELECT 1 FROM tasks t "
        "       WHERE t.partial = v.review_id AND t.state IN ('ready', 'failed'))))) "
        "AND NOT EXISTS (SELECT 1 FROM set_aside s WHERE s.what = 'task' "
        "                AND s.subject = r.task_id AND r.parked_on = '!aside')"
    ):
        best = db.execute("SELECT 1 FROM ready_tasks WHERE offered_from = ?", (scope,)).fetchall()
        assert best, f"{task} is parked on {scope}, which nothing will free"


def _tasks_follow_what_they_come_after(db: apsw.Connection) -> None:
    """Unless there are so many of them that some are still to be told."""
    for row in db.execute(
        "SELECT task, state, due FROM (SELECT t.task_id AS task, t.state AS state, "
        "  CASE WHEN sum(d.state IN ('dead', 'cancelled', 'blocked')) THEN 'blocked' "
        "       WHEN sum(d.state <> 'done') THEN 'pending' ELSE 'ready' END AS due "
        "  FROM tasks t JOIN task_after a USING (task_id) JOIN tasks d ON d.task_id = a.after "
        "  WHERE t.state IN ('ready', 'pending', 'blocked') GROUP BY t.task_id) "
        "WHERE state <> due AND NOT EXISTS (SELECT 1 FROM ripples)"
    ):
        raise AssertionError(f"{row}: its state, and what it should be")


def _counters_are_above(db: apsw.Connection) -> None:
    stored = dict(db.execute("SELECT name, value FROM counters").fetchall())
    for name, query in (
        ("fencing", "SELECT max(fencing_token) FROM file_locks"),
        ("task", "SELECT max(n) FROM tasks"), ("review", "SELECT max(n) FROM reviews"),
        ("unlock", "SELECT max(n) FROM unlock_requests"),
        ("notice", "SELECT max(notice) FROM notices"),
    ):
        most = db.execute(query).get
        assert most is None or stored.get(name, 0) >= most, f"{name}: {most} is in use"
