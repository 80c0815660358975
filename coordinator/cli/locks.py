"""`coord lock`, `unlock`, `renew`, `locks`: leases by hand."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from coordinator.cli.app import (
    AgentName,
    AsJson,
    agent_or_refuse,
    app,
    ask,
    print_json,
    say,
    seconds,
    width,
)
from coordinator.cli.render import ago, columns, left
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock
from coordinator.words.refusals import Code, Refusal

Resources = Annotated[list[str], typer.Argument(help="Paths, `dir/`, globs, `key:a:b`, regions.")]


@app.command("lock")
def lock(
    resources: Resources,
    agent: AgentName = None,
    ttl: Annotated[str | None, typer.Option(help="How long: 45s, 30m, 2h.")] = None,
    mode: Annotated[str, typer.Option(help="exclusive or shared.")] = "exclusive",
    description: Annotated[str, typer.Option("--description", "-m", help="Why.")] = "",
    task: Annotated[str | None, typer.Option(help="The task it is for.")] = None,
    wait: Annotated[str | None, typer.Option(help="Stand in line this long: 10s.")] = None,
    priority: Annotated[int, typer.Option(help="Higher is served first.")] = 0,
    retry: Annotated[
        bool, typer.Option(help="After a refusal stay in line and get it when it is free.")
    ] = True,
    new: Annotated[bool, typer.Option("--new", help="Also regions that are to be added.")] = False,
    as_json: AsJson = False,
) -> None:
    """Lease resources for an agent, all or none."""
    if mode not in ("exclusive", "shared"):
        raise Refusal(Code.INVALID, f"--mode is exclusive or shared, not {mode!r}.")
    chosen: Literal["exclusive", "shared"] = "shared" if mode == "shared" else "exclusive"
    got = ask(
        rq.Acquire(
            agent=agent_or_refuse(agent), resources=resources, mode=chosen, ttl_s=seconds(ttl),
            description=description, task=task, wait_s=seconds(wait) or 0.0, priority=priority,
            retry=retry, cwd=os.getcwd(), new=new,  # noqa: PTH109
        )
    )
    if as_json:
        print_json(got)
        return
    now = SystemClock().now_ms()
    for lease in got.leases:
        again = " (held already, renewed)" if lease.reentrant else ""
        say(
            f"{lease.resource}  {lease.mode}  {lease.locked_by}  for {left(lease.expires_at, now)}"
            f"  token {lease.fencing_token}{again}"
        )
    for warning in got.warnings:
        say(f"warning: {warning}")


@app.command("unlock")
def unlock(
    resources: Annotated[list[str] | None, typer.Argument(help="What to release.")] = None,
    agent: AgentName = None,
    force: Annotated[bool, typer.Option("--force", help="Override another's lease.")] = False,
    acquisition: Annotated[str | None, typer.Option(help="All of one acquisition.")] = None,
    as_json: AsJson = False,
) -> None:
    """Release leases. `--force` overrides, is recorded, and its holder is told."""
    if not resources and not acquisition:
        raise Refusal(Code.INVALID, "Name what to release.", next="`coord locks` lists it.")
    done = ask(
        rq.Release(
            agent=agent_or_refuse(agent), resources=resources or [], acquisition_id=acquisition,
            force=force, cwd=os.getcwd(),  # noqa: PTH109
        )
    )
    if as_json:
        print_json(done)
        return
    for lease in done.released:
        say(f"released {lease.resource} ({lease.locked_by})")


@app.command("renew")
def renew(
    resources: Annotated[list[str] | None, typer.Argument(help="Default: all it holds.")] = None,
    agent: AgentName = None,
    ttl: Annotated[str | None, typer.Option(help="From now: 45s, 30m, 2h.")] = None,
    as_json: AsJson = False,
) -> None:
    """Extend leases from now, never past max_hold."""
    done = ask(
        rq.Renew(
            agent=agent_or_refuse(agent), resources=resources or [], ttl_s=seconds(ttl),
            cwd=os.getcwd(),  # noqa: PTH109
        )
    )
    if as_json:
        print_json(done)
        return
    for lease in done.leases:
        say(f"{lease.resource} until {lease.expires_at}")
    if not done.leases:
        say("It holds nothing.")


@app.command("locks")
def locks(
    resource: Annotated[str | None, typer.Argument(help="Only what overlaps this.")] = None,
    agent: AgentName = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only who stands in line.")] = False,
    as_json: AsJson = False,
) -> None:
    """Who holds what, for how long, and who waits."""
    found = ask(rq.Locks(agent=agent, resource=resource, cwd=os.getcwd()))  # noqa: PTH109
    if waiting:
        _line(found, as_json)
        return
    if as_json:
        print_json(found)
        return
    if not found.items and not found.waiters:
        say("Nothing is leased.")
        return
    now = SystemClock().now_ms()
    rows = [
        (lease.resource, lease.mode, lease.locked_by, left(lease.expires_at, now),
         " ".join(p for p in (lease.task or "", lease.description) if p))
        for lease in found.items
    ]
    for line in columns(("resource", "mode", "holder", "left", "for"), rows, "/=/=~", width()):
        say(line)
    for waiter in found.waiters:
        say(
            f"waiting {waiter.position}. {waiter.agent} for {', '.join(waiter.resources)} "
            f"since {ago(waiter.asked_at, now)} ({waiter.acquisition_id})"
        )


def _line(found: rq.LockList, as_json: bool) -> None:
    """Who stands in line, for what, behind whom."""
    if as_json:
        print_json({"waiters": found.waiters})
        return
    if not found.waiters:
        say("Nobody stands in line.")
        return
    now = SystemClock().now_ms()
    rows = [
        (str(one.position), one.acquisition_id, one.agent, ", ".join(one.resources),
         ", ".join(one.held_by), ago(one.asked_at, now), one.description)
        for one in found.waiters
    ]
    heads = ("#", "id", "agent", "waits for", "held by", "since", "for")
    for line in columns(heads, rows, "===/==~", width()):
        say(line)
