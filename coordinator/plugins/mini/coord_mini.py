"""COORD_PLUGIN: mini-swe-agent's local environment, whose commands the coordinator is asked about.

    mini --environment-class coord_mini.CoordEnvironment      (this folder on PYTHONPATH)

bash is its only tool: a command is refused, or run as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from minisweagent.environments.local import LocalEnvironment

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import coord_plain


# mini-swe-agent, which has the base, is not installed where types are checked.
class CoordEnvironment(LocalEnvironment):  # type: ignore[misc]  # its package has no types
    """Asks before each command, and adds the notices for the model afterwards."""

    def execute(self, action: dict[str, Any], cwd: str = "", **more: Any) -> dict[str, Any]:
        """Run the command of `action`, or refuse it."""
        command = action.get("command", "")
        where = cwd or self.config.cwd or str(Path.cwd())
        call = {"tool_name": "bash", "tool_input": {"command": command}, "cwd": where,
                "tool_use_id": str(action.get("tool_call_id", ""))}
        try:
            before = coord_plain.ask("mini", "before", **call)
        except coord_plain.Unanswered as bad:
            before = {"deny": str(bad)}
        if before.get("deny"):
            return {"output": before["deny"], "returncode": 126, "exception_info": ""}
        done: dict[str, Any] = super().execute(action, cwd, **more)
        try:
            after = coord_plain.ask("mini", "after", **call, tool_response=done.get("output", ""))
        except coord_plain.Unanswered:
            after = {}
        if after.get("context"):
            done["output"] = f"{done.get('output', '')}\n{after['context']}"
        return done
