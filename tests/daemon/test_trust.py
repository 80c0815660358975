"""What a repository brings counts only once a person has seen it: profiles, settings that weaken."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coordinator._hook as hook_file
from coordinator import settings
from coordinator.words import requests as rq
from tests.conftest import BARE, Repo
from tests.terminal import at_a_terminal

WEAK = "[hooks]\nconfine = false\ngit_wide = 'allow'\n[leases]\nttl_s = 900\n"


def profile(repo: Repo, name: str = "claude-code", more: str = "") -> Path:
    """A profile whose command leaves a mark when it is run."""
    mark = repo.root / "ran"
    repo.write(f"agents/{name}.toml", f'command = ["touch", "{mark}"]\nprompt = "stdin"\n' + more)
    return mark


def untrusted(repo: Repo) -> list[str]:
    return [one["what"] for one in json.loads(repo.coord("trust", "--list", "--json").stdout)["untrusted"]]


def in_force(repo: Repo) -> tuple[dict[str, Any], list[str]]:
    with repo.client() as client:
        health = client.call(rq.Health())
    return health.config["settings"], health.warnings


def test_a_clones_profile_is_not_run_till_it_is_trusted(repo: Repo) -> None:
    mark = profile(repo)
    repo.coord("task", "add", "one")
    for _ in range(2):
        done = repo.coord("launch", "--agent", "claude-code", "-n", "1")
        assert done.returncode == 6, done
        assert "agents/claude-code.toml" in done.stderr and "takes the place of coord's own" in done.stderr
        assert "coord trust" in done.stderr and not mark.exists()
        asked = repo.coord("trust")  # nobody is there to be asked
        assert asked.returncode == 6 and "touch" in asked.stdout and "--yes" in asked.stderr
    assert repo.coord("trust", "--yes").returncode == 0 and untrusted(repo) == []
    repo.coord("launch", "--agent", "claude-code", "-n", "1")
    assert mark.exists()
    mark.unlink()
    # when it is changed, a person is asked again
    profile(repo, more='description = "x"\n')
    assert untrusted(repo) == ["agents/claude-code.toml"]
    repo.coord("task", "add", "two")
    assert repo.coord("launch", "--agent", "claude-code", "-n", "1").returncode == 6 and not mark.exists()
    # and as it was before, neither: only what was seen last counts
    assert repo.coord("trust", "--yes").returncode == 0
    profile(repo)
    assert untrusted(repo) == ["agents/claude-code.toml"]


def test_nothing_else_runs_it_either(repo: Repo) -> None:
    """Doctor asks an agent for its trust by a command of its profile; init writes its settings."""
    mark = repo.root / "ran"
    wire = ('[hooks]\ndialect = "claude"\n[[wire]]\nfile = ".claude/x.json"\n[[wire.set]]\nat = ["a"]\nvalue = \'"{guard}"\'\n'
            f'[trust]\nkind = "plugin"\ncommand = ["touch", "{mark}"]\n')
    for name in ("mine", "claude-code"):
        profile(repo, name, wire)
    repo.write(".claude/x.json", '{"a": "x"}')
    done = repo.coord("doctor")
    assert "agents/mine.toml of this repository is not trusted" in done.stdout and not mark.exists()
    for name in ("mine", "claude-code"):
        refused = repo.coord("init", "--agent", name, "--yes")
        assert refused.returncode == 6 and "no person has trusted it" in refused.stderr, refused
    assert repo.read(".claude/x.json") == '{"a": "x"}'
    known = {one["name"]: one for one in json.loads(repo.coord("agents", "profiles", "--json").stdout)["items"]}
    assert "mine" not in known and str(repo.root) not in known["claude-code"]["source"]
    assert "agents/mine.toml is not used" in repo.coord("agents", "profiles").stderr
    assert repo.coord("trust", "--yes").returncode == 0
    known = {one["name"]: one for one in json.loads(repo.coord("agents", "profiles", "--json").stdout)["items"]}
    assert "not used" not in repo.coord("agents", "profiles").stderr
    assert str(repo.root) in known["mine"]["source"] and str(repo.root) in known["claude-code"]["source"]


def test_hooks_go_by_coords_own_till_then_and_by_the_new_one_at_once(repo: Repo) -> None:
    """A profile could say that no tool writes."""
    repo.coord("up")
    profile(repo, more='[hooks]\ndialect = "claude"\nharmless = ["Write"]\n')
    with repo.client("ann") as ann:
        ann.acquire("a.py")
        assert "leased by ann" in write(repo, "a.py")
        assert repo.coord("trust", "--yes").returncode == 0
        assert write(repo, "a.py") == ""
        assert repo.coord("trust", "--withdraw").stdout == "No longer trusted: agents/claude-code.toml.\n"
        assert "leased by ann" in write(repo, "a.py")


#: A program that runs another: the agent, of which the test itself is no part.
AGENT = "import json, os, subprocess, sys; sys.exit(subprocess.run(json.loads(os.environ['HOOK'])).returncode)"


def write(repo: Repo, path: str) -> str:
    import subprocess

    said = {"session_id": "s", "cwd": str(repo.root), "hook_event_name": "PreToolUse", "tool_name": "Write",
            "tool_use_id": os.urandom(4).hex(), "tool_input": {"file_path": str(repo.root / path), "content": "x"}}
    hook = [sys.executable, "-I", "-S", "-E", str(hook_file.__file__), str(repo.state.socket()), "claude-code"]
    done = subprocess.run([sys.executable, "-c", AGENT], input=json.dumps(said).encode(), capture_output=True,
                          check=True, timeout=60, env={**BARE, "HOOK": json.dumps(hook)})
    return json.loads(done.stdout)["hookSpecificOutput"].get("permissionDecisionReason", "") if done.stdout else ""


def test_settings_that_weaken_count_once_they_are_trusted(repo: Repo) -> None:
    repo.write("coord.toml", WEAK)
    found, warnings = in_force(repo)
    assert found["hooks"]["confine"] and found["hooks"]["git_wide"] == "deny" and found["leases"]["ttl_s"] == 900
    assert len([one for one in warnings if "nobody has trusted it" in one]) == 2
    assert "hooks.confine = false is not used" in repo.coord("status", env={"COLUMNS": "300"}).stdout
    assert repo.coord("doctor").returncode == 1
    done = repo.coord("trust", "--yes")
    assert 'hooks.git_wide = "allow"' in done.stdout and "coord down" in done.stdout and "ttl_s" not in done.stdout
    repo.coord("down")
    found, warnings = in_force(repo)
    assert not found["hooks"]["confine"] and found["hooks"]["git_wide"] == "allow" and warnings == []
    # what does not weaken asks nobody; what does, asks for all of it
    repo.write("coord.toml", WEAK.replace("900", "901"))
    assert untrusted(repo) == []
    repo.write("coord.toml", WEAK + "max_hold_s = 1\n")
    assert untrusted(repo) == ["coord.toml"]
    repo.coord("down")
    found, _ = in_force(repo)
    assert found["hooks"]["confine"] and found["leases"]["max_hold_s"] == settings.Leases().max_hold_s


def test_what_a_person_says_needs_no_trust(repo: Repo, tmp_path: Path) -> None:
    repo.write("coord.toml", WEAK)
    (tmp_path / "mine.toml").write_text("[hooks]\nconfine = false\n")
    loaded = settings.load(repo.root, {"COORD_CONFIG": str(tmp_path / "mine.toml")})
    assert not loaded.settings.hooks.confine and loaded.untrusted == {}
    loaded = settings.load(repo.root, {"COORD_HOOKS_CONFINE": "false"})
    assert not loaded.settings.hooks.confine and loaded.settings.hooks.git_wide == "deny"
    assert list(loaded.untrusted) == ["hooks.git_wide"]


def test_trust_is_for_one_place_and_given_by_people(repo: Repo, tmp_path: Path) -> None:
    profile(repo)
    for env in ({"COORD_AGENT_TOKEN": "x"}, {"COORD_AGENT": "x"}, {"CLAUDE_CODE_SESSION_ID": "x"}):
        refused = repo.coord("trust", "--yes", env=env)
        assert refused.returncode == 6 and "given by people" in refused.stderr
    assert repo.coord("trust", "--yes").returncode == 0
    assert "trusted since" in repo.coord("trust", "--list").stdout
    copy = Repo(tmp_path / "copy")
    shutil.copytree(repo.root, copy.root, ignore=shutil.ignore_patterns(".coord"))
    assert untrusted(copy) == ["agents/claude-code.toml"]
    assert repo.coord("trust", "--withdraw", "--json").returncode == 0
    assert untrusted(repo) == ["agents/claude-code.toml"]
    assert "Nothing of this repository was trusted" in repo.coord("trust", "--withdraw").stdout


def test_a_note_that_others_may_write_is_no_trust(repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    profile(repo)
    assert repo.coord("trust", "--yes").returncode == 0 and untrusted(repo) == []
    (tmp_path / "state/coord/trusted").chmod(0o777)
    assert untrusted(repo) == ["agents/claude-code.toml"]
    refused = repo.coord("trust", "--yes")
    assert refused.returncode == 6 and "Traceback" not in refused.stderr


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_at_a_terminal_is_asked(repo: Repo, answer: str) -> None:
    mark = profile(repo, "mine", 'description = "\\u001b[2J"\n')
    repo.write("agents/mine.toml", repo.read("agents/mine.toml") + "# \u009b2Jgotcha\n")
    repo.coord("task", "add", "one")
    code, shown = at_a_terminal(repo.root, "launch", "--agent", "mine", "-n", "1",
                                at={"[y/N]": f"{answer}\n"})
    assert "Trust agents/mine.toml as it is now?" in shown and "touch" in shown
    assert "\x9b" not in shown and "\\x9b2Jgotcha" in shown
    assert mark.exists() == (answer == "y"), shown
    assert mark.exists() == (answer == "y") and (code == 6) == (answer == "n")


def test_no_default_weakens_and_each_key_exists() -> None:
    assert settings.weakening(msgspec.to_builtins(settings.Settings())) == {}
    for key in settings.WEAKENING:
        section, name = key.split(".")
        assert hasattr(getattr(settings.Settings(), section), name)


@given(st.dictionaries(st.sampled_from([*settings.Settings.__struct_fields__, "x"]), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from([key.split(".")[1] for key in settings.WEAKENING]) | st.text(), inner), max_leaves=8)))
def test_whatever_a_file_says_it_is_looked_through(raw: dict[str, Any]) -> None:
    found = settings.weakening(raw)
    assert set(found) <= set(settings.WEAKENING) and settings.as_shown(found)


def test_with_json_nobody_is_asked_and_the_output_is_json(repo: Repo) -> None:
    profile(repo)
    refused = repo.coord("trust", "--json")
    assert refused.returncode == 6 and json.loads(refused.stdout)["error"]["code"] == "UNTRUSTED"
    assert json.loads(repo.coord("trust", "--json", "--yes").stdout) == {"trusted": ["agents/claude-code.toml"]}
    assert json.loads(repo.coord("trust", "--json").stdout) == {"trusted": []}


def test_settings_with_an_error_do_not_stop_the_doctor(repo: Repo) -> None:
    repo.coord("init")
    repo.write("coord.toml", "[leases\n")
    done = repo.coord("doctor")
    assert done.returncode == 1 and "problem: " in done.stdout and "not valid TOML" in done.stdout, done


def test_a_wrong_name_in_the_settings_is_answered_with_those_there_are(repo: Repo) -> None:
    repo.coord("init")
    (repo.root / settings.FILE).write_text("[notify]\ncomand = 'x'\n")
    told = repo.coord("doctor")
    assert told.returncode == 1 and "`notify` has no field `comand`" in told.stdout
    assert "[notify] takes desktop, command, every_s, per_hour_max" in told.stdout
    (repo.root / settings.FILE).write_text("[notifying]\ndesktop = false\n")
    assert "its sections are leases, sweep, " in repo.coord("doctor").stdout
    (repo.root / settings.FILE).write_text("[notify]\nevery_s = 'soon'\n")
    bad = repo.coord("locks").stderr
    assert "`notify.every_s`" in bad and f"Correct {repo.root / settings.FILE}." in bad
