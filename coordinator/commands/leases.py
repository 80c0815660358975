"""`coord lock`, `unlock`, `renew`, `locks`: leases by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from coordinator.commands import forms
from coordinator.commands.lists import Names, ago, columns, from_root, left
from coordinator.commands.shell import Asking, Shell, ask, seconds
from coordinator.commands.signatures import (
    AgentName,
    Argument,
    AsJson,
    Limit,
    Option,
    Quiet,
    Short,
    command,
)
from coordinator.words import requests as rq
from coordinator.words import texts
from coordinator.words.refusals import Code, Refusal

Resources = Annotated[list[str], Argument("Paths, `dir/`, globs, `key:a:b`, regions.")]


@command("lock")
def lock(
    shell: Shell, *, resources: Resources, agent: AgentName = None,
    ttl: Annotated[
        str | None, Option("How long: 45s, 30m, 2h; what is held for longer stays so.")
    ] = None,
    mode: Annotated[str, Option("exclusive or shared.")] = "exclusive",
    description: Annotated[str, Option("Why.", "-m")] = "",
    task: Annotated[str | None, Option("The task it is for.")] = None,
    wait: Annotated[str | None, Option("Stand in line this long: 10s.")] = None,
    priority: Annotated[int, Option("Higher is served first.")] = 0,
    retry: Annotated[
        bool, Option("After a refusal stay in line, where the agent is there to hear.")
    ] = True,
    new: Annotated[bool, Option("Also regions that are to be added.")] = False,
    as_json: AsJson = False,
) -> Asking:
    """Lease resources for an agent, all or none."""
    if mode not in ("exclusive", "shared"):
        raise Refusal(
            Code.INVALID, f"--mode is exclusive or shared, not {mode!r}. Nothing was leased."
        )
    chosen: Literal["exclusive", "shared"] = "shared" if mode == "shared" else "exclusive"
    got = yield from ask(
        rq.Acquire(
            agent=(yield from shell.acting(agent)),
            resources=resources,
            mode=chosen,
            ttl_s=seconds(ttl, "--ttl"),
            description=description,
            task=task,
            wait_s=seconds(wait, "--wait") or 0.0,
            priority=priority,
            retry=retry,
            cwd=shell.cwd,
            new=new,
            passing=True,
            reentrant=True,  # each command for an agent is by that same agent
        )
    )
    if as_json:
        shell.json(got)
        return
    now = shell.now_ms
    for lease in got.leases:
        again = " (held already, renewed)" if lease.reentrant else ""
        shell.say(
            f"{lease.resource}  {lease.mode}  {lease.locked_by}  for {left(lease.expires_at, now)}"
            f"  token {lease.fencing_token}{again}"
        )
    for warning in got.warnings:
        shell.say(f"warning: {warning}")


@command("unlock")
def unlock(
    shell: Shell, *,
    resources: Annotated[list[str] | None, Argument("What to release.")] = None,
    agent: AgentName = None,
    force: Annotated[bool, Option("Override another's lease.")] = False,
    acquisition: Annotated[str | None, Option("All of one acquisition.")] = None,
    everything: Annotated[bool, Option("All that the agent holds.", "--all")] = False,
    as_json: AsJson = False,
) -> Asking:
    """Release leases. `--force` overrides, is recorded, and its holder is told."""
    if bool(resources) + bool(acquisition) + everything != 1:
        raise Refusal(
            Code.INVALID, "Say what to release: resources, `--acquisition` or `--all`. Nothing "
            "was released.",
            next="`coord locks` lists what is held; `coord unlock RESOURCE…` releases it.",
        )
    who = yield from shell.acting(agent)
    requests = [rq.Release(agent=who, resources=resources or [], acquisition_id=acquisition,
                           force=force, cwd=shell.cwd)]
    if everything:
        # By name in each working tree: an acquisition can be shared with a sub-agent.
        held = (yield from ask(rq.Locks(agent=who))).items
        requests = [rq.Release(agent=who, cwd=tree, resources=[
            lease.resource for lease in held if lease.worktree == tree and lease.locked_by == who])
            for tree in dict.fromkeys(lease.worktree for lease in held)]
    done = rq.Released(released=[])
    for request in requests:
        part = yield from ask(request)
        done = rq.Released([*done.released, *part.released], [*done.reviews, *part.reviews])
    if as_json:
        shell.json(done)
        return
    if not requests:
        shell.say(f"{who} holds nothing.")
    for line in dict.fromkeys(f"released {lease.resource} ({lease.locked_by})"
                              for lease in done.released):
        shell.say(line)
    if done.reviews:
        shell.say(f"What was changed under it is flagged ({', '.join(done.reviews)}): look with "
                  f"`coord review show {done.reviews[0]}`.")


@command("renew")
def renew(
    shell: Shell, *,
    resources: Annotated[list[str] | None, Argument("Default: all it holds.")] = None,
    agent: AgentName = None,
    ttl: Annotated[
        str | None, Option("From now: 45s, 30m, 2h; what is held for longer stays so.")
    ] = None,
    as_json: AsJson = False,
) -> Asking:
    """Extend leases from now, never past max_hold."""
    done = yield from ask(
        rq.Renew(
            agent=(yield from shell.acting(agent)),
            resources=resources or [],
            ttl_s=seconds(ttl, "--ttl"),
            cwd=shell.cwd,
        )
    )
    if as_json:
        shell.json(done)
        return
    for line in dict.fromkeys(f"{lease.resource}  for {left(lease.expires_at, shell.now_ms)}"
                              for lease in done.leases):
        shell.say(line)
    if not done.leases:
        shell.say("It holds nothing.")


@command("locks")
def locks(
    shell: Shell, *,
    resource: Annotated[str | None, Argument("Only what overlaps this.")] = None,
    agent: Annotated[str | None, Option("Only what it holds or waits for.", "-a")] = None,
    waiting: Annotated[bool, Option("Only who stands in line.")] = False,
    limit: Limit = 1000, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """List who holds what, for how long, and who waits."""
    reply = yield from ask(rq.Locks(agent=agent, resource=resource, limit=limit, cwd=shell.cwd))
    if waiting:
        shown = reply.waiters[:limit]
        ids = [waiter.acquisition_id for waiter in shown]
        if not forms.printed(shell, {"waiters": shown}, ids, quiet=quiet, short=short,
                             as_json=as_json):
            _print_waiters(shell, shown, _tell_nobody_waits(agent, resource))
        if len(reply.waiters) > limit:
            forms.cut(shell, limit)
        return
    ids = list(dict.fromkeys(lease.resource for lease in reply.items))
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json,
                     limit=limit):
        return
    if not reply.items and not reply.waiters:
        shell.say(_tell_nothing_held(agent, resource, reply.resource))
        return
    if reply.items:
        _print_leases(shell, reply, limit)
    if reply.waiters:
        if reply.items:
            shell.say("")
        _print_waiters(shell, reply.waiters[:limit])
        if len(reply.waiters) > limit:
            forms.cut(shell, limit)


def _tell_nothing_held(agent: str | None, resource: str | None, named: str | None) -> str:
    """The message that nothing of the asked kind is leased. `named`: the resource from the root."""
    if agent is not None:
        part = "" if resource is None else f" of {named}"
        return f"{agent} holds nothing{part}, and waits for nothing there."
    if resource is None:
        return "Nothing is leased."
    return f"Nobody holds {named}, or anything of it." + from_root(resource, named)


def _tell_nobody_waits(agent: str | None, resource: str | None) -> str:
    if agent is not None:
        return f"{agent} neither waits nor is waited for."
    return "Nobody stands in line" + ("." if resource is None else f" for {resource}.")


def _print_leases(shell: Shell, reply: rq.LockList, limit: int) -> None:
    now = shell.now_ms
    trees = copies(reply.items)
    rows = [
        (
            lease.resource,
            lease.locked_by,
            left(lease.expires_at, now),
            lease.mode,
            " ".join(p for p in (trees.get(lease.fencing_token, ""), lease.task or "",
                                 lease.description) if p),
        )
        for lease in reply.items
    ]
    forms.table(shell, ("resource", "holder", "left", "mode", "for"), "//==~", rows,
                reply.next is not None, f"coord locks --limit {limit * 10}")


def copies(leases: Sequence[rq.Lease]) -> dict[int, str]:
    """The working tree of each lease, by token, if one holder has several copies of a thing."""
    copies_by_file: dict[tuple[str, str], list[rq.Lease]] = {}
    for lease in leases:
        copies_by_file.setdefault((lease.resource, lease.locked_by), []).append(lease)
    return {lease.fencing_token: f"(in {texts.one_line(lease.worktree)})" if lease.worktree
            else "(in the main tree)" for some in copies_by_file.values() if len(some) > 1
            for lease in some}


def _print_waiters(shell: Shell, waiters: Sequence[rq.Waiter], nobody: str = "") -> None:
    """Print the queue: who waits, for what, behind whom. `nobody`: the line for an empty queue."""
    if not waiters:
        shell.say(nobody)
        return
    now = shell.now_ms
    rows = [
        (
            str(waiter.position),
            waiter.acquisition_id,
            waiter.agent,
            Names(waiter.resources),
            Names(waiter.held_by) if waiter.held_by else "nobody, others wait before",
            ago(waiter.asked_at, now),
            waiter.description,
        )
        for waiter in waiters
    ]
    heads = ("#", "id", "agent", "waits for", "held by", "since", "for")
    for line in columns(heads, rows, "==///=~", shell.width):
        shell.say(line)
