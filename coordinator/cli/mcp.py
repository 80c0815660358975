"""`coord mcp`: the tools of coord for an agent CLI, over standard input and output."""

from __future__ import annotations

from typing import Annotated

from coordinator.commands.signatures import Option, command


@command("mcp")
def mcp(
    profile: Annotated[str | None, Option("The agent's profile; `coord init` fills it in.")] = None,
) -> None:
    """Serve coord's tools over MCP; an agent CLI runs this, a person need not.

    Over HTTP the same tools are at `/mcp` of the HTTP door (`coord up --http PORT`).
    """
    from coordinator.mcp.stdio import run  # the SDK takes half a second to load

    run(profile)
