"""Who shares a transaction is answered as if everybody had one of their own.

Group commit puts the requests of many into one transaction, in which facts are looked up once and
kept until something changes them ("does anybody stand in line?"). Two coordinators get the same
requests at the same instants and decide them in the same order: one in batches, one by one.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from coordinator.kernel.core import OPERATOR
from coordinator.kernel.errands import decide_again
from coordinator.kernel.use_cases import Look, Read, Write
from coordinator.looking.facts import Looked, Unready
from coordinator.operations.listing import OPERATIONS
from coordinator.slices.review import verdict_plan, verdicts
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.store.writer_cache import Effects
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.effort import examples
from tests.world import World

AGENTS = st.sampled_from(["ann", "bob"])
PATHS = st.sampled_from(["a.py", "a.py", "d/", "d/x.py", "d/*.py"])
TASKS = st.integers(1, 4).map("T-{}".format)

ACQUIRE = st.builds(
    lambda a, p, m, r, t: rq.Acquire(agent=a, resources=[p], mode=m, retry=r, ttl_s=t),
    AGENTS, PATHS, st.sampled_from(["exclusive", "exclusive", "shared"]), st.booleans(),
    st.sampled_from([2.0, 600.0]),
)
RELEASE = st.builds(lambda a, p: rq.Release(agent=a, resources=[p]), AGENTS, PATHS)
REQUESTS = st.one_of(
    ACQUIRE, ACQUIRE, ACQUIRE, RELEASE, RELEASE,
    st.builds(lambda p, q: rq.TaskAdd(title="one", resources=[p], priority=q), PATHS,
              st.integers(0, 2)),
    st.builds(lambda a: rq.TaskClaim(agent=a, ttl_s=4.0), AGENTS),
    st.builds(lambda a, t: rq.TaskClaim(agent=a, task=t), AGENTS, TASKS),
    st.builds(lambda a, t: rq.TaskDone(agent=a, task=t), AGENTS, TASKS),
    st.builds(lambda a, t: rq.TaskFail(agent=a, task=t), AGENTS, TASKS),
    st.builds(lambda n, v: rq.ReviewDecide(review=f"R-{n}", verdict=v), st.integers(1, 3),
              st.sampled_from(["keep", "reassign"])),
    st.builds(lambda n: rq.ReviewUndo(review=f"R-{n}"), st.integers(1, 3)),
    st.builds(lambda n, a: rq.Withdraw(agent=a, acquisition_id=f"W-{n}"), st.integers(1, 3),
              AGENTS),
    st.builds(lambda a: rq.Leave(agent=a), AGENTS),
    st.just(rq.Sweep()),
)
#: What is written to the disk first, how long it takes (ms), and what is then asked at once.
STEPS = st.lists(
    st.tuples(st.sampled_from(["", "a.py", "d/x.py"]), st.sampled_from([1, 3_000]),
              st.lists(REQUESTS, min_size=3, max_size=10)),
    min_size=2, max_size=5,
)


def told(answer: Any, world: World) -> Any:
    if isinstance(answer, rq.Review):
        answer.timeline.clear()  # what happens in its own transaction is shown from the next on
    body = answer.body() if isinstance(answer, Refusal) else answer
    return json.loads(msgspec.json.encode(body).decode().replace(str(world.root), "ROOT"))


#: Numbers only rise: what a batch or a job of its own had taken, and was rolled back, is left out.
NUMBERED = re.compile(r'"(?:A|W)-(?P<id>[0-9]+)"|"fencing_token": (?P<token>[0-9]+)|"lease_token": "[0-9a-f]+"')


def without_gaps(answers: list[Any]) -> Any:
    """The answers, with each number of a lease as the how-manieth it is."""
    text = json.dumps(answers)
    taken = sorted({int(one["id"] or one["token"]) for one in NUMBERED.finditer(text) if one["id"] or one["token"]})
    rank = {str(number): at for at, number in enumerate(taken)}
    return json.loads(NUMBERED.sub(lambda one: f'"lease_token": "{rank.get(one["id"] or one["token"] or "", "")}"' if one["token"] or not one["id"]
                                   else f'"{rank[one["id"]]}"', text))


def live(world: World) -> list[LeaseRow]:
    """All but which file on this disk it is, and which numbers it has."""
    found = sorted(world.live(), key=lambda lease: lease.fencing_token)
    return [structs.replace(lease, inode=None, fencing_token=at, acquisition_id="") for at, lease in enumerate(found)]


def _job(world: World, request: rq.Request[Any]) -> tuple[Any, Looked]:
    """The job that decides this request, and what it goes by."""
    if isinstance(request, rq.ReviewDecide | rq.ReviewUndo):  # none that writes files
        plan = verdict_plan.Plan(request.review, "")
        step: Any = Write(lambda tx, actor: verdicts.begin(world.service, request, plan, tx))
    else:
        use_case: Any = OPERATIONS[request.op].use_case
        steps = use_case(world.service, request)
        step = next(steps)
        while isinstance(step, Look | Read):
            step = steps.send(world.part(step))
    looked = step.looked or Looked()

    def job(tx: Tx) -> Any:
        tx.looked = looked
        return step.decide(tx, OPERATOR)

    return job, looked


def answers(
    world: World, asked: Sequence[rq.Request[Any]], order: list[int] | None = None
) -> tuple[list[Any], list[int]]:
    """What these requests are answered, and in which order they were decided. Without an `order`
    all at once: what has to be looked at first is decided after the others, as in the daemon."""
    now = world.clock.now_ms()
    jobs = [_job(world, request) for request in asked]
    got: dict[int, Any] = {}
    if order is None:
        commits: list[Effects] = []
        usual, world.ledger.on_commit = world.ledger.on_commit, commits.append
        for at, value in enumerate(world.ledger.run_all([job for job, _ in jobs], now)):
            if not isinstance(value, Unready):
                got[at] = value
        assert len(commits) < 2, "the batch failed, and each was run again on its own"
        world.ledger.on_commit = usual
        for effects in commits:
            world.engine._committed(effects)
        order = [*got, *(at for at in range(len(jobs)) if at not in got)]
    for at in order:
        if at not in got:
            job, looked = jobs[at]
            value = world.commit(job)
            got[at] = value if not isinstance(value, Unready) else world.run(
                decide_again(world.service, job, looked, value))
    world.settle()
    return [told(got[at], world) for at in range(len(jobs))], order


def asks(agent: str, path: str, ttl_s: float = 600.0) -> rq.Acquire:
    return rq.Acquire(agent=agent, resources=[path], ttl_s=ttl_s)


#: Makes the batch look whether anybody waits, before somebody does.
OTHER = asks("bob", "d/x.py")


@given(STEPS)
@example([("", 1, [asks("ann", "a.py")]),
          ("", 1, [OTHER, asks("bob", "a.py"), rq.Release(agent="ann", resources=["a.py"])])])
@example([("", 1, [asks("ann", "a.py", 2.0)]),
          ("a.py", 3_000, [OTHER, rq.Sweep(), asks("bob", "a.py")])])
@example([("", 1, [asks("ann", "a.py", 2.0)]), ("a.py", 3_000, [rq.Sweep()]),
          ("", 1, [rq.ReviewDecide(review="R-1", verdict="keep")]),
          ("", 1, [OTHER, rq.ReviewUndo(review="R-1"), asks("bob", "a.py")])])
@example([("", 1, [rq.TaskAdd(title="one", resources=["d/"]), asks("ann", "a.py"), asks("bob", "d/x.py")]),
          ("", 1, [rq.Release(agent="ann", resources=["a.py"]), asks("ann", "a.py"), rq.TaskClaim(agent="bob", ttl_s=4.0)])])
@settings(max_examples=examples(35), deadline=None)
def test_a_batch_is_answered_as_one_by_one(
    steps: list[tuple[str, int, list[rq.Request[Any]]]]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        together, apart = World(Path(place) / "together"), World(Path(place) / "apart")
        try:
            for number, (path, ms, asked) in enumerate(steps):
                for world in (together, apart):
                    if path:
                        world.write(path, f"{number}\n")
                    world.clock.advance(ms)
                    if any(isinstance(one, rq.Sweep) for one in asked):
                        world.ask(rq.Sweep())
                asked = [one for one in asked if not isinstance(one, rq.Sweep)]
                got, order = answers(together, asked)
                expected, _ = answers(apart, asked, order)
                assert without_gaps(got) == without_gaps(expected)
                assert live(together) == live(apart)
            assert together.replay_differs() == []
        finally:
            together.close()
            apart.close()
