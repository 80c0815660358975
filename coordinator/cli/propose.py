"""`coord propose`: a change without a lease, applied if what it was made from still stands."""

from __future__ import annotations

import os
from typing import Annotated

from coordinator.cli.app import agent_or_refuse, ask, carry_out, print_json, say
from coordinator.cli.text_files import read_text
from coordinator.commands.signatures import AgentName, Argument, AsJson, Option, command
from coordinator.slices.messages.commands import news
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal


@command("propose")
def propose(
    resource: Annotated[str, Argument("A file, a region (path::name) or a key.")],
    version: Annotated[str | None, Option(
        "What you read: `sha256:…`, of a key its number; left out: it is not there yet.")] = None,
    content: Annotated[
        str | None, Option("File with the new content; `-`: standard input.", "--from")
    ] = None,
    patch: Annotated[
        str | None, Option("File with a unified diff (of a key, a merge patch); `-`.")
    ] = None,
    delete: Annotated[bool, Option("Remove it.")] = False,
    agent: AgentName = None,
    note: Annotated[str, Option("Why.", "-m")] = "",
    retry: Annotated[bool, Option("Where others hold it: keep it, and try again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Change a file, region or key without a lease, if nobody has changed it since you read it."""
    if (content is not None) + (patch is not None) + delete != 1:
        raise Refusal(
            Code.INVALID, f"{resource}: say what it is to be by one of --from, --patch and "
            "--delete. Nothing was written.", next="coord propose --help")
    writer = agent_or_refuse(agent)
    made = ask(
        rq.Propose(
            agent=writer, note=note, retry=retry, cwd=os.getcwd(),  # noqa: PTH109
            changes=[rq.ProposedChange(
                resource=resource, version=version, delete=delete,
                content=read_text(content) if content is not None else None,
                patch=read_text(patch) if patch is not None else None)],
        )
    )
    if as_json:
        print_json(made)
        return
    for proposed in made.changes:
        say(f"{proposed.resource}  {proposed.version or 'removed'}")
    for warning in made.warnings:
        say(f"warning: {warning}")
    carry_out(news, agent=writer)
