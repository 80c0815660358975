"""Leases for the OpenAI Agents SDK: a function tool that writes only what no other agent holds.

    @function_tool
    def save(path: str, text: str) -> str: ...

    agent = Agent(name="editor", tools=[guard_tool(save, lambda args: args["path"])])

An input guardrail of the tool takes the lease. If another agent has it, the tool does not run, and
the model reads coord's sentence in place of its result. The lease is given back when the tool ends,
however it ends. Each call is a holder of its own (`branches`), so tools that a model calls side by
side exclude each other. Approvals and other guardrails are not affected.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from coordinator.client.client import Client
from coordinator.frameworks.asynchronous import in_thread, to_the_end
from coordinator.frameworks.branches import Branches, branches_of, current, holding
from coordinator.frameworks.extras import missing
from coordinator.frameworks.postponing import Postpones, postponed
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal

try:
    from agents import (
        FunctionTool,
        ToolGuardrailFunctionOutput,
        ToolInputGuardrail,
        ToolInputGuardrailData,
    )
except ImportError as bad:
    raise missing("openai_agents", "the OpenAI Agents SDK", "openai-agents", bad) from bad

__all__ = ["current", "guard_tool"]


@dataclass(frozen=True, slots=True)
class _Granted:
    """The guardrail's leases for the call that comes next in this task."""

    call: str
    branches: Branches
    branch: Client
    got: rq.Acquired


_granted: ContextVar[_Granted | None] = ContextVar("coord_granted", default=None)


def guard_tool(
    tool: FunctionTool, resources: Callable[[dict[str, Any]], str | Sequence[str]], *,
    client: Client | None = None, ttl: float = 60.0, wait: float = 0.0, description: str = "",
    on_blocked: Postpones | None = None,
) -> FunctionTool:
    """A copy of `tool` each of whose calls holds `resources` while it runs.

    Args:
        tool: made by `function_tool`, or a `FunctionTool` of one's own.
        resources: gives what a call writes, from its arguments.
        client: whose sub-agents the calls are; default: this process's own.
        ttl: seconds after which a lease is free should this process die. Renewed while the tool
            runs.
        wait: seconds to queue for what is held, before the model is told.
        description: what others read about it; default: the tool's name.
        on_blocked: gets the postponed step (the tool's name and arguments); called in a thread.

    A tool that needs a person's approval takes its lease after that, not before: nobody is kept
    waiting while a person thinks.
    """
    leases = _ToolLeases(tool, resources, client, ttl, wait, description or tool.name, on_blocked)
    guarded = copy.copy(tool)
    # The last one: what another guardrail rejects has taken nothing.
    guarded.tool_input_guardrails = [
        *(tool.tool_input_guardrails or ()),
        ToolInputGuardrail(guardrail_function=leases.check, name="coord_lease")]
    guarded.on_invoke_tool = leases.invoke
    return guarded


class _ToolLeases:
    """The guardrail of one tool, and what runs it under its lease."""

    def __init__(
        self, tool: FunctionTool, resources: Callable[[dict[str, Any]], str | Sequence[str]],
        client: Client | None, ttl: float, wait: float, description: str,
        on_blocked: Postpones | None,
    ) -> None:
        self._tool, self._resources, self._client = tool, resources, client
        self._ttl, self._wait = ttl, wait
        self._description, self._on_blocked = description, on_blocked

    async def check(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        """The guardrail: take the lease for the call that comes next, or reject it in words."""
        context = data.context
        try:
            granted = await self._take(context.tool_call_id, context.tool_arguments)
        except Refusal as refusal:
            return ToolGuardrailFunctionOutput.reject_content(_describe_refusal(refusal),
                                                              refusal.body())
        if granted is None:
            return ToolGuardrailFunctionOutput.allow()
        if self._tool.needs_approval:  # this may be the look before a person is asked
            await to_the_end(lambda: _give_back(granted))
            return ToolGuardrailFunctionOutput.allow()
        _granted.set(granted)  # the SDK makes the call in a task that it starts from this one
        return ToolGuardrailFunctionOutput.allow({"fencing_tokens": {
            lease.resource: lease.fencing_token for lease in granted.got.leases}})

    async def invoke(self, context: Any, arguments: str) -> Any:
        """Run the tool under its lease; without one, return coord's sentence."""
        granted = _granted.get()
        _granted.set(None)
        if granted is None or granted.call != context.tool_call_id:
            try:
                granted = await self._take(context.tool_call_id, arguments)
            except Refusal as refusal:
                return _describe_refusal(refusal)
        if granted is None:
            return await self._tool.on_invoke_tool(context, arguments)
        held = granted.branch.hold(granted.got, ttl=self._ttl)
        try:
            with holding(held, granted.branches, granted.branch):
                result = await self._tool.on_invoke_tool(context, arguments)
        finally:
            await to_the_end(lambda: _give_back(granted, held.end))
        if held.lost:
            return (f"The lease on {', '.join(lease.resource for lease in held.leases)} was lost "
                    "while "
                    f"{self._tool.name} ran: others may have written there. Read it afresh before "
                    "anything else.")
        return result

    async def _take(self, call: str, arguments: str) -> _Granted | None:
        """The leases of a call; None if it needs none.

        Raises:
            Refusal: LOCKED and others; INVALID: its arguments do not say what it writes.
        """
        wanted = self._wanted(arguments)
        if not wanted:
            return None

        def ask() -> _Granted:
            branches = branches_of(self._client)
            branch = branches.take()
            try:
                got = branch.acquire(*wanted, ttl=self._ttl, wait=self._wait, retry=False,
                                     description=self._description)
            except BaseException as no:
                if isinstance(no, Refusal) and no.code in HELD:
                    branches.give_back(branch)
                    postponed(no, resources=wanted, step=self._tool.name,
                              arguments=json.loads(arguments), on_blocked=self._on_blocked)
                else:
                    with contextlib.suppress(Refusal):
                        branches.end(branch)
                raise
            return _Granted(call, branches, branch, got)

        asked: list[_Granted] = []
        try:
            await to_the_end(lambda: asked.append(ask()))
        except BaseException:
            if asked:  # cancelled when it was granted
                await in_thread(lambda: _give_back(asked[0]))
            raise
        return asked[0]

    def _wanted(self, arguments: str) -> list[str]:
        try:
            given = json.loads(arguments or "{}")
            if not isinstance(given, dict):
                raise TypeError("they are no JSON object")
            wanted = self._resources(given)
        except (ValueError, TypeError, LookupError, AttributeError) as bad:
            raise Refusal(
                Code.INVALID, f"The arguments of {self._tool.name} do not say what it writes "
                f"({type(bad).__name__}: {bad}). It was not run.",
                next="Call it with all of its arguments.") from None
        return [wanted] if isinstance(wanted, str) else list(wanted)


def _give_back(granted: _Granted, end: Callable[[], None] | None = None) -> None:
    """The call has ended."""
    sound = False
    try:
        if end is not None:
            end()
        else:
            granted.branch.call(rq.Release(  # names from the root, wherever the program is
                agent=granted.branch.name(),
                resources=[lease.resource for lease in granted.got.leases]))
        sound = True
    finally:
        if sound:
            granted.branches.give_back(granted.branch)
        else:
            with contextlib.suppress(Refusal):
                granted.branches.end(granted.branch)


def _describe_refusal(refusal: Refusal) -> str:
    """The text that the model reads in place of the tool's result."""
    message = refusal.message
    return message if refusal.next in message else f"{message} Next: {refusal.next}"
