"""A home in which coord's plugin was installed by the agent CLI's own command, as a person does it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from tests.agents import offline
from tests.agents.clis import ROOT, Extra, base_environment, cache_folder
from tests.agents.stand import Ran
from tests.agents.wired import TRUST, Wired

#: What a person types, from a checkout of coord.
INSTALL = {
    "claude": (("claude", "plugin", "marketplace", "add", str(ROOT)),
               ("claude", "plugin", "install", "coord@coord")),
    "gemini": (("gemini", "extensions", "install", str(ROOT / "plugins/gemini"), "--consent"),),
    "opencode": (),
}
#: How the plugin's server is called where it has another name than in a person's own settings.
SERVER = {"claude": "plugin_coord_coord"}


@dataclass
class Plugged:
    """One home, for the runs of one agent in one repository.

    Args:
        has_coord: whether the machine has coord's commands.
    """

    agent: str
    wired: Wired
    home: Path
    has_coord: bool = True

    def install(self) -> None:
        """By the CLI's own command; a question of it is answered with yes."""
        self.home.mkdir(parents=True)
        prefix = cache_folder() / self.agent
        env = {**base_environment(prefix, self.home, self.home.parent), **offline.environment(),
               "GEMINI_API_KEY": "not-a-key"}
        for words in INSTALL[self.agent]:
            done = subprocess.run(words, cwd=self.home, env=env, capture_output=True, text=True, check=False,
                                  input="y\n" * 3, timeout=60)
            assert done.returncode == 0, done.stdout + done.stderr
        if self.agent == "opencode":
            where = self.home / ".config/opencode/opencode.json"
            where.parent.mkdir(parents=True)
            where.write_text(json.dumps({"plugin": [f"file://{ROOT}/plugins/opencode"]}))

    def run(self, script: object, *, argv: tuple[str, ...] = ()) -> Ran:
        """As a person types it; only PATH tells where coord is."""
        before = TRUST.get(self.agent, lambda repo: Extra())(self.wired.root)
        there = base_environment(cache_folder() / self.agent, self.home, self.home)["PATH"]
        path = f"{there}:{self._commands()}" if self.has_coord else there
        kept = {}
        if self.agent == "opencode":  # the stand writes its settings, too
            kept[".config/opencode/opencode.json"] = json.dumps({"plugin": [f"file://{ROOT}/plugins/opencode"]})
        extra = replace(before, argv=(*before.argv, *argv), env={**before.env, "PATH": path}, home_files=kept)
        return self.wired.stand.run(self.agent, self.wired.root, script, home=self.home, extra=extra)  # type: ignore[arg-type]

    def _commands(self) -> Path:
        """A folder with coord's commands and nothing else, as `uv tool install` makes one."""
        folder = self.home.parent / "commands"
        folder.mkdir(exist_ok=True)
        for name in ("coord", "coord-plugin"):
            found = Path(sys.executable).parent / name
            assert found.is_file(), f"{found} is missing: make setup"
            if not (folder / name).exists():
                os.symlink(found, folder / name)
        return folder


def no_coord_on_path() -> bool:
    """Whether this machine's own folders have no coord that would be found all the same."""
    return shutil.which("coord-plugin", path="/usr/local/bin:/usr/bin:/bin") is None
