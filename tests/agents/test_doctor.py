"""What `coord doctor` says of a wired agent is what the agent itself does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.agents.clis import Extra
from tests.agents.conftest import need
from tests.agents.conversation import Create, Say, Script, Scripted
from tests.agents.wired import Wired

pytestmark = pytest.mark.agents


def doctor(wired: Wired, agent: str) -> tuple[Callable[[], str], Path, dict[str, str]]:
    """What `coord doctor` says beside this agent; the agent's home, and its environment."""
    need(agent)
    wired.coord("init", "--agent", agent, "--yes")
    ready = wired.stand.prepare(agent, wired.root, [])
    env = {k: v for k, v in ready.env.items() if not k.startswith("COORD_")}

    def said() -> str:
        return subprocess.run([sys.executable, "-m", "coordinator.cli.main", "doctor"], cwd=wired.root, env=env,
                              capture_output=True, text=True, check=False, timeout=120).stdout

    return said, ready.home, env


def test_the_doctor_tells_what_codex_will_pass_over(wired: Wired) -> None:
    said, home, _ = doctor(wired, "codex")
    config = home / ".codex/config.toml"
    assert "the folder is not trusted" in said()
    config.write_text(config.read_text() + f'\n[projects."{wired.root}"]\ntrust_level = "trusted"\n')
    assert "hooks are not approved" in said()


def test_the_doctor_sees_opencode_load_its_plugin(wired: Wired, tmp_path: Path) -> None:
    said, _, env = doctor(wired, "opencode")
    assert "it loads its plugin, and that reaches the coordinator" in said()
    # A person's habit that switches plugins off.
    real = shutil.which("opencode", path=env["PATH"])
    habit = tmp_path / "bin" / "opencode"
    habit.parent.mkdir()
    habit.write_text(f'#!/bin/sh\nexec "{real}" --pure "$@"\n')
    habit.chmod(0o755)
    env["PATH"] = f"{habit.parent}:{env['PATH']}"
    assert "it does not load its plugin" in said()


@pytest.mark.parametrize("key", ["trusted_folders", "trustedFolders"])
def test_the_doctor_reads_whom_copilot_trusts_as_copilot_does(wired: Wired, key: str) -> None:
    said, home, _ = doctor(wired, "copilot")
    assert "the folder is not trusted" in said()
    config = json.dumps({key: [str(wired.root)]})

    def script(_: Scripted) -> Script:
        yield Create("a.txt", "1\n")
        yield Say("done")

    wired.stand.run("copilot", wired.root, script, prompt="x",
                    extra=Extra(home_files={".copilot/config.json": "// mine\n" + config}))
    with wired.client() as client:  # its hooks came, without the flag
        assert [one for one in client.call(rq.Agents(all=True)).items if one.hooked_at]
    (home / ".copilot").mkdir(exist_ok=True)
    (home / ".copilot/config.json").write_text("// mine\n" + config)
    assert "the folder is trusted" in said()
