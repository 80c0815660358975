"""The OpenAI Agents SDK: two agents whose models call a writing tool several times in one turn. The
models are scripted. Ends with 1 if an update was lost.

    python -P examples/openai_agents_tools.py
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from coordinator.client.client import Client
from coordinator.frameworks.openai_agents import guard_tool

client = Client(agent="editors")


@function_tool
async def append(path: str, line: str) -> str:
    """Append a line to a file."""
    before = Path(path).read_text()
    await asyncio.sleep(0.05)  # others run here: without the lease they would read the same
    Path(path).write_text(before + line + "\n")
    return "appended"


guarded_append = guard_tool(append, lambda args: args["path"], client=client, wait=60)
impatient_append = guard_tool(append, lambda args: args["path"], client=client)


class Scripted(Model):
    """Calls the tool for each line in its first turn, and ends in its second."""

    def __init__(self, path: str, lines: list[str]) -> None:
        self.path, self.lines, self.results = path, lines, list[str]()

    async def get_response(self, system_instructions: Any, input: Any,  # noqa: A002
                           *more: Any, **named: Any) -> ModelResponse:
        if self.lines:
            output: list[Any] = [ResponseFunctionToolCall(
                type="function_call", name="append", call_id=line,
                arguments=json.dumps({"path": self.path, "line": line})) for line in self.lines]
            self.lines = []
        else:
            self.results = [str(item["output"]) for item in input
                            if item.get("type") == "function_call_output"]
            output = [ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed",
                content=[ResponseOutputText(type="output_text", text="done", annotations=[])])]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *more: Any, **named: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def main() -> int:
    file, quiet = Path("shared.txt"), RunConfig(tracing_disabled=True)
    file.write_text("")
    models = [Scripted(str(file), [f"{name}{n}" for n in range(4)]) for name in "ab"]
    editors = [Agent(name="editor", model=model, tools=[guarded_append]) for model in models]
    await asyncio.gather(*(Runner.run(one, "go", run_config=quiet) for one in editors))
    lines = file.read_text().split()
    with Client(agent="somebody-else") as other, other.lease("shared.txt", description="renaming"):
        blocked = Scripted(str(file), ["lost"])
        await Runner.run(Agent(name="editor", model=blocked, tools=[impatient_append]), "go",
                         run_config=quiet)
    print(f"{len(lines)} lines; a model that was blocked read: {blocked.results[0]}")
    right = sorted(lines) == sorted(f"{name}{n}" for name in "ab" for n in range(4))
    return 0 if right and "leased by somebody-else" in blocked.results[0] else 1


if __name__ == "__main__":
    with client:
        sys.exit(asyncio.run(main()))
