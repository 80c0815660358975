"""`coord agents`: who is registered; `coord agents profiles`: which agent CLIs coord knows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coordinator.cli.app import AsJson, app, ask, out, print_json, say
from coordinator.cli.render import ago, in_line
from coordinator.client.locating import locate_root
from coordinator.files.state import StateDir
from coordinator.profiles import Profile, profiles
from coordinator.wiring.settings_wiring import Wirer
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock

agents = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
app.add_typer(agents, name="agents", help="Registered agents, and the agent CLIs coord knows.")


@agents.callback()
def registered(
    context: typer.Context,
    everyone: Annotated[bool, typer.Option("--all", help="Also those that left.")] = False,
    as_json: AsJson = False,
) -> None:
    """Registered agents: state, what they hold, do and wait for."""
    if context.invoked_subcommand is not None:
        return
    found = ask(rq.Agents(all=everyone))
    if as_json:
        print_json(found)
        return
    if not found.items:
        say("No agent is registered.")
        return
    now = SystemClock().now_ms()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("agent", "state", "seen", "leases", "task", "doing"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in found.items:
        doing = f"waits for {', '.join(row.waiting_for)}" if row.waiting_for else row.progress or ""
        state = f"rests until {row.rests_until[:16]}Z" if row.rests_until else row.state
        table.add_row(row.agent, state, ago(row.seen_at, now), str(row.leases),
                      ", ".join(row.tasks), in_line(doing))
    out().print(table)


@agents.command("profiles")
def list_profiles(as_json: AsJson = False) -> None:
    """Agent CLIs that coord can launch: installed, wired, and the versions that were tried."""
    root = locate_root()
    wirer = Wirer(StateDir(root), Path.home())
    rows = [_facts(profile, wirer) for profile in profiles(root)]
    if as_json:
        print_json({"items": rows, "next": None})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("profile", "installed", "wired", "hooks", "tried", "what"):
        table.add_column(name, no_wrap=name != "what", overflow="fold")
    for row in rows:
        tried = row["versions_tried"]
        table.add_row(str(row["name"]), "yes" if row["installed"] else "no", _wired(row),
                      str(row["hooks"] or "-"),
                      ", ".join(tried) if isinstance(tried, list) and tried else "-",
                      str(row["description"]))
    out().print(table)
    say("next: coord init --agent PROFILE wires one to this repository")


def _facts(profile: Profile, wirer: Wirer) -> dict[str, object]:
    program = profile.command[0] if profile.command else ""
    return {
        "name": profile.name, "description": profile.description,
        "installed": bool(program) and (
            shutil.which(program, path=os.environ.get("PATH")) is not None
            or program == "{python}"
        ),
        "program": program, "wired": wirer.is_wired(profile) if profile.wire else None,
        "hooks": profile.hooks.dialect if profile.hooks else None,
        "versions_tried": list(profile.versions_tried), "source": profile.source,
    }


def _wired(row: dict[str, object]) -> str:
    return "-" if row["wired"] is None else "yes" if row["wired"] else "no"
