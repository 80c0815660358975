"""The guard on real LangGraph: blocked branches, crashes, interrupts, retries, one thread run twice."""

from __future__ import annotations

import asyncio
import operator
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytestmark = pytest.mark.frameworks
pytest.importorskip("langgraph")

from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402
from langgraph.errors import ParentCommand  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.types import Command, RetryPolicy, Send, interrupt  # noqa: E402

from coordinator import Code, LeaseLost, Refusal  # noqa: E402
from coordinator.frameworks.langgraph import (  # noqa: E402
    LeaseState,
    Stale,
    StepPostponed,
    current,
    guard,
    lease_node,
    release_node,
    route_blocked,
    with_lease,
)
from coordinator.words import requests as rq  # noqa: E402
from tests.conftest import Repo  # noqa: E402
from tests.frameworks import crashing_graph  # noqa: E402
from tests.waiting import until  # noqa: E402


class State(TypedDict, total=False):
    file: str
    log: Annotated[list[str], operator.add]
    lease: LeaseState


def held(repo: Repo) -> dict[str, str]:
    return {one.resource: one.locked_by for one in repo.client().call(rq.Locks()).items}


def one_node(node: Callable[..., Any], saver: Any = None, **more: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("write", node, **more)
    graph.add_edge(START, "write")
    graph.add_edge("write", END)
    return graph.compile(checkpointer=saver)


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


# ------------------------------------------------------------ one node


def test_a_node_runs_while_it_holds_what_its_state_names(repo: Repo) -> None:
    def write(state: State) -> dict[str, Any]:
        assert held(repo) == {"a.py": "langgraph-t-write"} and current().fencing_token == 1
        return {"log": ["wrote"]}

    graph = one_node(guard(lambda state: state["file"], key="lease", root=repo.root)(write), InMemorySaver())
    out = graph.invoke({"file": "a.py"}, thread("t"))
    assert out["log"] == ["wrote"] and out["lease"]["status"] == "done" and out["lease"]["fencing_tokens"] == {"a.py": 1}
    assert held(repo) == {} and repo.client().call(rq.Agents()).items == []
    assert list((repo.root / ".coord/steps").iterdir()) == [], "nothing is left of a step that is over"


def test_a_blocked_branch_is_redirected(repo: Repo) -> None:
    other = repo.client("other")
    other.acquire("a.py", description="renaming")
    task = other.call(rq.TaskAdd(title="Other work", resources=["b.py"])).task
    graph = StateGraph(State)
    graph.add_node("write", guard("a.py", key="lease", root=repo.root)(lambda state: {"log": ["wrote"]}))
    graph.add_node("elsewhere", lambda state: {"log": [state["lease"]["redirect"]["task"]]})
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", route_blocked(free=END, blocked="elsewhere"))
    graph.add_edge("elsewhere", END)
    compiled = graph.compile(checkpointer=InMemorySaver())
    out = compiled.invoke({}, thread("t"))
    assert out["log"] == [task] and out["lease"]["status"] == "blocked" and out["lease"]["holder"] == "other"
    assert "renaming" in out["lease"]["message"] and out["lease"]["retry_after_s"] > 0
    assert repo.client().call(rq.Locks()).waiters == []
    other.release("a.py")
    out = compiled.invoke({}, thread("t"))
    assert out["log"][-1] == "wrote" and out["lease"]["status"] == "done", "no block of before lingers"


def test_without_a_key_it_is_raised_and_postponed(repo: Repo) -> None:
    kept: list[StepPostponed] = []
    repo.client("other").acquire("a.py")
    graph = one_node(guard("a.py", root=repo.root, on_blocked=kept.append)(lambda state: {"log": ["wrote"]}))
    with pytest.raises(StepPostponed) as met:
        graph.invoke({})
    assert kept == [met.value] and met.value.holder == "other"


def test_branches_of_one_superstep_are_different_holders(repo: Repo) -> None:
    """Two writers of one file, side by side in one graph, lose nothing."""
    (repo.root / "balance").write_text("0")
    both = threading.Barrier(2)

    class Fan(TypedDict, total=False):
        amount: int

    def add(state: Fan) -> dict[str, Any]:
        before = int(repo.read("balance"))
        threading.Event().wait(0.05)
        repo.write("balance", str(before + state["amount"]))
        return {}

    def meet(state: Fan) -> str:
        both.wait(30)
        return "balance"

    graph = StateGraph(Fan)
    graph.add_node("add", guard(meet, root=repo.root, wait=60)(add))
    graph.add_conditional_edges(START, lambda state: [Send("add", {"amount": 1}), Send("add", {"amount": 2})])
    graph.add_edge("add", END)
    graph.compile(checkpointer=InMemorySaver()).invoke({}, thread("t"))
    assert repo.read("balance") == "3"


def test_an_async_node_is_guarded_too(repo: Repo) -> None:
    async def write(state: State) -> dict[str, Any]:
        await asyncio.sleep(0)
        assert list(held(repo)) == ["a.py"] and current().fencing_token
        return {"log": ["wrote"]}

    graph = one_node(guard("a.py", key="lease", root=repo.root)(write), InMemorySaver())
    out = asyncio.run(graph.ainvoke({}, thread("t")))
    assert out["log"] == ["wrote"] and out["lease"]["status"] == "done" and held(repo) == {}


def test_a_cancelled_async_node_gives_back(repo: Repo) -> None:
    async def main() -> None:
        entered = asyncio.Event()

        async def write(state: State) -> None:
            entered.set()
            await asyncio.Event().wait()

        graph = one_node(guard("a.py", root=repo.root)(write), InMemorySaver())
        run = asyncio.create_task(graph.ainvoke({}, thread("t")))
        await entered.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(main())
    assert held(repo) == {}


def test_a_node_that_is_retried_neither_blocks_itself_nor_holds_twice(repo: Repo) -> None:
    tries: list[int] = []

    def write(state: State) -> dict[str, Any]:
        tries.append(current().fencing_token)
        assert len(repo.client().call(rq.Locks()).items) == 1
        if len(tries) < 3:
            raise ConnectionError("try again")
        return {"log": ["wrote"]}

    policy = RetryPolicy(initial_interval=0.01, max_attempts=3)
    out = one_node(guard("a.py", root=repo.root)(write), InMemorySaver(), retry_policy=policy).invoke({}, thread("t"))
    assert out["log"] == ["wrote"] and tries == sorted(set(tries)) and held(repo) == {}


def test_a_node_with_a_command_keeps_its_way(repo: Repo) -> None:
    graph = StateGraph(State)
    graph.add_node("write", guard("a.py", key="lease", root=repo.root)(lambda state: Command(update={"log": ["wrote"]}, goto="next")),
                   destinations=("next",))
    graph.add_node("next", lambda state: {"log": ["next"]})
    graph.add_edge(START, "write")
    out = graph.compile().invoke({})
    assert out["log"] == ["wrote", "next"] and out["lease"]["status"] == "done"


def test_a_command_to_the_parent_graph_ends_the_step(repo: Repo) -> None:
    def write(state: State) -> None:
        raise ParentCommand(Command(graph=Command.PARENT, goto=END))

    outer = StateGraph(State)
    outer.add_node("inner", one_node(guard("a.py", root=repo.root)(write)))
    outer.add_edge(START, "inner")
    outer.compile(checkpointer=InMemorySaver()).invoke({}, thread("t"))
    assert held(repo) == {}


def test_a_lease_that_is_lost_in_the_node_keeps_its_update_out(repo: Repo) -> None:
    def write(state: State) -> dict[str, Any]:
        repo.coord("unlock", "key:a", "--agent", "eve", "--force")
        until(lambda: current().lost)
        return {"log": ["wrote"]}

    saver = InMemorySaver()
    graph = one_node(guard("key:a", ttl=0.3, root=repo.root)(write), saver)
    with pytest.raises(LeaseLost):
        graph.invoke({}, thread("t"))
    assert graph.get_state(thread("t")).values.get("log", []) == []


# ------------------------------------------------------------ interrupts


def asks(repo: Repo, runs: list[int], **more: Any) -> Any:
    def write(state: State) -> dict[str, Any]:
        runs.append(current().fencing_token)
        answer = interrupt("shall I?")
        repo.write("a.py", answer)
        return {"log": [answer]}

    return one_node(guard("a.py", root=repo.root, **more)(write), InMemorySaver())


def test_an_interrupted_node_goes_on_with_its_lease(repo: Repo) -> None:
    runs: list[int] = []
    graph = asks(repo, runs, ttl=5, keep=600)
    graph.invoke({}, thread("t"))
    assert list(held(repo)) == ["a.py"], "kept while a person thinks"
    with pytest.raises(Refusal):
        repo.client("other").acquire("a.py", retry=False)
    assert graph.invoke(Command(resume="yes"), thread("t"))["log"] == ["yes"]
    assert runs == [1, 1] and held(repo) == {}, "the same fencing token"


def test_an_interrupted_node_that_is_to_release_does(repo: Repo) -> None:
    runs: list[int] = []
    graph = asks(repo, runs, on_interrupt="release")
    graph.invoke({}, thread("t"))
    assert held(repo) == {}
    graph.invoke(Command(resume="yes"), thread("t"))
    assert runs == [1, 2]


def test_a_node_that_is_resumed_too_late_is_told_what_moved_on(repo: Repo) -> None:
    repo.write("a.py", "before")
    runs: list[int] = []
    graph = asks(repo, runs, ttl=0.3)
    graph.invoke({}, thread("t"))
    until(lambda: not held(repo))
    with repo.client("other").lease("a.py"):
        repo.write("a.py", "another's")
    with pytest.raises(Stale, match="read it afresh") as met:
        graph.invoke(Command(resume="yes"), thread("t"))
    assert repo.read("a.py") == "another's" and met.value.fencing_tokens == {"a.py": 3}
    assert runs == [1], "it did not run on what it knew"
    out = graph.invoke(Command(resume="yes"), thread("t"))
    assert out["log"] == ["yes"] and repo.read("a.py") == "yes"


def test_a_node_that_is_resumed_too_late_goes_on_where_nothing_was_changed(repo: Repo) -> None:
    repo.write("a.py", "before")
    runs: list[int] = []
    graph = asks(repo, runs, ttl=0.3)
    graph.invoke({}, thread("t"))
    until(lambda: not held(repo))
    with repo.client("other").lease("a.py"):
        pass
    assert graph.invoke(Command(resume="yes"), thread("t"))["log"] == ["yes"] and runs == [1, 3]


def test_a_person_may_end_a_step_that_waits(repo: Repo) -> None:
    runs: list[int] = []
    graph = asks(repo, runs, ttl=600)
    graph.invoke({}, thread("t"))
    (agent,) = held(repo).values()
    repo.client().call(rq.Leave(agent=agent))
    with pytest.raises(Stale):
        graph.invoke(Command(resume="yes"), thread("t"))
    assert graph.invoke(Command(resume="yes"), thread("t"))["log"] == ["yes"]


# ------------------------------------------------------------ one thread id, twice


def test_two_runs_of_one_thread_are_not_both_granted(repo: Repo) -> None:
    """The same step, begun from the same checkpoint by two graphs at once."""
    runs: list[int] = []
    entered, go = threading.Event(), threading.Event()
    saver = InMemorySaver()

    def write(state: State) -> dict[str, Any]:
        runs.append(1)
        interrupt("wait") if len(runs) == 1 else None
        entered.set()
        go.wait(60)
        return {"log": ["wrote"]}

    def build() -> Any:
        return one_node(guard("a.py", root=repo.root, ttl=600)(write), saver)

    build().invoke({}, thread("t"))
    first = threading.Thread(target=lambda: build().invoke(Command(resume="go"), thread("t")))
    first.start()
    assert entered.wait(60)
    try:
        with pytest.raises(Refusal, match="one graph with one thread id") as met:
            build().invoke(Command(resume="go"), thread("t"))
        assert met.value.code is Code.NAME_TAKEN and len(runs) == 2
    finally:
        go.set()
        first.join()


def test_two_graphs_that_share_a_thread_id_are_two_holders(repo: Repo) -> None:
    """Each with a checkpointer of its own: they know nothing of each other."""
    def write(state: State) -> dict[str, Any]:
        with pytest.raises(StepPostponed):
            one_node(guard("a.py", root=repo.root)(lambda state: {"log": ["both"]}), InMemorySaver()).invoke({}, thread("1"))
        return {"log": ["one"]}

    out = one_node(guard("a.py", root=repo.root)(write), InMemorySaver()).invoke({}, thread("1"))
    assert out["log"] == ["one"]


@pytest.mark.parametrize("name", ["", "a b/c'\"$`\n", "ü" * 300, "x" * 5000, 7])
def test_whatever_a_thread_is_called(repo: Repo, name: Any) -> None:
    graph = one_node(guard("a.py", root=repo.root)(lambda state: {"log": list(held(repo))}), InMemorySaver())
    assert graph.invoke({}, thread(name))["log"] == ["a.py"]


# ------------------------------------------------------------ a lease over several nodes


def spanning(repo: Repo, saver: Any, between: Callable[[State], Any], ttl: float = 300) -> Any:
    graph = StateGraph(State)
    graph.add_node("take", lease_node(["key:a"], root=repo.root, ttl=ttl))
    graph.add_node("between", between)
    graph.add_node("write", with_lease(root=repo.root, ttl=ttl)(lambda state: {"log": [f"wrote under {current().fencing_token}"]}))
    graph.add_node("read", lambda state: {"log": ["read"]})
    graph.add_node("give", release_node(root=repo.root))
    graph.add_edge(START, "take")
    graph.add_conditional_edges("take", route_blocked(free="between", blocked=END))
    graph.add_edge("between", "write")
    graph.add_conditional_edges("write", route_blocked(free="give", blocked=END, stale="read"))
    graph.add_edge("read", "write")
    graph.add_edge("give", END)
    return graph.compile(checkpointer=saver)


def test_a_lease_over_several_nodes(repo: Repo) -> None:
    out = spanning(repo, InMemorySaver(), lambda state: {"log": list(held(repo))}).invoke({}, thread("t"))
    assert out["log"] == ["key:a", "wrote under 1"] and out["lease"]["status"] == "released"
    assert held(repo) == {} and repo.client().call(rq.Agents()).items == []


def test_an_interrupt_between_keeps_it_and_its_token_is_checked(repo: Repo) -> None:
    graph = spanning(repo, InMemorySaver(), lambda state: {"log": [interrupt("?")]})
    graph.invoke({}, thread("t"))
    assert list(held(repo)) == ["key:a"]
    assert graph.invoke(Command(resume="yes"), thread("t"))["log"] == ["yes", "wrote under 1"]


def test_a_lease_that_lapsed_between_sends_the_graph_to_read_afresh(repo: Repo) -> None:
    graph = spanning(repo, InMemorySaver(), lambda state: {"log": [interrupt("?")]}, ttl=0.3)
    graph.invoke({}, thread("t"))
    until(lambda: not held(repo))
    out = graph.invoke(Command(resume="yes"), thread("t"))
    assert out["log"][:2] == ["yes", "read"] and out["log"][2].startswith("wrote under ")
    assert out["log"][2] != "wrote under 1" and out["lease"]["status"] == "released"


def test_a_lease_that_another_took_meanwhile_blocks_the_branch(repo: Repo) -> None:
    graph = spanning(repo, InMemorySaver(), lambda state: {"log": [interrupt("?")]}, ttl=0.3)
    graph.invoke({}, thread("t"))
    repo.client("other").acquire("key:a", wait=30)
    out = graph.invoke(Command(resume="yes"), thread("t"))
    assert out["log"] == ["yes"] and (out["lease"]["status"], out["lease"]["holder"]) == ("blocked", "other")


def test_a_step_that_another_run_brought_to_its_end_is_not_run_twice_unseen(repo: Repo, tmp_path: Path) -> None:
    """Two runs from one checkpoint, one after the other; or a crash just before the next checkpoint."""
    with SqliteSaver.from_conn_string(":memory:") as saver, SqliteSaver.from_conn_string(":memory:") as other:
        graph, stop = spanning(repo, saver, lambda state: {"log": ["between"]}), {"interrupt_before": ["write"]}
        graph.invoke({}, thread("t"), **stop)
        saver.conn.backup(other.conn)
        other.is_setup = True
        graph.invoke(None, thread("t"), interrupt_after=["write"])
        out = spanning(repo, other, lambda state: {"log": ["between"]}).invoke(None, thread("t"))
    assert out["log"] == ["between", "read", "wrote under 1"]


def test_a_node_without_the_lease_that_it_needs_says_so(repo: Repo) -> None:
    with pytest.raises(Refusal) as met:
        one_node(with_lease(root=repo.root)(lambda state: {})).invoke({})
    assert met.value.code is Code.UNKNOWN_LEASE and "lease_node" in met.value.next


# ------------------------------------------------------------ crashes


def program(repo: Repo, database: Path, thread_id: str, how: str, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.frameworks.crashing_graph", str(repo.root), str(database), thread_id, how, *more],
        cwd=repo.root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)})


