"""Profiles: which is found, and what is said of one with an error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from coordinator import profiles
from coordinator.files import trusted
from coordinator.words.refusals import Code, Refusal


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "coord" / "agents"


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text)


def trusted_(root: Path, name: str) -> None:
    trusted.trust(root, f"agents/{name}.toml", (root / "agents" / f"{name}.toml").read_bytes(), "2026-11-22T00:00:00.000Z")


def test_the_packaged_ones_are_sound(tmp_path: Path) -> None:
    found = {p.name: p for p in profiles.profiles(tmp_path)}
    assert {"shell", "claude-code", "codex"} <= set(found)


def test_a_command_may_be_the_python_that_runs_coord(tmp_path: Path, home: Path) -> None:
    write(home, "mine", 'command = ["{python}", "{prompt_file}"]')
    assert profiles.load("mine", tmp_path).program() == sys.executable


def test_the_repository_comes_before_the_user_before_the_package(
    tmp_path: Path, home: Path
) -> None:
    write(home, "shell", 'description = "the user\'s"')
    assert profiles.load("shell", tmp_path).description == "the user's"
    write(tmp_path / "agents", "shell", 'description = "the repository\'s"')
    assert profiles.load("shell", tmp_path).description == "the user's"  # nobody has trusted it
    trusted_(tmp_path, "shell")
    assert profiles.load("shell", tmp_path).description == "the repository's"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "mine"\ncommand = x\n', "line 2"),
        ('command = ["x"\n', "end of document"),
        ("comand = []\n", "comand"),
        ('prompt = "telepathy"\n', "`prompt` cannot be 'telepathy'"),
        ('command = "x y"\n', "`command` must be a list"),
        ('success_codes = ["0"]\n', "`success_codes[0]` must be a whole number"),
        ('name = "other"\n', "other"),
        ('command = ["x", "{promt}"]\n', "{promt}"),
        ('command = ["x"]\nprompt = "argument"\n', "{prompt}"),
        ('take_over = ["x"]\n', "{session} is not in it"),
        ('take_over = ["x", "{session}"]\n', "no resume"),
        ('take_over = ["x", "{session}"]\nresume = ["x"]\n[stream]\n', "nothing tells its session"),
        ('take_over = ["x", "{sesion}"]\n', "{sesion}"),
        ("command = ['\xff']", ""),
    ],
)
def test_an_error_names_the_file_and_the_place(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path / "agents", "mine", text)
    if not said:
        (tmp_path / "agents" / "mine.toml").write_bytes(text.encode("latin-1"))
    trusted_(tmp_path, "mine")
    with pytest.raises(Refusal) as caught:
        profiles.load("mine", tmp_path)
    assert caught.value.code is Code.INVALID
    assert "mine.toml" in caught.value.message and said in caught.value.message


def test_words_keep_their_spaces_and_their_quotes(tmp_path: Path) -> None:
    made = profiles.load("shell", tmp_path).with_command(
        "agent --file '{prompt_file}' \"{task} of {root}\""
    )
    facts = dict.fromkeys(profiles.PLACEHOLDERS, "")
    facts |= {"prompt_file": "/a b/'x'.md", "task": "T-1", "root": "/r $HOME"}
    assert made.argv(facts) == ["agent", "--file", "/a b/'x'.md", "T-1 of /r $HOME"]


def test_a_prompt_too_long_for_an_argument_is_said(tmp_path: Path) -> None:
    made = profiles.load("shell", tmp_path).with_command("agent {prompt}")
    facts = dict.fromkeys(profiles.PLACEHOLDERS, "")
    with pytest.raises(Refusal) as caught:
        made.argv(facts | {"prompt": "x" * 200_000})
    assert caught.value.code is Code.LIMIT and "{prompt_file}" in caught.value.next


@pytest.mark.parametrize("text", ["agent 'x", "a | b", "a && b", "a > b", "a b; c", "a;b", "x {unknown}"])
def test_commands_that_cannot_be_run_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Refusal) as caught:
        profiles.load("shell", tmp_path).with_command(text)
    assert caught.value.code is Code.INVALID and caught.value.next


@pytest.mark.parametrize("text", ["sh -c 'a; b'", "x --say='a;b' \"c; d\"", "it\\;"])
def test_what_is_quoted_is_the_commands_own(tmp_path: Path, text: str) -> None:
    assert ";" in "".join(profiles.load("shell", tmp_path).with_command(text).command)


@pytest.mark.parametrize("name", ["../shell", "", "Sh ell", "a" * 100])
def test_names_are_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refusal):
        profiles.load(name, tmp_path)
