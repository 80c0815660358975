"""`coord init --agent`: what it changes in the repository itself, and what `--remove` leaves of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.profiles import profiles
from tests.conftest import Repo
from tests.effort import crossed

FILE = ".claude/settings.local.json"


def git(repo: Repo, *args: str) -> str:
    told = subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "core.excludesFile=/dev/null", *args],
        cwd=repo.root, capture_output=True, text=True, check=True)
    return told.stdout


def init(repo: Repo, *more: str) -> str:
    done = repo.coord("init", "--agent", "claude-code", "--yes", "--mcp", *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def remove(repo: Repo, *more: str) -> str:
    done = repo.coord("init", "--remove", "--yes", *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_broken_profile_keeps_no_other_from_being_taken_out(repo: Repo) -> None:
    git(repo, "init", "-q", ".")
    before = owned(repo)
    init(repo)
    (repo.root / "agents").mkdir()
    (repo.root / "agents/bad.toml").write_text("command = 3\n")
    assert repo.coord("trust", "--yes").returncode == 0
    remove(repo)
    assert owned(repo) == before


def owned(repo: Repo) -> dict[str, bytes]:
    """What is in git's folder and beside coord's, byte by byte."""
    places = [repo.root / ".git/hooks", repo.root / ".git/info", repo.root / ".claude"]
    return {str(file): file.read_bytes() for place in places for file in sorted(place.rglob("*")) if file.is_file()}


@pytest.mark.parametrize(("mine", "hook"), crossed([None, "*.log\n", "*.log", "# a\n\n\n"], [None, "#!/bin/sh\necho mine\n"]))
def test_init_wires_hooks_tools_and_guard_and_takes_out_exactly_that(mine: str | None, hook: str | None, repo: Repo) -> None:
    exclude, commit = repo.root / ".git/info/exclude", repo.root / ".git/hooks/pre-commit"
    if mine is None:
        exclude.unlink(missing_ok=True)
    else:
        exclude.write_text(mine)
    if hook is not None:
        commit.write_text(hook)
        commit.chmod(0o755)
    before = owned(repo)
    summed = repo.coord("init", "--agent", "claude-code", "--mcp").stdout  # nobody is asked, so nothing is written
    assert "PreToolUse" not in summed and len(summed.splitlines()) == 4 and owned(repo) == before
    assert all(name in summed for name in (FILE, ".mcp.json", "+110", "--diff", "pre-commit", "pre-push"))
    said = init(repo, "--diff")
    assert "+# >>> coord guard" in said and "mcpServers" in said, "all is in the difference"
    assert commit.read_text().count("coord guard") >= 2 and (repo.root / ".git/hooks/pre-push").exists()
    assert f"{FILE}, .mcp.json name paths of this machine, so git passes over them" in said
    assert ".claude" not in git(repo, "status", "--porcelain") and ".mcp" not in git(repo, "status", "--porcelain")
    after = owned(repo)
    again = init(repo)
    assert "wired already" in again and "in git's hooks already" in again
    assert owned(repo) == after
    said = remove(repo, "--diff")
    assert "-# >>> coord guard" in said
    assert owned(repo) == before


def test_nothing_is_guarded_unasked(repo: Repo) -> None:
    before = owned(repo)
    init(repo, "--no-guard")
    assert not (repo.root / ".git/hooks/pre-commit").exists()
    asked = repo.coord("init", "--agent", "claude-code")  # wired already: this asks for the guard
    assert asked.returncode == 2 and "guard of commits" in asked.stderr
    remove(repo)
    assert owned(repo) == before


def test_the_guard_stays_for_the_agent_that_is_left_and_for_whoever_put_it_in(repo: Repo) -> None:
    init(repo, "--agent", "codex")
    hook = repo.root / ".git/hooks/pre-commit"
    assert "stays in git's hooks, for claude-code" in remove(repo, "--agent", "codex")
    assert hook.exists()
    assert "taken out of git's hooks" in remove(repo, "--agent", "claude-code")
    assert not hook.exists()
    repo.coord("guard", "install")
    init(repo)
    remove(repo)
    assert hook.exists(), "a person put it in, not init"


def test_what_is_not_this_clones_alone_is_left_and_said(repo: Repo) -> None:
    hooks = repo.root / "hooks"
    hooks.mkdir()
    (hooks / "commit-msg").write_text("#!/bin/sh\n")
    git(repo, "config", "core.hooksPath", "hooks")
    repo.write(FILE, "{}\n")
    repo.write(".mcp.json", "{}\n")
    git(repo, "add", "-f", "hooks", FILE)
    git(repo, "commit", "-qm", "x")
    said = init(repo)
    assert f"git tracks {FILE}" in said and "do not commit that" in said
    assert ".mcp.json names paths of this machine now; keep it out of commits" in said
    assert "git tracks what is in" in said and "`coord guard install` does it all the same" in said
    assert sorted(path.name for path in hooks.iterdir()) == ["commit-msg"]
    assert ">>> coord" not in (repo.root / ".git/info/exclude").read_text()
    remove(repo)
    assert repo.read(FILE) == repo.read(".mcp.json") == "{}\n"


def test_without_git_it_says_that_there_is_nothing_to_guard(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo("plain", git=False)
    said = init(repo)
    assert said.count("not a git repository") == 1 and "no commits to guard" in said
    remove(repo)
    assert not (repo.root / ".claude").exists()


def test_without_a_yes_nothing_is_written(repo: Repo) -> None:
    def there() -> list[str]:
        return sorted(str(path) for path in repo.root.rglob("*") if ".git/" not in f"{path}/")

    before, hooks = there(), owned(repo)
    nobody = repo.coord("init", "--agent", "claude-code")
    assert nobody.returncode == 2 and "nothing was written" in nobody.stderr
    assert there() == before and owned(repo) == hooks
    ours, theirs = os.openpty()  # somebody is there, and says no
    os.write(ours, b"n\nn\nn\n")
    no = subprocess.run([sys.executable, "-m", "coordinator.cli.main", "init", "--agent", "claude-code"], cwd=repo.root,
                        stdin=theirs, capture_output=True, text=True, timeout=60, check=False)
    os.close(ours)
    os.close(theirs)
    assert no.returncode == 0 and "Nothing was written." in no.stdout and "next:" not in no.stdout, no.stderr
    assert there() == before and owned(repo) == hooks


def test_all_that_would_change_is_shown_where_nobody_can_be_asked(repo: Repo) -> None:
    words = ("init", "--agent", "claude-code", "--agent", "pi", "--mcp", "--diff")
    nobody = repo.coord(*words)
    shown = (FILE, ".mcp.json", ".pi/extensions/coord.ts", ".git/hooks/pre-commit", ".git/hooks/pre-push")
    assert all(f"+++ {repo.root}/{name}" in nobody.stdout for name in shown), nobody.stdout
    assert nobody.returncode == 0 and nobody.stdout.endswith("note: nothing was written; with --yes it is\n"), nobody.stderr
    nobody = repo.coord(*words[:-1])
    assert nobody.returncode == 2 and "5 files would change for claude-code, pi and the guard" in nobody.stderr, nobody.stderr
    assert not (repo.root / ".claude").exists() and not (repo.root / ".coord").exists()
    few = repo.coord(*words[:-1], "--no-guard")
    assert "pre-commit" not in few.stdout and "3 files would change for claude-code and pi;" in few.stderr
    assert repo.coord(*words, "--yes").returncode == 0
    kept = owned(repo)
    nobody = repo.coord("init", "--remove", "--diff")
    assert all(f"--- {repo.root}/{name}" in nobody.stdout for name in shown), nobody.stdout
    assert nobody.returncode == 0 and owned(repo) == kept
    nobody = repo.coord("init", "--remove")
    assert nobody.returncode == 2 and "5 files would change" in nobody.stderr and owned(repo) == kept
    one = repo.coord("init", "--remove", "--agent", "pi")
    assert one.returncode == 2 and "1 file would change for pi;" in one.stderr and "pre-commit" not in one.stdout


def test_a_home_is_as_it_was_after_all_agents_were_wired_and_taken_out(repo: Repo, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in (".local/share", ".config/opencode"):
        (home / folder).mkdir(parents=True)
    agents = [word for one in profiles(repo.root) if one.wire for word in ("--agent", one.name)]
    env = {"HOME": str(home), "XDG_DATA_HOME": str(home / ".local/share"), "XDG_CONFIG_HOME": str(home / ".config")}
    before = sorted(home.rglob("*"))
    for more in ([], ["--remove"]):
        done = repo.coord("init", "--user", *agents, "--yes", *more, env=env)
        assert done.returncode == 0, done.stderr
        assert (sorted(home.rglob("*")) == before) is bool(more), sorted(home.rglob("*"))


def test_what_is_taken_out_in_a_repository_is_its_guard_too_though_agents_are_wired_for_all(repo: Repo, tmp_path: Path) -> None:
    """In the order of the documents: nothing of coord is left that a commit would ask."""
    home = tmp_path / "home"
    home.mkdir()
    env, hook = {"HOME": str(home), "XDG_DATA_HOME": str(home / ".local/share")}, repo.root / ".git/hooks/pre-commit"
    assert repo.coord("init", "--agent", "claude-code", "--user", "--yes", env=env).returncode == 0 and hook.exists()
    assert "wired for all your repositories still" in repo.coord("init", "--remove", "--yes", env=env).stdout
    assert not hook.exists()


def test_taking_out_makes_nothing(repo: Repo, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".local/share").mkdir(parents=True)
    env = {"HOME": str(home), "XDG_DATA_HOME": str(home / ".local/share")}
    before = sorted(home.rglob("*"))
    assert repo.coord("init", "--agent", "claude-code", "--user", "--yes", env=env).returncode == 0
    done = repo.coord("init", "--remove", "--user", "--yes", env=env, cwd=home)
    assert done.returncode == 0 and "claude-code: taken out" in done.stdout, done.stderr
    assert sorted(home.rglob("*")) == before


def test_the_fields_of_a_task_file_are_told(repo: Repo) -> None:
    told = " ".join(repo.coord("task", "import", "--help").stdout.split())
    for name in ("title", "prompt", "resources", "after", "priority", "attempts_max", "id"):
        assert name in told, name
    repo.write("t.yaml", "- {title: a, file: x.py}\n")
    wrong = repo.coord("task", "import", "t.yaml")
    assert wrong.returncode == 2 and "A task has these fields: title, prompt, resources" in wrong.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_where_git_answers_nothing_that_is_said_and_mended_the_next_time(repo: Repo) -> None:
    """In another user's repository git refuses to answer: nothing is said to be kept out of commits that is not."""
    subprocess.run(["git", "init", "-q", repo.root], check=True)
    os.chown(repo.root, 12_345, 12_345)
    os.chown(repo.root / ".git", 12_345, 12_345)
    said = repo.coord("init", "--agent", "claude-code", "--yes", "--no-guard").stdout
    assert "git answers nothing in" in said and "git passes over" not in said
    for path in (repo.root, repo.root / ".git"):
        os.chown(path, 0, 0)
    assert "git passes over" in repo.coord("init", "--agent", "claude-code", "--yes", "--no-guard").stdout
    assert ".claude/settings.local.json" in repo.read(".git/info/exclude")
