"""Tools under leases on the real OpenAI Agents SDK, with a scripted model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.frameworks
pytest.importorskip("agents.tool_guardrails")

from agents import Agent, RunConfig, Runner, ToolExecutionConfig, function_tool  # noqa: E402
from agents.tool_guardrails import ToolGuardrailFunctionOutput, tool_input_guardrail  # noqa: E402

from coordinator import Client  # noqa: E402
from coordinator.frameworks.openai_agents import current, guard_tool  # noqa: E402
from coordinator.frameworks.postponing import StepPostponed  # noqa: E402
from coordinator.words import requests as rq  # noqa: E402
from tests.conftest import Repo  # noqa: E402
from tests.frameworks.scripted_model import Scripted, call, say  # noqa: E402
from tests.waiting import until  # noqa: E402

QUIET = RunConfig(tracing_disabled=True)


@pytest.fixture
def client(repo: Repo) -> Client:
    return repo.client("service")


def held(client: Client) -> dict[str, str]:
    return {one.resource: one.locked_by for one in client.call(rq.Locks()).items}


def run(tool: Any, *turns: list[Any], config: RunConfig = QUIET) -> Scripted:
    model = Scripted(*turns)
    asyncio.run(Runner.run(Agent(name="editor", tools=[tool], model=model), "go", run_config=config))
    return model


def test_a_tool_runs_while_its_call_holds_what_it_writes(client: Client, repo: Repo) -> None:
    @function_tool
    def save(path: str) -> str:
        return f"{list(held(client))} under {current().fencing_token}"

    @function_tool
    async def save_async(path: str) -> str:
        return f"{list(held(client))} under {current().fencing_token}"

    for n, tool in enumerate((save, save_async), 1):
        model = run(guard_tool(tool, lambda args: args["path"], client=client), [call(tool.name, path="a.py")], [say("done")])
        assert model.results()["c1"] == f"['a.py'] under {n}"
        assert held(client) == {}


def test_what_another_holds_is_rejected_in_coords_words(client: Client, repo: Repo) -> None:
    kept: list[StepPostponed] = []
    other = repo.client("other")
    other.acquire("a.py", description="renaming")
    other.call(rq.TaskAdd(title="Other work", resources=["b.py"]))

    @function_tool
    def save(path: str) -> str:
        raise AssertionError("it ran")

    guarded = guard_tool(save, lambda args: args["path"], client=client, on_blocked=kept.append)
    model = Scripted([call("save", path="a.py")], [say("done")])
    result = asyncio.run(Runner.run(Agent(name="editor", tools=[guarded], model=model), "go", run_config=QUIET))
    said = model.results()["c1"]
    assert "a.py is leased by other" in said and "renaming" in said and "coord task claim T-1" in said
    (checked,) = result.tool_input_guardrail_results
    assert checked.output.behavior["type"] == "reject_content" and checked.output.output_info["code"] == "LOCKED"
    assert (kept[0].step, kept[0].arguments) == ("save", {"path": "a.py"})
    assert list(held(client).values()) == ["other"] and client.call(rq.Locks()).waiters == []


def test_tools_called_side_by_side_lose_no_update(client: Client, tmp_path: Path) -> None:
    """One model, one turn, many calls: the SDK runs them at once."""
    file = tmp_path / "balance"
    file.write_text("0")

    @function_tool
    async def add(amount: int) -> str:
        before = int(file.read_text())
        for _ in range(5):
            await asyncio.sleep(0)
        file.write_text(str(before + amount))
        return "added"

    guarded = guard_tool(add, lambda args: "key:balance", client=client, wait=60)
    model = run(guarded, [call("add", f"c{n}", amount=n) for n in range(8)], [say("done")])
    assert file.read_text() == "28" and set(model.results().values()) == {"added"}


@pytest.mark.parametrize("fails", ["raises", "times out"])
def test_a_tool_that_fails_gives_back(client: Client, fails: str) -> None:
    @function_tool(timeout=0.2 if fails == "times out" else None)
    async def save(path: str) -> str:
        if fails == "raises":
            raise OSError("the disk is full")
        await asyncio.Event().wait()
        return ""

    model = run(guard_tool(save, lambda args: args["path"], client=client), [call("save", path="a.py")], [say("done")])
    assert {"raises": "error occurred", "times out": "timed out"}[fails] in model.results()["c1"]
    assert held(client) == {}


def test_a_cancelled_run_gives_back(client: Client) -> None:
    async def main() -> None:
        entered = asyncio.Event()

        @function_tool
        async def save(path: str) -> str:
            entered.set()
            await asyncio.Event().wait()
            return ""

        agent = Agent(name="e", tools=[guard_tool(save, lambda args: args["path"], client=client)], model=Scripted([call("save", path="a.py")]))
        going = asyncio.create_task(Runner.run(agent, "go", run_config=QUIET))
        await entered.wait()
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        await asyncio.to_thread(lambda: until(lambda: not held(client)))

    asyncio.run(main())


def test_other_guardrails_come_first_and_leave_nothing_behind(client: Client) -> None:
    @tool_input_guardrail
    def never(data: Any) -> ToolGuardrailFunctionOutput:
        assert held(client) == {}
        return ToolGuardrailFunctionOutput.reject_content("not on Sundays")

    @function_tool(tool_input_guardrails=[never])
    def save(path: str) -> str:
        raise AssertionError("it ran")

    guarded = guard_tool(save, lambda args: args["path"], client=client)
    assert save.tool_input_guardrails == [never], "the tool itself is as it was"
    assert run(guarded, [call("save", path="a.py")], [say("done")]).results()["c1"] == "not on Sundays"
    assert held(client) == {}


def test_nobody_is_kept_waiting_while_a_person_thinks(client: Client) -> None:
    ran: list[dict[str, str]] = []

    @function_tool(needs_approval=True)
    async def save(path: str) -> str:
        ran.append(held(client))
        return "saved"

    config = RunConfig(tracing_disabled=True, tool_execution=ToolExecutionConfig(pre_approval_tool_input_guardrails=True))
    model = Scripted([call("save", path="a.py")], [say("done")])
    agent = Agent(name="e", tools=[guard_tool(save, lambda args: args["path"], client=client)], model=model)
    paused = asyncio.run(Runner.run(agent, "go", run_config=config))
    assert len(paused.interruptions) == 1 and held(client) == {} and not ran
    state = paused.to_state()
    state.approve(paused.interruptions[0])
    asyncio.run(Runner.run(agent, state, run_config=config))
    assert [list(one) for one in ran] == [["a.py"]] and model.results()["c1"] == "saved" and held(client) == {}


@pytest.mark.parametrize("arguments", [{}, {"path": 5}])
def test_a_call_that_does_not_say_what_it_writes_is_not_run(client: Client, arguments: dict[str, Any]) -> None:
    @function_tool
    def save(path: str) -> str:
        raise AssertionError("it ran")

    model = run(guard_tool(save, lambda args: args["path"].strip(), client=client), [call("save", **arguments)], [say("done")])
    assert "do not say what it writes" in model.results()["c1"] and held(client) == {}


def test_a_lease_that_is_lost_meanwhile_is_told_to_the_model(client: Client, repo: Repo) -> None:
    @function_tool
    async def save(path: str) -> str:
        await asyncio.to_thread(lambda: repo.coord("unlock", path, "--agent", "eve", "--force"))
        return "saved"

    model = run(guard_tool(save, lambda args: args["path"], client=client), [call("save", path="key:a")], [say("done")])
    assert "was lost while save ran" in model.results()["c1"]