@pytest.mark.parametrize("how", ["", "spans"])
def test_a_graph_that_was_killed_in_its_node_is_resumed_by_another_process(repo: Repo, tmp_path: Path, how: str) -> None:
    repo.write("balance", "100")
    database = tmp_path / "checkpoints.sqlite"
    doomed = program(repo, database, "t", f"stops{how}", "5")
    until(lambda: (repo.root / f"entered-stops{how}").exists(), 60)
    (agent,) = held(repo).values()
    # Nobody else gets it, and nobody else runs the same step
    blocked = program(repo, database, "other", how or "plain", "1")
    told = blocked.communicate(timeout=60)
    assert repo.read("balance") == "100"
    assert ("None blocked" in told[0]) if how else ("StepPostponed" in told[1] and agent in told[1]), told
    twice = program(repo, database, "t", how or "plain")
    assert "NAME_TAKEN" in (said := twice.communicate(timeout=60)[1]) or "one thread id" in said
    doomed.send_signal(signal.SIGKILL)
    doomed.communicate()
    assert held(repo) == {"balance": agent}, "the lease outlives the crash"
    resumed = program(repo, database, "t", how or "plain")
    out, bad = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, bad
    assert out.startswith("[1] "), "the same lease, at once, by its token"
    assert repo.read("balance") == "105" and held(repo) == {}
    again = program(repo, database, "other", how or "plain", *([] if not how else ["1"]))
    out, bad = again.communicate(timeout=60)
    assert again.returncode == 0, bad
    assert repo.read("balance") == "106"


def test_two_threads_in_two_processes_lose_no_update(repo: Repo, tmp_path: Path) -> None:
    repo.write("balance", "0")

    def run(name: str) -> None:
        with SqliteSaver.from_conn_string(str(tmp_path / f"{name}.sqlite")) as saver:
            graph = crashing_graph.build(repo.root, saver, "plain")
            done = 0
            while done < 5:
                try:
                    graph.invoke({"amount": 1}, thread(f"{name}-{done}"))
                    done += 1
                except StepPostponed:
                    threading.Event().wait(0.01)

    both = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert repo.read("balance") == "10"
