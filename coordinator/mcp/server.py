"""The MCP server on the official SDK: it lists the tools, checks a call, and words its answer.

`Serve` is passed in. Over standard input it is the client and the local socket; over HTTP it is the
daemon's own router. A refusal is an answer that a model reads (`isError`). Only a malformed call is
an error of the protocol. Nothing that a client sends ends the server.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as wire
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from coordinator.mcp import answers
from coordinator.mcp.tools import INSTRUCTIONS, TOOLS, UNUSED, Tool
from coordinator.resources import program_version
from coordinator.words import requests as rq
from coordinator.words.clock import now_iso
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.mcp")
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """What a call says about its caller. All of it may be made up: it is the client's word.

    Attributes:
        client: how the client program names itself.
        meta: the call's `_meta`.
        request: the HTTP request that it came in; None over standard input.
    """

    client: str = ""
    meta: Mapping[str, Any] | None = None
    request: Any = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call.

    Attributes:
        reply: the coordinator's own, or what it refused.
        notices: further messages for the agent, each once.
    """

    reply: Any
    notices: tuple[rq.Notice, ...] = ()


Serve = Callable[[Tool, dict[str, Any], Caller], Awaitable[Outcome]]


async def carry_out(
    tool: Tool, arguments: Mapping[str, Any], agent: str | None, cwd: str | None,
    ask: Callable[[rq.Request[Any]], Awaitable[Any]],
) -> Outcome:
    """Ask what a tool asks. An agent without hooks gets its notices with every call, because it has
    no other way to hear them.

    Raises:
        Refusal: INVALID, LIMIT: nothing was asked.
    """
    request = tool.asked(arguments, agent, cwd)
    since = now_iso()
    try:
        reply = await ask(request)
    except Refusal as refusal:
        reply = refusal
    if agent is None:
        return Outcome(reply)
    try:
        return await _with_news(reply, agent, ask)
    except anyio.get_cancelled_exc_class():  # its client takes the call back, and gets no answer
        with anyio.CancelScope(shield=True):
            await give_back(agent, reply, ask, since)
        raise


async def give_back(
    agent: str, reply: Any, ask: Callable[[rq.Request[Any]], Awaitable[Any]], since: str,
) -> None:
    """Give back what the call of a lost reply got: the leases, or the task, and none that its agent
    had before. `since`: when it was asked (ISO text, UTC)."""
    new = ([lease for lease in reply.leases if not lease.reentrant]
           if isinstance(reply, rq.Acquired) else [])
    for lease in new:  # by its token: of the same name in another working tree it had one before
        with contextlib.suppress(Refusal):
            await ask(rq.Release(agent=agent, resources=[lease.resource],
                                 lease_token=lease.lease_token))
    with contextlib.suppress(Refusal):
        if isinstance(reply, rq.Claimed) and (reply.task.claimed_at or "") >= since:
            await ask(rq.TaskFail(agent=agent, task=reply.task.task, model_error=True,
                                  reason="whoever asked for it took the question back"))


async def _with_news(
    reply: Any, agent: str, ask: Callable[[rq.Request[Any]], Awaitable[Any]],
) -> Outcome:
    alive = reply
    try:
        if not isinstance(reply, rq.Alive):
            alive = await ask(rq.Heartbeat(agent=agent))
            if alive.hears == "hooks":
                return Outcome(reply)
        if alive.notices:
            # Told here and now: not a second time by the hook, or the call, that comes next.
            await ask(rq.Heartbeat(agent=agent, ack=alive.notices[-1].notice))
    except Refusal:  # its request stands; the notices come the next time
        return Outcome(reply)
    listed = ({message.message for message in reply.items} if isinstance(reply, rq.MessageList)
              else ())
    return Outcome(reply, tuple(notice for notice in alive.notices
                                if notice.data.get("message") not in listed))


def make_server(
    serve: Serve, used: Callable[[], bool] = lambda: True,
    marks: Callable[[Caller], tuple[str, ...]] = lambda caller: (),
) -> Server[Any]:
    """A server whose calls are answered by `serve`. A raised `Refusal` is an answer, too.

    Args:
        used: whether this repository uses coord at all; where it does not, there are no tools.
        marks: arguments that the client's own hooks add to a call; some clients check those, too,
            against what was listed.
    """

    async def list_tools(ctx: Context, params: Any) -> wire.ListToolsResult:
        return wire.ListToolsResult(tools=_described(marks(_caller(ctx))) if used() else [])

    async def call_tool(ctx: Context, params: wire.CallToolRequestParams) -> wire.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(
                wire.INVALID_PARAMS,
                f"There is no tool called {params.name[:60]!r}. There are: {', '.join(TOOLS)}.",
            )
        try:
            if not used():
                raise Refusal(Code.INVALID, UNUSED, next="`coord init`")
            return _make_result(await serve(tool, params.arguments or {}, _caller(ctx)))
        except Refusal as refusal:
            return _make_result(Outcome(refusal))
        except Exception as bad:
            log.exception("%s failed", tool.name)
            bug = Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__}).")
            return _make_result(Outcome(bug))

    return Server(
        "coord", version=program_version(), title="coord", on_list_tools=list_tools,
        on_call_tool=call_tool, instructions=INSTRUCTIONS if used() else UNUSED,
    )


def _make_result(outcome: Outcome) -> wire.CallToolResult:
    text, data = answers.render_reply_text(outcome.reply, outcome.notices)
    return wire.CallToolResult(
        content=[wire.TextContent(type="text", text=text)], structured_content=data,
        is_error=isinstance(outcome.reply, Refusal),
    )


def _described(marks: tuple[str, ...]) -> list[wire.Tool]:
    filled = {name: {"type": "string", "description": "Filled in by coord; leave it out."}
              for name in marks}
    return [
        wire.Tool(
            name=tool.name, title=tool.title, description=tool.description,
            input_schema={**tool.schema, "properties": {**tool.schema["properties"], **filled}},
            annotations=wire.ToolAnnotations(
                title=tool.title, read_only_hint=tool.reads, destructive_hint=False,
                idempotent_hint=tool.again, open_world_hint=False,
            ),
        )
        for tool in TOOLS.values()
    ]


def _caller(ctx: Context) -> Caller:
    client_params = ctx.session.client_params
    name = client_params.client_info.name if client_params is not None else ""
    meta = (ctx.params or {}).get("_meta")
    return Caller(name, meta if isinstance(meta, Mapping) else None, ctx.request)
