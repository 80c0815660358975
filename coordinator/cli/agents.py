"""`coord agents profiles`: which agent CLIs can be used."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from coordinator.cli.app import complain, print_json, say, width
from coordinator.client.locating import locate_root
from coordinator.commands.lists import columns
from coordinator.commands.signatures import AsJson, Quiet, command
from coordinator.files.state import StateDir
from coordinator.profiles import Profile, profiles, untrusted
from coordinator.wiring.settings_wiring import Wirer


@command("agents profiles")
def list_profiles(quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Agent CLIs that coord can launch: installed, wired, and the versions that were tried."""
    root = locate_root()
    wirer = Wirer(StateDir(root), Path.home())
    rows = [_facts(profile, wirer) for profile in profiles(root)]
    for name in untrusted(root):
        complain(f"coord: agents/{name}.toml is not used: no person has trusted it; `coord trust` "
                 "shows it.")
    if as_json:
        print_json({"items": rows, "next": None})
        return
    if quiet:
        for row in rows:
            say(str(row["name"]))
        return
    profile_rows = []
    for row in rows:
        tried = row["versions_tried"]
        profile_rows.append((str(row["name"]), "yes" if row["installed"] else "no", _wired(row),
                     str(row["hooks"] or "-"),
                     ", ".join(tried) if isinstance(tried, list) and tried else "-",
                     str(row["description"])))
    heads = ("profile", "installed", "wired", "hooks", "tried", "what")
    for line in columns(heads, profile_rows, "====~~", width()):
        say(line)
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
