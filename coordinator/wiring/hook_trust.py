"""Whether an agent will run the hooks in its settings. Some ask their person first and silently
skip untrusted hooks.

The profile says how to find out: a file of the agent's that lists trusted folders, the agent's own
app server, asked over its standard input, or a command that loads its plugins.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coordinator.profiles import Trust
from coordinator.wiring import jsonc

#: How long an app server may take to answer (seconds).
PATIENCE_S = 20.0
_MARKS = ("/_hook.py", "coordinator.cli.main")


def trusted(
    trust: Trust, root: Path, home: Path, heard: Callable[[], str | None]
) -> tuple[bool | None, str]:
    """(yes, no, or None if unknown; in words). `heard` tells when a hook of the agent last reached
    the coordinator."""
    if trust.kind == "folders":
        return _folders(trust, root, home)
    if not trust.command or shutil.which(trust.command[0]) is None:
        return None, "it is not installed, so it cannot be asked"
    if trust.kind == "plugin":
        return _loaded(trust.command, root, heard)
    try:
        hooks = _listed(trust.command, root)
    except (OSError, ValueError, KeyError, TypeError) as bad:
        return None, f"its trust cannot be asked ({bad})"
    ours = [hook for hook in hooks if any(mark in json.dumps(hook) for mark in _MARKS)]
    if not ours:
        return False, "it does not see the hooks: the folder is not trusted"
    waiting = [fields for fields in ours if fields.get("trustStatus") != "trusted"]
    if waiting:
        return False, f"{len(waiting)} of {len(ours)} hooks are not approved"
    return True, f"all {len(ours)} hooks are approved"


def _folders(trust: Trust, root: Path, home: Path) -> tuple[bool | None, str]:
    path = home / trust.file.removeprefix("~/")
    try:
        value = jsonc.parse(path.read_text("utf-8")).value
    except FileNotFoundError:
        return False, f"the folder is not trusted ({path} is not there)"
    except (OSError, ValueError) as bad:
        return None, f"{path} cannot be read ({bad})"
    if isinstance(value, dict):
        for folder in (root, *root.parents):
            listed = any(str(folder) in (value.get(name) or ()) for name in trust.lists)
            if listed or value.get(str(folder)) in trust.trusted:
                return True, "the folder is trusted"
    return False, f"the folder is not trusted ({path})"


def _loaded(
    command: tuple[str, ...], root: Path, heard: Callable[[], str | None]
) -> tuple[bool | None, str]:
    """Whether its plugin calls, when the agent loads it."""
    before = heard()
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd=root,
                       timeout=PATIENCE_S, check=False, env=_own_environment())
    except (OSError, subprocess.TimeoutExpired) as bad:
        return None, f"it cannot be asked ({bad})"
    if heard() != before:
        return True, "it loads its plugin, and that reaches the coordinator"
    return False, "it does not load its plugin"


def _own_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("COORD_")}


def _listed(command: tuple[str, ...], root: Path) -> list[dict[str, Any]]:
    """The hooks that an app server sees in this folder."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        cwd=root, env=_own_environment(),
    )
    assert process.stdin is not None and process.stdout is not None
    killer = threading.Timer(PATIENCE_S, process.kill)
    killer.start()
    try:
        asked: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize",
             "params": {"clientInfo": {"name": "coord", "version": "1"}}},
            {"method": "initialized"},
            {"id": 2, "method": "hooks/list", "params": {"cwds": [str(root)]}},
        ]
        for fields in asked:
            process.stdin.write(json.dumps(fields).encode() + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            message = json.loads(line)
            if message.get("id") == 2:
                return [hook for place in message["result"]["data"] for hook in place["hooks"]]
        raise ValueError("no answer")
    finally:
        killer.cancel()
        process.kill()
        process.wait()
