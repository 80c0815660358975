"""A repository with a coordinator, in which real agents are wired by `coord init`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from coordinator.client.client import Client
from tests.agents.clis import Extra
from tests.agents.stand import Ran, Stand

#: The stand's names, and coord's profile of each.
PROFILES = {"claude": "claude-code", "codex": "codex", "gemini": "gemini", "opencode": "opencode",
            "copilot": "copilot", "qwen": "qwen", "pi": "pi", "aider": "aider", "mini": "mini"}
#: What each needs so that the hooks in the repository are trusted in a run without a person.
TRUST = {
    "codex": lambda repo: Extra(
        argv=("--dangerously-bypass-hook-trust", "--sandbox", "danger-full-access"),
        home_files={".codex/config.toml": f'[projects."{repo}"]\ntrust_level = "trusted"\n'}),
    "gemini": lambda repo: Extra(env={"GEMINI_CLI_TRUST_WORKSPACE": "true"}),
    "copilot": lambda repo: Extra(argv=("--trust-folder",)),
}


class Wired:
    """A repository with a coordinator and wired agents."""

    def __init__(self, root: Path, stand: Stand) -> None:
        self.root, self.stand = root, stand

    def coord(self, *args: str) -> str:
        env = {k: v for k, v in os.environ.items() if not k.startswith("COORD_")}
        done = subprocess.run([sys.executable, "-m", "coordinator.cli.main", *args], cwd=self.root,
                              capture_output=True, text=True, check=False, env=env, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def client(self, agent: str | None = None) -> Client:
        return Client(self.root, agent=agent)

    def extra(self, agent: str) -> Extra:
        return TRUST.get(agent, lambda repo: Extra())(self.root)

    def run(self, agent: str, script: object, more: Extra | None = None, at: str = "", **options: object) -> Ran:
        """As a person types it, in the folder `at`; `more`: what that person has besides."""
        return self.stand.run(agent, self.root / at, script, extra=self._with(agent, more), **options)  # type: ignore[arg-type]

    def run_in_session(self, agent: str, script: object, more: Extra | None = None, at: str = "",
                       **options: object) -> Ran:
        """As a person types it with `coord run` before it, or has it started by a shim."""
        profile = PROFILES[agent]

        def before(argv: list[str]) -> list[str]:
            return [sys.executable, "-P", "-m", "coordinator.cli.main", "run", "--program", argv[0], profile, "--", *argv[1:]]

        return self.stand.run(agent, self.root / at, script, extra=self._with(agent, more), before=before,
                              **options)  # type: ignore[arg-type]

    def _with(self, agent: str, more: Extra | None) -> Extra:
        own = self.extra(agent)
        if more is None:
            return own
        return Extra(argv=(*own.argv, *more.argv), env={**own.env, **more.env},
                     home_files={**own.home_files, **more.home_files}, repo_files={**own.repo_files, **more.repo_files})

    def read(self, path: str) -> str:
        return (self.root / path).read_text()
