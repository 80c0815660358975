"""`python -m benchmarks`: every command can be started, and what is mistyped is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import COMMANDS, main
from benchmarks.command_line import parse_numbers
from coordinator.words.refusals import Refusal

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_tells_what_it_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert f"Usage: python -m benchmarks {name} " in capsys.readouterr().out


def test_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = re.findall(r"^  ([a-z][a-z-]*) ", capsys.readouterr().out, re.MULTILINE)
    assert listed == list(COMMANDS)


def test_make_and_the_documents_name_commands_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    started = set(re.findall(r"\$\(BENCH\) ([a-z-]+)", makefile))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md",
             *(ROOT / "docs").rglob("*.md"), *(ROOT / "context_archive").glob("*.md")]
    named = {name for page in pages for name in re.findall(r"`python -m benchmarks ([a-z][a-z-]*)", page.read_text("utf-8"))}
    assert len(started) > 10 and len(named) > 10
    assert (started | named) - set(COMMANDS) == set()


def test_what_is_mistyped_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["locks", "--clients", "many"]) == 2
    assert main(["nonsense"]) == 2
    said = capsys.readouterr().err
    assert "'many' is not a list of numbers" in said and "No such command" in said


@pytest.mark.parametrize("text", ["", "1,", "x", "0", "1,-2", "10000001"])
def test_a_list_of_numbers_is_checked(text: str) -> None:
    with pytest.raises(Refusal):
        parse_numbers(text)
    assert parse_numbers("1,8,64") == [1, 8, 64] and parse_numbers("0", least=0) == [0]
