"""`coord.toml` as it is now, and as the coordinator has read it: doctor tells where these differ."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import Repo


def test_what_was_changed_since_it_started_is_told(repo: Repo) -> None:
    repo.write("coord.toml", "[leases]\nttl_s = 3000\n")
    repo.coord("up")
    assert repo.coord("doctor").returncode == 0
    repo.write("coord.toml", "\ufeff[leases]\nttl_s = 2000\n")
    done = repo.coord("doctor")
    assert done.returncode == 1 and "leases.ttl_s" in done.stdout and "`coord down`" in done.stdout
    repo.write("coord.toml", "[leases\n")
    broken = repo.coord("doctor")
    assert broken.returncode == 1 and "another one could not start" in broken.stdout
    repo.write("coord.toml", "# nothing\n[leases]\nttl_s = 3000\n")
    assert repo.coord("doctor").returncode == 0


def test_a_pool_is_told_in_a_sentence(repo: Repo) -> None:
    repo.write("coord.toml", '[pools.port]\nvalues = "5170-5199"\nenv = "PORT"\n'
               '[pools.db]\nvalues = ["app"]\nenv = "DB"\nsession = true\ncreate = "createdb app"\ndrop = "dropdb app"\n')
    assert repo.coord("trust", "--yes").returncode == repo.coord("up").returncode == 0
    lines = [" ".join(line.split()) for line in repo.coord("doctor").stdout.splitlines()]
    assert "pools.port 30 values for PORT coord.toml" in lines
    assert "pools.db 1 value for DB, one of them for each session, with commands to create, drop it coord.toml" in lines


def test_what_is_trusted_now_is_not_said_to_be_untrusted(repo: Repo) -> None:
    repo.write("coord.toml", "[notify]\ncommand = \"true\"\n")
    repo.coord("up")
    assert "nobody has trusted it" in repo.coord("doctor").stdout
    assert repo.coord("trust", "--yes").returncode == 0
    said = repo.coord("doctor").stdout
    assert "nobody has trusted it" not in said and "notify.command" in said and "`coord down`" in said
    repo.coord("down")
    assert repo.coord("doctor").returncode == 0
    assert "next: `coord down`" in repo.coord("trust", "--withdraw").stdout
    assert "notify.command" in repo.coord("doctor").stdout


def test_what_the_environment_has_set_is_no_change(repo: Repo) -> None:
    repo.coord("up", env={"COORD_LEASES_TTL_S": "1234"})
    assert repo.coord("doctor").returncode == 0
    assert repo.coord("doctor", env={"COORD_BACKLOG_BACKOFF_S": "3"}).returncode == 0


@pytest.mark.parametrize("editor", ["vi '", "\"", "nano \\"])
def test_an_editor_that_is_no_command_is_told(repo: Repo, editor: str) -> None:
    repo.coord("task", "add", "One")
    env = {k: v for k, v in os.environ.items() if k not in ("GIT_EDITOR", "VISUAL")} | {"EDITOR": editor}
    done = subprocess.run([sys.executable, "-m", "coordinator.cli.main", "task", "edit", "T-1"], cwd=repo.root, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "cannot be read as a command" in done.stderr and "bug" not in done.stderr, done


def test_it_is_the_editor_of_the_repository_and_opens_there(repo: Repo) -> None:
    repo.coord("task", "add", "One")
    repo.write("ed.sh", "#!/bin/sh\npwd > where\nsed -i 's/One/Two/' \"$1\"\n")
    (repo.root / "ed.sh").chmod(0o755)
    subprocess.run(["git", "config", "core.editor", "./ed.sh"], cwd=repo.root, check=True)
    env = {k: v for k, v in os.environ.items() if k not in ("GIT_EDITOR", "VISUAL", "EDITOR")}
    done = subprocess.run([sys.executable, "-m", "coordinator.cli.main", "task", "edit", "T-1"], cwd=repo.root, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    assert repo.read("where").strip() == str(repo.root.resolve()) and "Two" in repo.coord("task", "show", "T-1").stdout


def test_a_profile_with_a_mistake_stops_no_commit_and_can_be_withdrawn(repo: Repo) -> None:
    repo.coord("init", "--yes")
    repo.write("agents/x.toml", 'name = "x"\ncommand = ["true", "{prompt_file}"]\n')
    assert repo.coord("trust", "--yes").returncode == 0
    repo.write("agents/x.toml", 'name = "x"\nprogram = 5\n')
    assert repo.coord("trust", "--yes").returncode == 0
    assert repo.coord("guard", "check").returncode in (0, 1)
    done = repo.coord("trust", "--withdraw")
    assert done.returncode == 0 and "agents/x.toml" in done.stdout, done
