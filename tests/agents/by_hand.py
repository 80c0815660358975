"""Hooks and MCP servers wired by hand, to try the stand itself.

What `coord` writes for an agent is tested elsewhere with its own files; here a gate of a few lines
refuses what touches one file and adds a remark to all else, in each agent's manner.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from tests.agents.clis import Extra

REFUSAL = "GATE: taken.txt is somebody else's for now."
REMARK = "GATE: noted."

_GATE = f"""\
import json, sys
call = json.load(sys.stdin)
event, after = call["hook_event_name"], call["hook_event_name"] in ("PostToolUse", "AfterTool")
taken = "taken.txt" in json.dumps(call["tool_input"])
if after:
    said = {{"hookSpecificOutput": {{"hookEventName": event, "additionalContext": {REMARK!r}}}}}
elif not taken:
    said = None
elif event == "BeforeTool":
    said = {{"decision": "deny", "reason": {REFUSAL!r}}}
else:
    said = {{"hookSpecificOutput": {{"hookEventName": event, "permissionDecision": "deny",
                                   "permissionDecisionReason": {REFUSAL!r}}}}}
if said and sys.argv[1:] == ["copilot"]:  # remarks at the top; for Codex that is an error
    said = {{**said["hookSpecificOutput"], **said}}
if said:
    print(json.dumps(said))
"""

_PLUGIN = f"""\
export const Gate = async () => ({{
  "tool.execute.before": async (input, output) => {{
    if (JSON.stringify(output.args).includes("taken.txt")) throw new Error({json.dumps(REFUSAL)})
  }},
  "tool.execute.after": async (input, output) => {{ output.output += "\\n" + {json.dumps(REMARK)} }},
}})
"""

_EXTENSION = f"""\
export default function (pi: any) {{
  pi.on("tool_call", async (event: any) => {{
    if (JSON.stringify(event.input).includes("taken.txt"))
      return {{ block: true, reason: {json.dumps(REFUSAL)} }}
  }})
}}
"""


def gate(agent: str, folder: Path) -> Extra | None:
    """Settings with a gate in them; None for agents which have no hooks of their own."""
    program = folder / "gate.py"
    program.write_text(_GATE)
    command = shlex.join([sys.executable, str(program)])

    def hooks(before: str, after: str, seconds: int) -> dict[str, object]:
        hook = {"type": "command", "command": command, "timeout": seconds}
        return {"hooks": {e: [{"matcher": "*", "hooks": [hook]}] for e in (before, after)}}

    claude = json.dumps(hooks("PreToolUse", "PostToolUse", 30))
    milliseconds = 30_000
    match agent:
        case "claude":
            return Extra(repo_files={".claude/settings.json": claude})
        case "codex":
            return Extra(("--dangerously-bypass-hook-trust",),
                         home_files={".codex/hooks.json": claude})
        case "gemini":
            settings = json.dumps(hooks("BeforeTool", "AfterTool", milliseconds))
            return Extra(home_files={".gemini/settings.json": settings})
        case "qwen":
            settings = json.dumps(hooks("PreToolUse", "PostToolUse", milliseconds))
            return Extra(home_files={".qwen/settings.json": settings})
        case "copilot":
            hook = {"type": "command", "bash": f"{command} copilot", "timeoutSec": 30}
            copilot = {"version": 1, "hooks": {"PreToolUse": [hook], "PostToolUse": [hook]}}
            return Extra(home_files={".copilot/hooks/gate.json": json.dumps(copilot)})
        case "opencode":
            return Extra(repo_files={".opencode/plugins/gate.js": _PLUGIN})
        case "pi":
            extension = folder / "gate.ts"
            extension.write_text(_EXTENSION)
            return Extra(("-e", str(extension)))
    return None


_SERVER = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    params = asked.get("params", {})
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"}}
    elif asked["method"] == "tools/list":
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        answer["result"] = {"tools": [
            {"name": "repeat", "description": "Repeats a word", "inputSchema": schema}]}
    elif asked["method"] == "tools/call":
        text = "ECHO " + params["arguments"]["word"]
        answer["result"] = {"content": [{"type": "text", "text": text}]}
    elif asked["method"] == "ping":
        answer["result"] = {}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"""


def echo_server(agent: str, folder: Path) -> Extra | None:
    """Settings with an MCP server `echo` that has one tool, `repeat`; None where MCP is unknown."""
    program = folder / "echo.py"
    program.write_text(_SERVER)
    stdio = {"command": sys.executable, "args": [str(program)]}
    config = folder / "mcp.json"

    def claude() -> Extra:
        config.write_text(json.dumps({"mcpServers": {"echo": {"type": "stdio", **stdio}}}))
        return Extra((f"--mcp-config={config}", "--strict-mcp-config", "--allowedTools=mcp__echo"))

    def codex() -> Extra:
        text = f'[mcp_servers.echo]\ncommand = "{sys.executable}"\nargs = ["{program}"]\n'
        return Extra(home_files={".codex/config.toml": text})

    def opencode() -> Extra:
        local = {"type": "local", "command": [sys.executable, str(program)], "enabled": True}
        text = json.dumps({"mcp": {"echo": local}})
        return Extra(home_files={".config/opencode/opencode.json": text})

    def copilot() -> Extra:
        text = json.dumps({"mcpServers": {"echo": {"type": "local", **stdio, "tools": ["*"]}}})
        return Extra(home_files={".copilot/mcp-config.json": text})

    trusted = json.dumps({"mcpServers": {"echo": {**stdio, "trust": True}}})
    known: dict[str, Callable[[], Extra]] = {
        "claude": claude, "codex": codex, "opencode": opencode, "copilot": copilot,
        "gemini": lambda: Extra(home_files={".gemini/settings.json": trusted}),
        "qwen": lambda: Extra(home_files={".qwen/settings.json": trusted}),
    }
    return known[agent]() if agent in known else None
