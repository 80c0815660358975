"""Settings of agents: merged without losing a letter of what is a person's, and taken out again."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.files.state import StateDir
from coordinator.profiles import Profile, profiles
from coordinator.wiring import command_prefix, jsonc
from coordinator.wiring.command_prefix import HOOK
from coordinator.wiring.settings_wiring import Change, Wirer
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.effort import crossed

WIRED = [one.name for one in profiles(Path("/nowhere")) if one.wire]
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6)
values = st.recursive(scalars, lambda kids: st.lists(kids, max_size=3) | st.dictionaries(st.text(max_size=4), kids, max_size=3), max_leaves=8)
COMMENTS = ["", " // a comment\n", " /* another, with \" and } */ ", "\n\n", "\t"]


def noisy(value: Any, draw: Any, commas: bool) -> str:
    """The value as a person might have written it."""
    def gap() -> str:
        return str(draw(st.sampled_from(COMMENTS)))

    if isinstance(value, dict):
        inner = ",".join(f"{gap()}{json.dumps(k)}{gap()}:{gap()}{noisy(v, draw, commas)}{gap()}" for k, v in value.items())
        return "{" + (inner + ("," if commas and value else "") or gap()) + "}"
    if isinstance(value, list):
        inner = ",".join(f"{gap()}{noisy(v, draw, commas)}{gap()}" for v in value)
        return "[" + (inner + ("," if commas and value else "") or gap()) + "]"
    return json.dumps(value)


@given(st.data(), st.dictionaries(st.text(max_size=4), values, max_size=4), st.booleans())
def test_what_is_inserted_can_be_removed_and_nothing_else_changes(data: Any, settings: Any, commas: bool) -> None:
    text = noisy(settings, data.draw, commas)
    assert jsonc.parse(text).value == settings
    path = data.draw(st.sampled_from([("hooks", "PreToolUse"), ("new",), ("a", "b", "c")]))
    entry = {"command": "coord", "n": 1}
    try:
        grown = jsonc.appended(text, path, entry)
    except jsonc.BadJson:
        return  # something else stands there: left alone
    wanted = json.loads(json.dumps(settings))
    at = wanted
    for key in path[:-1]:
        at = at.setdefault(key, {})
    at.setdefault(path[-1], []).append(entry)
    assert jsonc.parse(grown).value == wanted
    around = jsonc.parse(grown)
    for key in path:
        around = around.members[key]
    shrunk = jsonc.without(grown, around.items[-1], around)
    at[path[-1]].pop()
    assert jsonc.parse(shrunk).value == wanted
    for comment in ("// a comment", "/* another"):
        assert shrunk.count(comment) == text.count(comment) == grown.count(comment)


@pytest.mark.parametrize("text", ["{", '{"a": }', "[1,]x", '{"a" 1}', "nul", '{"a": "\n"}', "[" * 500, '{"a": [}', ""])
def test_a_broken_file_is_named_by_line_and_column(text: str) -> None:
    with pytest.raises(jsonc.BadJson, match="line"):
        jsonc.parse(text)


def wirer(repo: Repo, tmp_path: Path, **more: Any) -> Wirer:
    StateDir(repo.root).create()
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return Wirer(StateDir(repo.root), home, mcp=True, **more)


def profile(name: str) -> Profile:
    return next(one for one in profiles(Path("/nowhere")) if one.name == name)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*")
            if p.is_file() and ".coord" not in p.parts and ".git" not in p.parts}


@pytest.mark.parametrize("user", [False, True])
@pytest.mark.parametrize("name", WIRED)
def test_wiring_is_idempotent_and_leaves_no_trace(name: str, user: bool, repo: Repo, tmp_path: Path) -> None:
    one, found = wirer(repo, tmp_path, user=user), profile(name)
    before = tree(tmp_path)
    assert not one.is_wired(found)
    changes = one.plan(found)
    assert tree(tmp_path) == before, "planning writes nothing"
    one.apply(found, changes)
    assert one.is_wired(found) and one.plan(found) == []
    for change in changes:
        assert change.path.is_relative_to(one._home if user else repo.root)
    one.remove(one.unplan(found))
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "copilot", "opencode", "qwen"])
@pytest.mark.parametrize("text", ["{}", "", "{broken", " { }\n"])
def test_settings_that_hold_nothing_of_coords_are_not_touched(name: str, text: str, repo: Repo, tmp_path: Path) -> None:
    """Also not read: what is wrong with them keeps nothing else from being taken out."""
    one = wirer(repo, tmp_path)
    for entry in profile(name).wire:
        repo.write(entry.file, text)
    before = tree(repo.root)
    assert one.unplan(profile(name)) == []
    assert tree(repo.root) == before


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini"])
def test_an_empty_file_that_was_there_stays(name: str, repo: Repo, tmp_path: Path) -> None:
    one = wirer(repo, tmp_path)
    files = [entry.file for entry in profile(name).wire if not entry.copy]
    for file in files:
        repo.write(file, "" if file.endswith(".toml") else "{}")
    one.apply(profile(name), one.plan(profile(name)))
    for file in files:  # somebody has it written anew since
        repo.write(file, (repo.root / file).read_text() + "\n")
    one.remove(one.unplan(profile(name)))
    assert all((repo.root / file).read_text().strip() in ("", "{}") for file in files)


def folders(*roots: Path) -> set[str]:
    return {str(p) for root in roots for p in root.rglob("*") if p.is_dir() and not {".coord", ".git"} & set(p.parts)}


@pytest.mark.parametrize(("user", "name", "there"), crossed([False, True], WIRED, ["", "all", "some"]))
def test_folders_that_it_made_go_and_others_stay(name: str, user: bool, there: str, repo: Repo, tmp_path: Path) -> None:
    one, found = wirer(repo, tmp_path, user=user), profile(name)
    places = [change.path for change in one.plan(found)]
    if there:
        for place in places:
            (place.parent if there == "all" else place.parent.parent).mkdir(parents=True, exist_ok=True)
    before = folders(one._home, repo.root)
    for _ in range(2):
        one.apply(found, one.plan(found))
        one.remove(one.unplan(found))
        assert folders(one._home, repo.root) == before
    one.apply(found, one.plan(found))
    one.apply(found, [Change(path, path.read_text(), path.read_text()) for path in places])  # wired anew
    mine = places[0].parent / "mine"
    mine.write_text("")
    one.remove(one.unplan(found))
    around = {str(p) for p in mine.parents}
    assert mine.exists() and folders(one._home, repo.root) - around == before - around


def test_two_agents_in_one_folder_leave_it_together(repo: Repo, tmp_path: Path) -> None:
    one = wirer(repo, tmp_path)
    first = msgspec.structs.replace(profile("pi"), name="first")
    other = msgspec.structs.replace(first, name="other", wire=tuple(
        msgspec.structs.replace(entry, file=entry.file.replace("coord.ts", "other.ts")) for entry in first.wire))
    for gone_first, gone_last in ((first, other), (other, first)):
        for each in (first, other):
            one.apply(each, one.plan(each))
        one.remove(one.unplan(gone_first))
        assert (repo.root / ".pi/extensions").is_dir()
        one.remove(one.unplan(gone_last))
        assert not (repo.root / ".pi").exists()


HOOKS = {"claude-code": ".claude/settings.local.json", "codex": ".codex/hooks.json", "copilot": ".github/hooks/coord.json",
         "gemini": ".gemini/settings.json", "qwen": ".qwen/settings.json"}


def _its_file(python: Path, hook: Path) -> None:
    """`pip uninstall coord` leaves Python."""
    hook.unlink()


def _all(python: Path, hook: Path) -> None:
    """`uv tool uninstall coord`, `pipx uninstall coord`."""
    shutil.rmtree(python.parent.parent)


def _a_link(python: Path, hook: Path) -> None:
    """The distribution has replaced the interpreter."""
    python.unlink()
    python.symlink_to("/nowhere/python3")


def _no_program(python: Path, hook: Path) -> None:
    """A disk that allows none."""
    python.unlink()
    python.write_text("")


def _another_machine(python: Path, hook: Path) -> None:
    """A program whose loader is not here; sh says 127."""
    python.unlink()
    python.write_text("#!/nowhere/ld.so\n")
    python.chmod(0o755)


def _broken(python: Path, hook: Path) -> None:
    """It starts, and finds nothing of its own: it ends with 1."""
    python.unlink()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A coord as `uv tool install` has it: an environment that goes away as a whole."""
    where = tmp_path_factory.mktemp("tools") / "coord"
    (where / "bin").mkdir(parents=True)
    (where / "lib").mkdir()
    (where / "bin/python").symlink_to(os.path.realpath(sys.executable))
    for name in ("_hook.py", "_hook_seldom.py"):
        shutil.copy(HOOK.parent / name, where / "lib")
    return where


