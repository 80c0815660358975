"""The MCP server itself, on the official SDK: lists the tools, checks a call, words its answer.

Who asks whom is handed in (`Serve`): over standard input it is the client and the local socket,
over HTTP the daemon's own router. A refusal is an answer that a model reads (`isError`); only a
malformed call is an error of the protocol. Nothing that a client sends ends the server.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as wire
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from coordinator.mcp import answers
from coordinator.mcp.tools import INSTRUCTIONS, TOOLS, UNUSED, Tool
from coordinator.resources import program_version
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.mcp")
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """What a call tells of whoever makes it. All of it may be made up: it is the client's word.

    Attributes:
        client: how the client program names itself.
        meta: the call's `_meta`.
        request: the HTTP request that it came in; None over standard input.
    """

    client: str = ""
    meta: Mapping[str, Any] | None = None
    request: Any = None


Serve = Callable[[Tool, dict[str, Any], Caller], Awaitable[Any]]


async def carry_out(
    tool: Tool, arguments: Mapping[str, Any], agent: str | None, cwd: str | None,
    ask: Callable[[rq.Request[Any]], Awaitable[Any]],
) -> Any:
    """Ask what a tool asks; the reply.

    Raises:
        Refusal: INVALID, LIMIT, and what the coordinator refused.
    """
    reply = await ask(tool.asked(arguments, agent, cwd))
    if isinstance(reply, rq.Alive) and reply.notices and agent is not None:
        # Told here and now: not a second time by the hook that comes next.
        await ask(rq.Heartbeat(agent=agent, ack=reply.notices[-1].notice))
    return reply


def make_server(
    serve: Serve, used: Callable[[], bool] = lambda: True,
    marks: Callable[[Caller], tuple[str, ...]] = lambda caller: (),
) -> Server[Any]:
    """A server whose calls are answered by `serve` (the reply, or a raised `Refusal`).

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
            reply = await serve(tool, params.arguments or {}, _caller(ctx))
            return _answer(answers.in_words(reply), answers.data(reply))
        except Refusal as refusal:
            return _answer(*answers.refused(refusal), error=True)
        except Exception as bad:
            log.exception("%s failed", tool.name)
            bug = Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__}).")
            return _answer(*answers.refused(bug), error=True)

    return Server(
        "coord", version=program_version(), title="coord", on_list_tools=list_tools,
        on_call_tool=call_tool, instructions=INSTRUCTIONS if used() else UNUSED,
    )


def _answer(text: str, data: dict[str, Any], *, error: bool = False) -> wire.CallToolResult:
    return wire.CallToolResult(
        content=[wire.TextContent(type="text", text=text)], structured_content=data,
        is_error=error,
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
    told = ctx.session.client_params
    name = told.client_info.name if told is not None else ""
    meta = (ctx.params or {}).get("_meta")
    return Caller(name, meta if isinstance(meta, Mapping) else None, ctx.request)
