"""What a person sees: 80 columns, pipes, NO_COLOR, JSON, errors in words."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from coordinator.cli import modules
from coordinator.commands import signatures
from coordinator.commands.lists import cut
from coordinator.slices.story import dashboard
from coordinator.words import requests as rq
from coordinator.words.refusals import Exit
from tests.conftest import Repo
from tests.terminal import CTRL_C, at_a_terminal

ESCAPE = re.compile("\x1b")


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    """A repository with much going on: 200 leases, long names, a review, a line."""
    root = tmp_path_factory.mktemp("busy")
    (root / ".coord").mkdir()
    archive = root / "context_archive"
    archive.mkdir()
    (archive / "notes.md").write_text(
        "# Notes\n\n## 4 Utils\n\n### 4.2 Normalization architecture\n\n`a/long.py` normalizes.\n"
    )
    repo = Repo(root)
    boss = repo.client()
    for i in range(10):
        agent = repo.client(f"agent-with-a-long-name-{i}")
        agent.acquire(*[f"src/some/deep/folder/file_{i}_{j}.py" for j in range(20)],
                      description="a description that is far too long for a narrow terminal")
    for i in range(12):
        boss.call(rq.TaskAdd(title=f"Task number {i} with quite a long title that goes on and on",
                             resources=[f"t{i}.py"], after=["T-1"] if i > 8 else []))
    repo.client("agent-1").claim()
    (root / "half.py").write_text("one\n")
    left = repo.client("left")
    left.acquire("half.py")
    (root / "half.py").write_text("two \x1b[31mred\x1b[0m\n")
    left.call(rq.Leave(agent="left", clean=False, log_tail="died \x1b]0;title\x07 here\n"))
    repo.there("waiting-one")
    repo.coord("lock", "src/some/deep/folder/file_1_1.py", "--agent", "waiting-one")
    yield repo
    repo.down()


COMMANDS = [
    ["status"], ["locks"], ["agents"], ["task", "list"], ["task", "show", "T-1"],
    ["review", "list"], ["review", "show", "R-1"], ["events"], ["explain", "T-1"],
    ["explain", "half.py"], ["archive", "search", "normalization"], ["archive", "show", "4.2"],
    ["doctor"], ["help", "exit-codes"], ["task", "export"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_piped_output_is_plain(busy: Repo, command: list[str]) -> None:
    done = busy.coord(*command)
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.strip() and "Traceback" not in done.stderr
    assert not ESCAPE.search(done.stdout), "colour or a stranger's escape in a pipe"
    assert "…" not in done.stdout or command[0] in ("archive", "explain"), "cut in a pipe"


@pytest.mark.parametrize("columns", [60, 80, 120, None])
@pytest.mark.parametrize("command", [["status"], ["locks"], ["task", "list"]], ids=" ".join)
def test_lists_keep_ids_states_and_file_names(
    busy: Repo, command: list[str], columns: int | None
) -> None:
    shown = busy.coord(*command, env={"COLUMNS": str(columns)} if columns else None).stdout
    if columns is not None:
        rows = [row for row in shown.splitlines() if not row.startswith("waiting ")]  # a sentence
        assert max(map(len, rows)) <= columns
    if command == ["status"]:
        assert "R-1" in shown and shown.count("file_") >= 20
        return
    if command == ["locks"]:
        names = [f"file_{i}_{j}.py" for i in range(4) for j in range(5)]
        assert all(name in shown for name in names), shown
        assert shown.count("exclusive") >= 20
        return
    for number in range(1, 13):
        (line,) = [row for row in shown.splitlines() if row.split()[:1] == [f"T-{number}"]]
        assert line.split()[1] in ("ready", "pending", "claimed", "done")


@pytest.mark.parametrize("command", COMMANDS[:8], ids=" ".join)
def test_json_is_the_reply_itself(busy: Repo, command: list[str]) -> None:
    done = busy.coord(*command, "--json")
    lines = done.stdout.splitlines() if command == ["events"] else [done.stdout]
    assert all(isinstance(json.loads(line), dict) for line in lines)


@pytest.mark.usefixtures("from_nothing")
def test_json_of_a_refusal_is_its_body(busy: Repo) -> None:
    done = busy.coord("task", "show", "T-99", "--json")
    assert done.returncode == 7
    assert json.loads(done.stdout)["error"]["code"] == "UNKNOWN_TASK"


def test_the_dashboard_says_what_matters(busy: Repo) -> None:
    shown = busy.coord("status").stdout
    for part in ("leases (20", "1 waiting", "waiting-one", "R-1", "half.py", "░", "1 claimed"):
        assert part in shown, part


def test_the_dashboard_has_regions_below_their_files(repo: Repo) -> None:
    repo.write("lib/a.py", "def f():\n    pass\n\n\ndef g():\n    pass\n")
    repo.write("b.py", "def f():\n    pass\n")
    for agent, name in (("ann", "lib/a.py::f"), ("bob", "b.py::f"), ("eve", "lib/a.py::g")):
        repo.coord("lock", name, "--agent", agent)
    lines = [line.rstrip() for line in repo.coord("status").stdout.splitlines()]
    at = lines.index("lib/a.py")
    assert [line.split()[:2] for line in lines[at + 1:at + 3]] == [["f", "ann"], ["g", "eve"]]
    assert lines[at + 1].startswith("  f") and any(line.startswith("b.py::f ") for line in lines) and "leases (3)" in lines


def test_a_terminal_gets_colour_unless_it_says_no(busy: Repo) -> None:
    assert "\x1b[" in at_a_terminal(busy.root, "status")[1]
    assert "\x1b[3" not in at_a_terminal(busy.root, "status", env={"NO_COLOR": "1"})[1]


def test_watch_redraws_in_place_and_ends_with_ctrl_c(busy: Repo) -> None:
    _, shown = at_a_terminal(busy.root, "status", "--watch", at={"reviews waiting": CTRL_C})
    assert "watching ended" in shown and "Traceback" not in shown
    assert "\x1b[?1049h" in shown, "it should use a screen of its own"


@pytest.mark.usefixtures("from_nothing")
def test_a_strangers_escapes_do_not_reach_the_terminal(busy: Repo) -> None:
    _, shown = at_a_terminal(busy.root, "review", "show", "R-1", env={"GIT_PAGER": "cat"})
    assert "\x1b]0;title" not in shown and "died" in shown


def test_side_by_side(busy: Repo) -> None:
    shown = busy.coord("review", "show", "R-1", "--side-by-side").stdout
    line = next(x for x in shown.splitlines() if "one" in x and "two" in x)
    assert len(line) <= 80


@pytest.mark.usefixtures("from_nothing")
def test_usage_errors_are_short(busy: Repo) -> None:
    for words, part in (
        (["bogus"], "bogus"), (["task", "add"], "TITLE"), (["lock", "a.py"], "agent"),
        (["lock", "a.py", "-a", "x", "--ttl", "soon"], "soon"), (["task", "import", "no.yaml"], "no.yaml"),
        (["lock", "a.py", "-a", "x", "--mode", "own"], "own"),
    ):
        done = busy.coord(*words)
        assert done.returncode == 2 and part.lower() in done.stderr.lower(), done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("from_nothing")
def test_a_closed_pipe_is_no_error(busy: Repo) -> None:
    line = f"{shlex.quote(sys.executable)} -m coordinator.cli.main events -n 500 | head -1"
    done = subprocess.run(["bash", "-c", line], cwd=busy.root, capture_output=True, text=True,
                          check=False)
    assert done.stdout.count("\n") == 1 and "Traceback" not in done.stderr, done.stderr


@pytest.mark.usefixtures("from_nothing")
def test_what_was_begun_is_done_though_its_reader_goes(make_repo: Callable[..., Repo]) -> None:
    """`coord init | head -1` wired an agent, and not the guard."""
    repo = make_repo()

    def piped(words: str) -> int:
        line = f"{shlex.quote(sys.executable)} -m coordinator.cli.main {words} | true; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], cwd=repo.root, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode

    hooks = repo.root / ".git/hooks"
    assert piped("init --agent claude-code --yes") == Exit.PIPE_CLOSED
    assert {one.name for one in hooks.iterdir()} >= {"pre-commit", "pre-push"}
    assert repo.coord("doctor").returncode == 0
    assert piped("init --remove --yes") == Exit.PIPE_CLOSED
    assert not {one.name for one in hooks.iterdir()} & {"pre-commit", "pre-push"}
    assert not (repo.root / ".claude/settings.json").exists()
    assert piped("init --agent nobody --yes") == Exit.INVALID


def test_who_has_set_an_agents_name_is_told_how_to_trust_without_it(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config='[notify]\ncommand = "true"\n')
    refused = repo.coord("trust", "--yes", env={"COORD_AGENT": "maria"})
    assert refused.returncode == Exit.NOT_ALLOWED and "COORD_AGENT=maria is set" in refused.stderr
    assert "env -u COORD_AGENT coord trust" in refused.stderr and "Nothing was changed" in refused.stderr
    token = repo.coord("trust", "--yes", env={"COORD_AGENT": "maria", "COORD_AGENT_TOKEN": "x"})
    assert "an agent's own shell" in token.stderr and "env -u" not in token.stderr
    assert repo.coord("trust", "--yes").returncode == 0


def test_import_export_round_trip(busy: Repo, tmp_path: Path) -> None:
    exported = busy.coord("task", "export", "--format", "markdown").stdout
    assert exported.count("- [ ] Task number") == 12
    other = Repo(tmp_path / "other")
    other.root.mkdir()
    done = other.coord("task", "import", "-", "--format", "markdown", text=exported)
    assert done.stdout.count("\n") == 12, done.stderr
    other.down()


@pytest.mark.usefixtures("from_nothing")
def test_shell_completion_is_offered(busy: Repo) -> None:
    for shell in ("bash", "zsh", "fish"):
        shown = busy.coord("completion", shell)
        assert shown.returncode == 0 and "coord __complete" in shown.stdout
    odd = busy.coord("completion", "cmd")
    assert odd.returncode == 2 and "bash, zsh, fish" in odd.stderr


def test_init_says_what_it_made_and_changes_nothing_twice(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    first = repo.coord("init")
    assert "coord.toml" in first.stdout and "not a git repository" in first.stdout
    (tmp_path / "coord.toml").write_text("# mine\n")
    again = repo.coord("init")
    assert "already" in again.stdout and (tmp_path / "coord.toml").read_text() == "# mine\n"


@pytest.mark.usefixtures("from_nothing")
def test_no_permission_is_said(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    done = Repo(tmp_path).coord("lock", "a.py", "--agent", "ann")
    tmp_path.chmod(0o700)
    assert done.returncode == 9 and "write access" in done.stderr


@pytest.mark.usefixtures("from_nothing")
def test_the_version_is_told_without_a_repository(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "coordinator.cli.main", "--version"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and re.fullmatch(r"coord \d+\.\d+\S*\n", done.stdout), done
    assert not list(tmp_path.iterdir())


def test_every_command_that_answers_has_json() -> None:
    """Not those whose output is a file's text, a script, or another program's."""
    modules.read_group("")
    without = {name for name, command in signatures.COMMANDS.items() if name and name not in signatures.GROUPS and "--json" not in command.options} - {"__complete"}
    assert without == {"commit", "completion", "hook", "mcp", "run", "serve", "state own", "task schema", "task template"}


def test_a_review_of_many_files_says_how_many_where_there_is_little_room(repo: Repo) -> None:
    with repo.client("ann") as ann:
        ann.acquire("many/")
        for n in range(5):
            repo.write(f"many/{n}.txt", "half\n")
        ann.leave(clean=False)
    with repo.client() as person:
        reply = person.status()
    shown = "\n".join(text for text, _ in dashboard.lines(reply, 60, None))
    assert "many/0.txt +4" in shown, shown
    assert "many/0.txt, many/1.txt, many/2.txt" in "\n".join(text for text, _ in dashboard.lines(reply, None, None))


@pytest.mark.parametrize("width", range(4, 90))
def test_a_sentence_is_cut_so_that_the_names_of_files_stay(width: int) -> None:
    said = "ann got src/main/java/org/spring/DataSourceProperties.java (exclusive) until 18:06Z"
    short = cut(said, width)
    assert short == said if width >= len(said) else cell_len(short) <= width and short.endswith("…"), short
    assert width < 19 or ".java" in short, short
    assert width < 50 or "DataSourceProperties.java" in short, short
    assert cell_len(cut("日本語 " * 6 + "aa/日本語/ファイル.py", width)) <= width


def test_who_waits_alone_is_shown_without_an_empty_line_before(busy: Repo) -> None:
    shown = busy.coord("locks", "--agent", "waiting-one").stdout
    assert shown.splitlines()[0].split() == ["#", "id", "agent", "waits", "for", "held", "by", "since", "for"], shown
    both = busy.coord("locks", "src/some/deep/folder/file_1_1.py").stdout.splitlines()
    assert both[2] == "" and "waits for" in both[3], "between the two there is one"