@pytest.mark.parametrize(("user", "lost", "name"), crossed([False, True], [_its_file, _all, _a_link, _no_program, _another_machine, _broken], HOOKS))
def test_once_coord_is_gone_only_the_hook_before_a_tool_stops_anything(
    name: str, lost: Callable[[Path, Path], None], user: bool, repo: Repo, tmp_path: Path, installed: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By what each CLI takes for a refusal: exit code 2, and of Copilot JSON. Where coord is not used any more nothing is stopped."""
    tools = tmp_path / "tools o'mine"
    shutil.copytree(installed, tools, symlinks=True)
    python, hook = tools / "bin/python", tools / "lib/_hook.py"
    monkeypatch.setattr(command_prefix, "HOOK", hook)
    monkeypatch.setattr(sys, "executable", str(python))
    one, found = Wirer(repo.state, tmp_path, user=user), profile(name)
    one.apply(found, one.plan(found))
    (entry,) = [entry for entry in found.wire if entry.file == HOOKS[name]]
    wired = json.loads((tmp_path / entry.user_file.removeprefix("~/") if user else repo.root / entry.file).read_text())["hooks"]
    lost(python, hook)
    repo.write("below/x", "")

    def stopping() -> set[str]:
        """The events whose hooks stop what is about to be done."""
        out = set()
        for event, entries in wired.items():
            for item in (item for entry in entries for item in entry.get("hooks", [entry])):
                done = subprocess.run(["sh", "-c", item.get("command") or item["bash"]], cwd=repo.root / "below", input="{}", env={"PATH": os.environ["PATH"]},
                                      capture_output=True, text=True, check=False)
                if done.returncode == 2:
                    out.add(event.lower())
                    assert "coord again" in (json.loads(done.stdout)["permissionDecisionReason"] if name == "copilot" else done.stderr)
                else:
                    assert (done.returncode == 0 or event.lower() == "sessionstart") and not done.stdout, (event, done)
        return out

    assert stopping() - {"configchange"} in ({"pretooluse"}, {"beforetool"}) and len(wired) > 4
    shutil.rmtree(repo.state.path)
    assert stopping() == set()


def test_foreign_hooks_comments_and_order_stay(repo: Repo, tmp_path: Path) -> None:
    mine = '// mine\n{\n  "theme": "dark", // yes\n  "hooks": {\n    "BeforeTool": [\n      {"hooks": [{"type": "command", "command": "mine"}]},\n    ],\n  },\n}\n'
    repo.write(".gemini/settings.json", mine)
    one, found = wirer(repo, tmp_path), profile("gemini")
    one.apply(found, one.plan(found))
    wired = repo.read(".gemini/settings.json")
    assert "// mine" in wired and "// yes" in wired
    hooks = jsonc.parse(wired).value["hooks"]["BeforeTool"]
    assert hooks[0]["hooks"][0]["command"] == "mine" and len(hooks) == 2
    # A person goes on working in the file: only what is coord's goes.
    repo.write(".gemini/settings.json", wired.replace('"dark"', '"light"'))
    one.remove(one.unplan(found))
    assert repo.read(".gemini/settings.json") == mine.replace('"dark"', '"light"')


def test_another_interpreter_replaces_its_own_wiring(repo: Repo, tmp_path: Path) -> None:
    one, found = wirer(repo, tmp_path), profile("claude-code")
    one.apply(found, one.plan(found))
    file = ".claude/settings.local.json"
    old = repo.read(file).replace("/python -I", "/python3.99 -I")
    repo.write(file, old)
    one.apply(found, one.plan(found))
    assert "python3.99" not in repo.read(file)
    assert len(jsonc.parse(repo.read(file)).value["hooks"]["PreToolUse"]) == 1


@pytest.mark.parametrize("text", ['{"hooks": ', '{"hooks": []}', '[]', "\xff"])
def test_a_file_that_cannot_be_merged_is_left_untouched(text: str, repo: Repo, tmp_path: Path) -> None:
    file = repo.root / ".claude/settings.local.json"
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(Refusal) as caught:
        wirer(repo, tmp_path).plan(profile("claude-code"))
    assert caught.value.code is Code.INVALID and str(file) in caught.value.message
    assert file.read_bytes() == text.encode("latin-1")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_without_permission_it_is_told(repo: Repo, tmp_path: Path) -> None:
    one, found = wirer(repo, tmp_path), profile("claude-code")
    (repo.root / ".claude").mkdir(mode=0o500)
    with pytest.raises(Refusal) as caught:
        one.apply(found, one.plan(found))
    assert caught.value.code is Code.STORAGE


def test_a_link_in_somebodys_dot_files_stays_a_link(repo: Repo, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}\n")
    real.chmod(0o640)
    (repo.root / ".claude").mkdir()
    (repo.root / ".claude/settings.local.json").symlink_to(real)
    one, found = wirer(repo, tmp_path), profile("claude-code")
    one.apply(found, one.plan(found))
    assert (repo.root / ".claude/settings.local.json").is_symlink()
    assert "hooks" in real.read_text() and stat.S_IMODE(real.stat().st_mode) == 0o640


def test_init_shows_asks_and_is_proved_by_the_doctor(repo: Repo) -> None:
    asked = repo.coord("init", "--agent", "claude-code")
    assert asked.returncode == 2 and "--yes" in asked.stderr
    assert not (repo.root / ".claude").exists()
    done = repo.coord("init", "--agent", "claude-code", "--yes", "--diff")
    assert done.returncode == 0 and '+' in done.stdout and "PreToolUse" in done.stdout
    assert "wired already" in repo.coord("init", "--agent", "claude-code", "--yes").stdout
    doctor = repo.coord("doctor")
    assert "claude-code" in doctor.stdout and "a test call came back" in doctor.stdout
    settings = next((repo.root / ".claude").iterdir())
    kept = settings.read_text()
    settings.write_text(kept.replace("PreToolUse", "PreToolUsed"))
    broken = repo.coord("doctor")
    assert broken.returncode == 1 and "coord init --agent claude-code" in broken.stdout + broken.stderr
    settings.write_text(kept)
    listed = json.loads(repo.coord("agents", "profiles", "--json").stdout)["items"]
    assert {one["name"]: one["wired"] for one in listed}["claude-code"] is True
    assert repo.coord("init", "--remove", "--agent", "claude-code", "--yes").returncode == 0
    assert not (repo.root / ".claude").exists()
    assert "no agent profile" in repo.coord("init", "--agent", "nobody").stderr


@pytest.mark.parametrize("name", WIRED)
def test_the_mcp_server_is_named_only_where_it_is_asked_for(name: str, repo: Repo, tmp_path: Path) -> None:
    """And stays, once it was: what is wired anew has it again."""
    state, found = StateDir(repo.root), profile(name)
    plain = Wirer(state, tmp_path)
    plain.apply(found, plain.plan(found))
    assert plain.is_wired(found) and not any("cli.main" in (repo.root / path).read_text() and "\"mcp\"" in (repo.root / path).read_text()
                                             for path in (entry.file for entry in found.wire) if (repo.root / path).is_file())
    tools = Wirer(state, tmp_path, mcp=True)
    tools.apply(found, tools.plan(found))
    assert tools.plan(found) == plain.plan(found) == [] and plain.is_wired(found)
    for change in plain.unplan(found):
        assert change.after is None or "cli.main" not in change.after
