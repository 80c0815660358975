"""The SDK's own client, talking to the real server as an agent CLI does."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from coordinator.mcp.stdio import StdioServer
from coordinator.words import requests as rq
from tests.conftest import Repo

COMMAND = ["-P", "-m", "coordinator.cli.main", "mcp"]


def server(repo: Repo, profile: str | None = "claude-code", **env: str) -> StdioServer:
    """What `coord mcp` is inside, without a process of its own: these tests are many."""
    return StdioServer(repo.root, env, profile, str(repo.root))


def process(repo: Repo, profile: str | None = "claude-code", **env: str) -> StdioServerParameters:
    """The command that `coord init` writes into an agent's settings."""
    args = [*COMMAND, *(["--profile", profile] if profile else [])]
    return StdioServerParameters(command=sys.executable, args=args, cwd=str(repo.root),
                                 env={**os.environ, **env})


def talk(to: Any, script: Callable[[Client], Awaitable[Any]], mode: str = "auto") -> Any:
    """What `script` returns, given a connected client. A server that hangs fails the test."""

    async def run() -> Any:
        with anyio.fail_after(60):
            made = to.server() if isinstance(to, StdioServer) else to
            async with Client(made, mode=mode) as client:
                result = await script(client)
            if isinstance(to, StdioServer):
                await to.leave()
            return result

    return anyio.run(run)


def over_http(repo: Repo, token: str | None, agent: str | None = None) -> Any:
    """A transport to `/mcp` of the HTTP door."""
    told = {} if token is None else {"Authorization": f"Bearer {token}"}
    if agent is not None:
        told["Coord-Agent"] = agent
    base = repo.state.http.read_text().strip()
    return streamable_http_client(f"{base}/mcp", http_client=httpx2.AsyncClient(headers=told))


def text(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


def code(result: Any) -> str:
    """The code of a refusal, which the text begins with."""
    assert result.is_error, result
    found = str(result.structured_content["error"]["code"])
    assert text(result).startswith(found + ": ")
    return found


def holders(repo: Repo, resource: str | None = None) -> dict[str, str]:
    with repo.client() as client:
        found = client.call(rq.Locks(resource=resource)).items
        return {one.resource: one.locked_by for one in found}


def agents(repo: Repo) -> list[str]:
    with repo.client() as client:
        return [one.agent for one in client.call(rq.Agents()).items]
