"""What a session brings along in a folder in which its agent reads no settings of the repository."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from coordinator.files.state import StateDir
from coordinator.profiles import Profile, load
from coordinator.wiring import session_wiring
from coordinator.wiring.session_wiring import Brought, bring
from coordinator.wiring.settings_wiring import Wirer
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo


def wired(repo: Repo, home: Path, name: str, *, user: bool = False) -> tuple[Profile, StateDir]:
    state, profile = StateDir(repo.root), load(name, repo.root)
    state.create()
    wirer = Wirer(state, home, user=user, mcp=True)
    wirer.apply(profile, wirer.plan(profile))
    (repo.root / "lib").mkdir(exist_ok=True)
    return profile, state


def hooks(file: Path) -> Any:
    return json.loads(file.read_text())["hooks"]


def test_below_the_root_it_brings_what_is_wired_at_the_root(repo: Repo, tmp_path: Path) -> None:
    profile, state = wired(repo, tmp_path, "copilot")
    brought = bring(profile, state, tmp_path, repo.root / "lib", [], {})
    folder = repo.root / ".coord/sessions/copilot"
    assert brought.arguments == ["--plugin-dir", str(folder), "--additional-mcp-config", f"@{folder}/mcp.json"]
    assert hooks(folder / "hooks.json") == hooks(repo.root / ".github/hooks/coord.json")
    assert not any(path.name in (".github", ".gemini") for path in (repo.root / "lib").iterdir())


@pytest.mark.parametrize("words", [[], ["-p", "say -C"], ["--model", "x"]])
def test_nothing_runs_twice_at_the_root(repo: Repo, tmp_path: Path, words: list[str]) -> None:
    profile, state = wired(repo, tmp_path, "copilot")
    assert bring(profile, state, tmp_path, repo.root, words, {}) == Brought()


@pytest.mark.parametrize("words", [["-C", "lib"], ["-Clib"], ["--resume=1234"], ["-p", "go on", "--continue"]])
def test_an_option_with_which_it_works_elsewhere_counts(repo: Repo, tmp_path: Path, words: list[str]) -> None:
    profile, state = wired(repo, tmp_path, "copilot")
    assert bring(profile, state, tmp_path, repo.root, words, {}).arguments


@pytest.mark.parametrize("name", ["copilot", "gemini"])
def test_where_all_folders_are_wired_or_none_nothing_is_brought(repo: Repo, tmp_path: Path, name: str) -> None:
    profile, state = wired(repo, tmp_path, name, user=True)
    assert bring(profile, state, tmp_path, repo.root / "lib", [], {}) == Brought()
    assert session_wiring.describe_sessions(profile, state, tmp_path) == ""
    elsewhere = tmp_path / "nobody"
    assert bring(profile, state, elsewhere, repo.root / "lib", [], {}) == Brought()


def test_an_agent_that_brings_its_settings_from_anywhere_needs_nothing(repo: Repo, tmp_path: Path) -> None:
    profile, state = wired(repo, tmp_path, "claude-code")
    assert bring(profile, state, tmp_path, repo.root / "lib", [], {}) == Brought()
    assert session_wiring.describe_sessions(profile, state, tmp_path) == ""


def test_gemini_takes_no_file_that_others_can_write_and_that_is_said(repo: Repo, tmp_path: Path) -> None:
    profile, state = wired(repo, tmp_path, "gemini")
    repo.root.chmod(0o777)
    with pytest.raises(Refusal) as caught:
        bring(profile, state, tmp_path, repo.root / "lib", [], {})
    assert caught.value.code is Code.INVALID and "coord init --agent gemini --user" in str(caught.value.next)
    assert "not leased" in session_wiring.describe_sessions(profile, state, tmp_path)


@pytest.mark.parametrize("variables", [
    {"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": "{own}/system-defaults.json"},
    {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "{own}/settings.json"},
])
def test_a_persons_system_defaults_stay_in_force(
    repo: Repo, tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_wiring, "_is_roots", lambda path: path != Path(tmp_path / "open.json"))
    profile, state = wired(repo, tmp_path, "gemini")
    own = tmp_path / "own"
    own.mkdir()
    mine = {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "mine"}]}]}, "ui": {"theme": "x"}}
    (own / "system-defaults.json").write_text(json.dumps(mine))
    given = {key: value.format(own=own) for key, value in variables.items()}
    brought = bring(profile, state, tmp_path, repo.root / "lib", [], given)
    made = json.loads(Path(brought.environment["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"]).read_text())
    assert made["ui"] == {"theme": "x"} and made["hooks"]["BeforeTool"][0] == mine["hooks"]["BeforeTool"][0]  # type: ignore[index]
    project = json.loads((repo.root / ".gemini/settings.json").read_text())
    assert made["hooks"]["BeforeTool"][1:] == project["hooks"]["BeforeTool"]
    assert made["mcpServers"] == project["mcpServers"]
    assert json.loads((own / "system-defaults.json").read_text()) == mine
    # One that Gemini would pass over does not come in by coord's hand; one with an error stops it.
    (tmp_path / "open.json").write_text('{"ui": {"theme": "theirs"}}')
    given = {"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(tmp_path / "open.json")}
    bring(profile, state, tmp_path, repo.root / "lib", [], given)
    assert "theirs" not in (repo.root / ".coord/sessions/gemini/settings.json").read_text()
    (own / "system-defaults.json").write_text("{")
    with pytest.raises(Refusal):
        bring(profile, state, tmp_path, repo.root / "lib", [], {"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(own / "system-defaults.json")})


def test_only_root_can_write_is_asked_of_every_folder_above(tmp_path: Path) -> None:
    assert session_wiring._is_roots(Path("/proc/1/absent")) is (os.stat("/proc").st_uid == 0)
    assert not session_wiring._is_roots(Path("/tmp/absent"))
