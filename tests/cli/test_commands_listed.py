"""`coord --help`: every command once, most under what a person wants to do, and no sentence cut off."""

from __future__ import annotations

import re

from coordinator.cli import main, modules
from coordinator.commands.help_pages import PURPOSES
from coordinator.commands.signatures import list_members
from tests.conftest import Repo


def test_every_command_is_in_one_group_and_whole(repo: Repo) -> None:
    shown = repo.coord("--help").stdout
    named = [name for names in PURPOSES.values() for name in names]
    modules.read_group("")
    there = [name for name in list_members("") if name != "__complete"]
    assert {*named} <= {*there} and len(named) == len({*named})
    assert sorted(there) == sorted(re.findall(r"^  ([a-z][a-z-]+)  ", shown, re.M)) and ("More:" in shown) == ({*there} > {*named})
    assert "..." not in shown.split("Begin:")[1], "a sentence is cut off"
    assert shown.index("  init ") < shown.index("  launch ") < shown.index("  compact ")
    assert "..." not in repo.coord("task", "--help").stdout.split("Commands:")[1]


def test_what_other_programs_call_it_is_answered_with_ours(repo: Repo) -> None:
    for typed, ours in ((("task", "rm", "T-1"), "'cancel'"), (("task", "new"), "'add'"), (("stop",), "'down'"), (("request", "accept", "U-1"), "'approve'"),
                        (("request", "answer", "--help"), "'approve', 'reject'"), (("review", "approve", "R-1"), "'keep'"), (("request", "cancel"), "'withdraw'")):
        done = repo.coord(*typed)
        assert done.returncode == 2 and f"Did you mean {ours}?" in done.stderr, done
        assert done.stderr.startswith("coord: No such command ")
    assert main.main(["no-such-thing"]) == 2


def test_what_is_asked_for_in_place_of_a_command_is_told_how_to_ask(repo: Repo) -> None:
    repo.write("Makefile", "")
    for typed, step in ((("request", "a.py"), "coord request file a.py --reason WHY"), (("request", "Makefile", "--agent", "bob"), "coord request file Makefile --reason WHY"),
                        (("request", "src/a b.py"), "coord request file 'src/a b.py' --reason WHY"), (("request", "a.py::f"), "coord request file a.py::f --reason WHY"),
                        (("request", "key:x", "-m", "x"), "coord request file key:x --reason WHY"), (("request", "u-3"), "coord request list"), (("request", "lst"), "coord request --help"),
                        (("review", "R-1"), "coord review show R-1"), (("task", "t-1"), "coord task show t-1"), (("task", "a.py"), "coord task --help")):
        done = repo.coord(*typed)
        assert done.returncode == 2 and done.stderr.startswith(f"coord: No such command {typed[1]!r}.") and done.stderr.endswith(f"\n  next: {step}\n"), done
    assert "Did you mean 'file'?" in repo.coord("request", "ask", "a.py").stderr


def test_help_is_of_the_command_that_is_named(repo: Repo) -> None:
    assert repo.coord("help").stdout == repo.coord("--help").stdout
    assert repo.coord("help", "launch").stdout == repo.coord("launch", "--help").stdout != ""
    assert repo.coord("help", "task", "add").stdout == repo.coord("task", "add", "--help").stdout
    assert "130  INTERRUPTED" in repo.coord("help", "exit-codes").stdout
    wrong = repo.coord("help", "nonsense")
    assert wrong.returncode == 2 and "No such command 'nonsense'" in wrong.stderr, wrong
