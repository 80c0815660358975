"""What a launch says at its end, and before it begins: numbers that are so, and what to type next."""

from __future__ import annotations

import re
from threading import Timer

import pytest

from tests.conftest import Repo
from tests.terminal import at_a_terminal


def test_an_empty_backlog_is_told_with_how_to_fill_it(repo: Repo) -> None:
    done = repo.coord("launch", "--agents", "1", "--command", "true")
    assert done.returncode == 0 and "no tasks" in done.stdout and "1 agent\n" in done.stdout, done
    assert "next: coord task template > tasks.yaml" in done.stdout


@pytest.mark.parametrize("more", [(), ("--resume",), ("tasks.yaml",)])
def test_which_agents_is_asked_for_in_words(repo: Repo, more: tuple[str, ...]) -> None:
    repo.write("tasks.yaml", "- one\n")
    done = repo.coord("launch", *more, "--agents", "2")
    assert done.returncode == 2 and "which agents" in done.stderr, done
    assert "--agent claude-code" in done.stderr and "--command" in done.stderr
    assert repo.client().task_list().items == []


def test_the_browser_page_is_named_to_who_sits_at_a_terminal_and_to_nobody_else(repo: Repo) -> None:
    repo.write("t.yaml", "- {title: one}\n")
    code, shown = at_a_terminal(repo.root, "launch", "t.yaml", "-n", "1", "--command", "true")
    assert code == 0 and shown.count("`coord web` shows all of this in a browser") == 1, shown
    for more in ((), ("--json",)):
        done = repo.coord("launch", "t.yaml", "-n", "1", "--command", "true", *more)
        assert done.returncode == 0 and "coord web" not in done.stdout + done.stderr, done


def test_a_profile_that_was_nearly_named_is_offered(repo: Repo) -> None:
    done = repo.coord("launch", "--agent", "claude")
    assert done.returncode == 2 and "did you mean claude-code?" in done.stderr, done


def test_no_speed_is_claimed_that_was_none_and_one_is_one(repo: Repo) -> None:
    repo.write("main.py", "x = 1\n")
    repo.write("t.yaml", "- {title: breaks, resources: main.py}\n- {title: works}\n")
    done = repo.coord("launch", "t.yaml", "-n", "1", "--command", "sh -c 'echo y >> main.py; [ $COORD_TASK = T-2 ]'")
    said = done.stdout
    assert done.returncode == 1 and "T-1 is in review: breaks" in said, done
    assert "0 conflicts, 0 redirects, 1 review\n" in said and "1 done, 1 in review;" in said
    assert "times as fast" not in said, said
    again = repo.coord("launch", "t.yaml", "-n", "1", "--command", "true").stdout
    assert "1 of its 2 tasks is left: T-1 in review" in again and "go on" not in again, again
    told = repo.coord("report", "--all").stdout
    assert re.search(r"shell-1 .* 1 done, 0 failed, 1 in review", told), told
    assert "Lost to waiting: 0s (waited in all: 0s)" in told, told
    demand = told.split("Files in demand")[1].split("Refusals")[0]
    assert "nothing" in demand and "main.py" not in demand, "nobody waited for it"


def test_nobody_is_told_to_write_over_his_own_file_of_tasks(repo: Repo) -> None:
    repo.write("tasks.yaml", "- {title: one}\n")
    assert repo.coord("launch", "tasks.yaml", "-n", "1", "--command", "true").returncode == 0
    again = repo.coord("launch", "--resume", "-n", "1", "--command", "true").stdout
    assert "> tasks.yaml" not in again and "next: coord launch FILE" in again, again


def test_after_a_failure_it_says_what_comes_next(repo: Repo) -> None:
    repo.write("t.yaml", "- {title: breaks, attempts_max: 2}\n")
    done = repo.coord("launch", "t.yaml", "-n", "1", "--command", "false", env={"COORD_BACKLOG_BACKOFF_S": "1.5"})
    said = [line for line in done.stdout.splitlines() if "T-1 failed" in line]
    assert len(said) == 2 and done.returncode == 1, done
    assert re.search(r"exit code 1; tried again in [12]s \(attempt 2 of 2\)$", said[0]), said
    assert said[1].endswith("exit code 1; given up after 2 attempts"), said
    again = repo.coord("launch", "--resume", "-n", "1", "--command", "true").stdout
    assert "given up before: T-1\nnext: coord dead list, then coord task retry TASK" in again, again
    repo.write("w.yaml", "- {title: waits, after: T-1}\n")
    assert "next: coord dead list, then" in repo.coord("launch", "w.yaml", "-n", "1", "--command", "true").stdout


def test_a_file_is_read_also_where_an_earlier_launch_is_gone_on_with(repo: Repo) -> None:
    repo.write("t.yaml", "- {title: one}\n")
    assert repo.coord("launch", "t.yaml", "--resume", "-n", "1", "--command", "true").returncode == 0
    assert [one.title for one in repo.client().task_list().items] == ["one"]
    done = repo.coord("launch", "--resume", "absent.yaml", "-n", "1", "--command", "true")
    assert done.returncode == 2 and "absent.yaml cannot be read" in done.stderr, done


def test_whose_work_a_launch_waits_for_and_who_has_done_it(repo: Repo) -> None:
    """Its own agents are not others, however many of them find nothing to do."""
    repo.write("t.yaml", "- {title: a, resources: d/}\n- {title: b, resources: d/b.py}\n- {title: c, resources: d/}\n")
    done = repo.coord("launch", "t.yaml", "-n", "3", "--command", "sleep 0.4")
    assert done.returncode == 0 and "others" not in done.stdout and "3 done" in done.stdout, done
    with repo.client("maria") as maria:
        maria.task_add("hers", resources=["h.py"])
        maria.claim()
        late = Timer(1.5, lambda: maria.task_done("T-4"))
        late.start()
        done = repo.coord("launch", "-n", "1", "--command", "true")
        late.join()
    assert "others are at it, maria works on T-4: `coord status`" in done.stdout and "done by others meanwhile: T-4" in done.stdout, done
    assert "by others" not in repo.coord("launch", "t.yaml", "-n", "1", "--command", "true").stdout


def test_wrong_settings_are_told_before_anything_is_made(repo: Repo) -> None:
    repo.write("coord.toml", "x = [\n")
    assert repo.coord("init").returncode == 2
    assert {one.name for one in repo.root.iterdir()} <= {".git", "coord.toml"}
