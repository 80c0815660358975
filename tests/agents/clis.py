"""How each coding agent is started for a run without a person: binary, flags, settings, keys.

One function for each agent; what they have in common is in `stand`. The flags are those of a
person's unattended run: hooks and rules that a test wants come on top, as `Extra`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = "scripted"


@dataclass(frozen=True)
class Extra:
    """What a test adds to an agent's own settings.

    Paths in `home_files` and `repo_files` are relative to the temporary HOME and the repository;
    a file that the agent's setup has too is merged when both are JSON, otherwise appended to.
    `argv` goes before the prompt.
    """

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    home_files: Mapping[str, str] = field(default_factory=dict)
    repo_files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where one run happens, and which model it talks to."""

    prefix: Path
    repo: Path
    home: Path
    url: str
    prompt: str
    extra: Extra


@dataclass(frozen=True)
class Start:
    """A command to run. With `person`, somebody types: the prompt, then a word after each reply.

    `proxies` is false for an agent that would ask them even for what is on loopback.
    """

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    home_files: dict[str, str] = field(default_factory=dict)
    person: bool = False
    proxies: bool = True


def _npm(place: Place, name: str) -> str:
    return str(place.prefix / "node_modules" / ".bin" / name)


def claude(place: Place) -> Start:
    argv = [
        _npm(place, "claude"), "-p", "--output-format", "stream-json", "--verbose",
        "--permission-mode", "acceptEdits", "--allowedTools=Bash", *place.extra.argv,
        "--", place.prompt,
    ]
    return Start(argv, {
        "ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": "not-a-key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
    })


