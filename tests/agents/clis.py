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
    """A command to run. With `person`, somebody types: the prompt, then a word after each reply."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    home_files: dict[str, str] = field(default_factory=dict)
    person: bool = False


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
        "--dangerously-bypass-approvals-and-sandbox", "--disable", "unified_exec_tty",
        "-C", str(place.repo), *place.extra.argv, place.prompt,
    ]
    return Start(argv, {"SCRIPTED_KEY": "not-a-key"}, {".codex/config.toml": config})


CLIS: dict[str, Callable[[Place], Start]] = {"claude": claude, "codex": codex}


# Where they are installed ----------------------------------------------------------------------


def cache_folder() -> Path:
    """The folder that `scripts/agents.sh` installs into."""
    if named := os.environ.get("COORD_AGENTS_DIR"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coord" / "agents"


@cache
def pins() -> dict[str, str]:
    """Each agent's pinned package, from the script that installs them."""
    listed = subprocess.run(
        [str(ROOT / "scripts" / "agents.sh"), "--list"], capture_output=True, text=True, check=True)
    lines = (line.split() for line in listed.stdout.splitlines())
    return {name: package for name, _registry, package, *_ in lines}


def missing(name: str) -> str:
    """Why an agent cannot be run here, in words; empty when it can."""
    stamp = cache_folder() / name / ".pinned"
    if not stamp.is_file():
        return f"{name} is not installed; install it: scripts/agents.sh {name}"
    if (has := stamp.read_text().strip()) != pins()[name]:
        return f"{name} is {has}, these tests want {pins()[name]}: scripts/agents.sh {name}"
    return ""


def base_environment(home: Path, tmp: Path) -> dict[str, str]:
    """A clean environment: nothing of the person who runs the tests."""
    node = shutil.which("node")
    folders = [*([str(Path(node).parent)] if node else []), "/usr/local/bin", "/usr/bin", "/bin"]
    return {
        "PATH": os.pathsep.join(dict.fromkeys(folders)), "HOME": str(home), "TMPDIR": str(tmp),
        "TERM": "dumb", "LANG": "C.UTF-8", "NO_COLOR": "1", "CI": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
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