def codex(place: Place) -> Start:
    config = f"""\
model = "gpt-5.5"  # a name it knows: others get no apply_patch
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{place.url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""
    argv = [
        _npm(place, "codex"), "exec", "--json", "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "-C", str(place.repo), *place.extra.argv, place.prompt,
    ]
    return Start(argv, {"SCRIPTED_KEY": "not-a-key"}, {".codex/config.toml": config})


def gemini(place: Place) -> Start:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    argv = [
        _npm(place, "gemini"), "-o", "stream-json", "--approval-mode", "yolo",
        "-m", "gemini-2.5-pro", *place.extra.argv, "-p", place.prompt,
    ]
    return Start(argv, {
        "GEMINI_API_KEY": "not-a-key", "GOOGLE_GEMINI_BASE_URL": place.url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_TELEMETRY_ENABLED": "false",
    }, {".gemini/settings.json": json.dumps(settings)})


def opencode(place: Place) -> Start:
    config = {
        "autoupdate": False, "share": "disabled",
        "model": f"scripted/{MODEL}", "small_model": f"scripted/{MODEL}",
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "options": {"baseURL": f"{place.url}/v1", "apiKey": "not-a-key"},
            "models": {MODEL: {
                "name": MODEL, "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}},
        }},
    }
    argv = [_npm(place, "opencode"), "run", "--format", "json", *place.extra.argv, place.prompt]
    return Start(argv, {
        "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        # It asks npm for its plugin library at each start; without a network it would wait long.
        "npm_config_offline": "true", "npm_config_fetch_retries": "0",
    }, {".config/opencode/opencode.json": json.dumps(config)})


def copilot(place: Place) -> Start:
    argv = [
        _npm(place, "copilot"), "--output-format", "json", "--allow-all-tools", "--no-auto-update",
        "--disable-client-telemetry", *place.extra.argv, "-p", place.prompt,
    ]
    return Start(argv, {
        "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_PROVIDER_BASE_URL": f"{place.url}/v1", "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_WIRE_API": "completions", "COPILOT_PROVIDER_API_KEY": "not-a-key",
        "COPILOT_MODEL": "claude-sonnet-4.5",  # the name decides the tools: edit, create, bash
    })


def qwen(place: Place) -> Start:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
    }
    argv = [
        _npm(place, "qwen"), "-o", "stream-json", "--approval-mode", "yolo", "--auth-type",
        "openai", "--openai-api-key", "not-a-key", "--openai-base-url", f"{place.url}/v1",
        "-m", MODEL, *place.extra.argv, "-p", place.prompt,
    ]
    return Start(argv, {"QWEN_TELEMETRY_ENABLED": "false"},
                 {".qwen/settings.json": json.dumps(settings)}, proxies=False)


def pi(place: Place) -> Start:
    models = {"providers": {"scripted": {
        "baseUrl": f"{place.url}/v1", "api": "openai-completions", "apiKey": "not-a-key",
        "models": [{"id": MODEL}]}}}
    argv = [
        _npm(place, "pi"), "-p", "--mode", "json", "--model", f"scripted/{MODEL}",
        *place.extra.argv, place.prompt,
    ]
    return Start(argv, {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
                 {".pi/agent/models.json": json.dumps(models)})


def aider(place: Place) -> Start:
    """In a conversation, not with one message: it needs somebody to go on after an edit."""
    tracked = subprocess.run(
        ["git", "-C", str(place.repo), "ls-files"], capture_output=True, text=True, check=True)
    files = [word for name in tracked.stdout.splitlines()[:50] for word in ("--file", name)]
    argv = [
        str(place.prefix / "bin" / "aider"), "--model", f"openai/{MODEL}", "--edit-format", "diff",
        "--yes-always", "--no-auto-commits", "--no-dirty-commits", "--no-check-update",
        "--analytics-disable", "--no-analytics", "--no-gitignore", "--no-suggest-shell-commands",
        "--no-detect-urls", "--no-show-model-warnings", "--no-show-release-notes", "--no-pretty",
        "--no-fancy-input", "--disable-playwright", "--map-tokens", "0", *files, *place.extra.argv,
    ]
    return Start(argv, {
        "OPENAI_API_BASE": f"{place.url}/v1", "OPENAI_API_KEY": "not-a-key",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONUNBUFFERED": "1",
    }, person=True)


def mini(place: Place) -> Start:
    argv = [
        str(place.prefix / "bin" / "mini"), "-m", f"openai/{MODEL}", "-y", "--exit-immediately",
        "-l", "0", "-o", str(place.home / "trajectory.json"), *place.extra.argv,
        "-t", place.prompt,
    ]
    return Start(argv, {
        "OPENAI_API_BASE": f"{place.url}/v1", "OPENAI_API_KEY": "not-a-key",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1", "MSWEA_COST_TRACKING": "ignore_errors",
    })


CLIS: dict[str, Callable[[Place], Start]] = {
    "claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode, "copilot": copilot,
    "aider": aider, "mini": mini, "qwen": qwen, "pi": pi,
}


# Where they are installed ----------------------------------------------------------------------


def cache_folder() -> Path:
    """The folder that `scripts/agents.sh` installs into."""
    if named := os.environ.get("COORD_AGENTS_DIR"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coord" / "agents"


#: The Node that an agent's JavaScript needs; the others bring a binary that runs by itself.
NODE = {"codex": 16, "copilot": 18, "gemini": 20, "qwen": 20, "pi": 20, "conformance": 20}


@cache
def pins() -> dict[str, str]:
    """What each agent is pinned to, from the script that installs them."""
    listed = subprocess.run(
        [str(ROOT / "scripts" / "agents.sh"), "--list"], capture_output=True, text=True, check=True)
    lines = (line.split(" ", 2) for line in listed.stdout.splitlines())
    return {name: packages for name, _registry, packages in lines}


def missing(name: str) -> str:
    """Why an agent cannot be run here, in words; empty when it can."""
    stamp = cache_folder() / name / ".pinned"
    if not stamp.is_file():
        return f"{name} is not installed; install it: scripts/agents.sh {name}"
    if (has := stamp.read_text().strip()) != pins()[name]:
        return f"{name} is {has}, these tests want {pins()[name]}: scripts/agents.sh {name}"
    if (least := NODE.get(name)) and least > node_version():
        return f"{name} needs Node {least}; here is {node_version() or 'none'}"
    return ""


@cache
def node_version() -> int:
    """Node's major version; 0 where there is none."""
    if (node := shutil.which("node")) is None:
        return 0
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return int(told.lstrip("v").split(".")[0])


def base_environment(prefix: Path, home: Path, tmp: Path) -> dict[str, str]:
    """A clean environment: nothing of the person who runs the tests, but the agent on the PATH."""
    own = prefix / "node_modules" / ".bin"
    node = shutil.which("node")
    folders = [
        str(own if own.is_dir() else prefix / "bin"), *([str(Path(node).parent)] if node else []),
        "/usr/local/bin", "/usr/bin", "/bin",
    ]
    return {
        "PATH": os.pathsep.join(dict.fromkeys(folders)), "HOME": str(home), "TMPDIR": str(tmp),
        "TERM": "dumb", "LANG": "C.UTF-8", "NO_COLOR": "1", "CI": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        # what is noted of these coordinators, and trusted, is no person's own
        **{name: os.environ[name] for name in ("XDG_STATE_HOME",) if name in os.environ},
    }


def merged(own: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Setting files of two origins: JSON objects are merged key by key, other text is joined."""
    result = dict(own)
    for path, text in more.items():
        if path not in result:
            result[path] = text
        elif path.endswith(".json"):
            result[path] = json.dumps(_deep(json.loads(result[path]), json.loads(text)))
        else:
            result[path] += "\n" + text
    return result


def _deep(one: object, two: object) -> object:
    if isinstance(one, dict) and isinstance(two, dict):
        return {**one, **{k: _deep(one.get(k), v) if k in one else v for k, v in two.items()}}
    return two
