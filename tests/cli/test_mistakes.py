"""Mistakes that people make: each is answered with what was wrong with which word, and what to type; and nothing is changed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.conftest import Repo

#: What is typed, its exit code, and what the answer names.
MISTAKES = [
    ("lock", 2, "resources"), ("lock a.py", 2, "which agent"), ("lock a.py --agent 'a b'", 2, "'a b'"), ("lock a.py --agent bob --ttl 5x", 2, "--ttl: '5x'"),
    ("lock a.py --agent bob --ttl -5", 2, "-5"), ("lock a.py --agent bob --ttl 99d", 2, "A TTL of 8553600 s is not possible: more than 0, at most 86400 s"), ("lock '' --agent bob", 2, "empty"), ("lock /etc/passwd --agent bob", 2, "/etc/passwd"),
    ("lock ../x --agent bob", 2, "../x"), ("lock key: --agent bob", 2, "key:"), ("lock a.py --mode write --agent bob", 2, "'write'"), ("lock a.py --priority high --agent bob", 2, "'high'"),
    ("lock a.py::nothere --agent bob", 7, "nothere"), ("lock a.py --wait soon --agent bob", 2, "--wait: 'soon'"), ("lock a.py --agent bob --no-retry", 3, "ann"), ("lok a.py", 2, "lok"),
    ("unlock", 2, "what to release"), ("unlock b.py --agent ann", 7, "b.py"), ("unlock a.py --agent bob", 6, "ann"), ("renew b.py --agent ann", 7, "b.py"), ("renew a.py --agent bob", 6, "`coord request file a.py --reason WHY --agent bob`"), ("renew --ttl 1y --agent ann", 2, "--ttl: '1y'"),
    ("locks --limit 0", 2, "limit"), ("task ad x", 2, "ad"), ("task add", 2, "title"), ("task add Two words", 2, "coord task add 'SEVERAL WORDS' -r FILE"), ("task add ''", 2, "title"), ("task add x --after T-99", 7, "T-99"), ("task add x --priority 1.5", 2, "1.5"),
    ("task add x --attempts 0", 2, "attempts"), ("task add x --file ../y", 2, "../y"), ("task show", 2, "task"), ("task show 99", 7, "99"), ("task show xyz", 7, "xyz"), ("task claim T-99 --agent bob", 7, "T-99"),
    ("task done T-99 --agent bob", 7, "T-99"), ("task done T-1 --agent bob", 8, "T-1"), ("task fail T-1 --agent bob", 8, "T-1"), ("task retry T-1", 8, "T-1"), ("task list --state open", 2, "'open'"),
    ("task list --limit -1", 2, "limit"), ("task list --order odd", 2, "'odd'"), ("task list --state ''", 2, "''"), ("dead list --kind ''", 2, "''"), ("lock a.py --agent bob --ttl nan", 2, "nan"), ("lock a.py --agent bob --ttl inf", 2, "inf"), ("task list --limit 1e3", 2, "1e3"), ("task import nofile.yaml", 2, "nofile.yaml"), ("task import bad.yaml", 2, "line 2"), ("request file a.py", 2, "--reason"),
    ("request file b.py -m x --agent bob", 7, "b.py"), ("request approve U-9 --agent ann", 7, "U-9"), ("request list --state open", 2, "'open'"), ("review show R-9", 7, "R-9"), ("review keep", 2, "REVIEW"),
    ("review keep R-9", 7, "R-9"), ("review list --state done", 2, "'done'"), ("review revert R-9 --hunk x", 2, "'x'"), ("archive show 9.9", 2, "9.9"), ("archive search", 2, "words"), ("events --limit 0", 2, "limit"),
    ("status --events -1", 2, "-1"), ("tell bob", 2, "text"), ("tell nobody hi --agent ann", 7, "nobody"), ("messages --since soon", 2, "--since: 'soon'"), ("limit --for x --agent ann", 2, "--for: 'x'"),
    ("signal add T-9 warning --agent ann", 7, "T-9"), ("signal add a.py warning --strength 99 --agent ann", 2, "strength"), ("signal add a.py warning --half-life 1w --agent ann", 2, "--half-life: '1w'"),
    ("state get nokey", 2, "nokey"), ("state get key:none", 7, "key:none"), ("state put key:a x --version 0 --agent ann", 2, "'x'"), ("state put key:a 1 --agent ann", 2, "version"),
    ("state changes --state odd", 2, "'odd'"), ("launch - --agents 0 --command x", 2, "--agents"), ("launch - --agent nonsense", 2, "nonsense"), ("launch nofile.yaml --command 'true {prompt_file}'", 2, "nofile.yaml"),
    ("run nonsense", 2, "nonsense"), ("init --agent nonsense", 2, "nonsense"), ("down --nonsense", 2, "--nonsense"), ("replay --until 99999", 2, "99999"), ("guard chek", 2, "chek"), ("regions nofile.py", 2, "nofile.py"),
    ("commit-region a.py::nothere --from a.py --agent ann", 7, "nothere"), ("impact nofile", 2, "nofile"), ("merge-file a b c", 255, "a"), ("attach nobody", 7, "nobody"), ("logs T-9", 7, "T-9"), ("dead show T-9", 7, "T-9"),
    ("lock shared:b.py --agent bob", 2, "--mode shared"), ("impact .", 2, "directory"), ("impact a.py::x", 2, "coord impact a.py"),
    ("propose a.py --agent bob", 2, "--from"), ("propose a.py --agent bob --from b.py --delete", 2, "--from"), ("events --kind lease", 2, "lease_granted"), ("logs T-9 -f", 7, "T-9"),
    ("limit --agent bob", 2, "--agent bob"), ("explain ''", 2, "subject"), ("logs ''", 2, "names no task"), ("logs x", 2, "'x'"), ("start", 2, "'up'"), ("nonsense", 2, "nonsense"),
    ("dead list --kind odd", 2, "odd"), ("doctor extra", 2, "extra"), ("propose a.py --from nofile --agent bob", 2, "nofile"), ("help nonsense", 2, "nonsense"), ("completion cmd", 2, "'cmd'"), ("explain", 2, "subject"),
]
#: What is said of all such mistakes alike, and helps with none.
EMPTY = ("Correct the field", Code.INVALID.row.next)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    repo = Repo(tmp_path_factory.mktemp("mistakes"))
    (repo.root / ".coord").mkdir()
    for name, text in (("a.py", "x = 1\n"), ("b.py", "x = 1\n"), ("bad.yaml", "x: [\n")):
        (repo.root / name).write_text(text)
    with repo.client() as boss:
        boss.call(rq.Acquire(agent="ann", resources=["a.py"]))
        boss.call(rq.Register(agent="bob"))
        boss.call(rq.TaskAdd(title="There"))
    return repo


@pytest.mark.parametrize(("line", "code", "names"), MISTAKES, ids=[one[0] for one in MISTAKES])
def test_each_is_answered(there: Repo, line: str, code: int, names: str) -> None:
    with there.client() as boss:
        before = _state(boss)
        done = there.coord(*shlex.split(line))
        assert _state(boss) == before, "something was changed"
    said = done.stderr
    assert done.returncode == code and done.stdout == "", done
    assert names in said, said
    assert said.startswith("coord: ") and ("\n  next: " in said or "`coord " in said) and not any(one in said for one in EMPTY), said
    assert "Traceback" not in said and len(said.splitlines()) <= 4
    assert sorted(path.name for path in Path(there.root).iterdir()) == [".coord", "a.py", "b.py", "bad.yaml", *(["coord.toml"] if (there.root / "coord.toml").exists() else [])]


def _state(boss: object) -> object:
    """Leases, tasks and agents. (What was refused is noted, and who asks for something held stands in line.)"""
    call = boss.call  # type: ignore[attr-defined]
    return ([(one.resource, one.locked_by) for one in call(rq.Locks()).items], [(one.task, one.state) for one in call(rq.Tasks()).items],
            call(rq.StateKeys()).items, call(rq.Signals()).items and [one.name for one in call(rq.Signals()).items if one.agent])


def test_a_duration_is_typed_as_lists_show_it(there: Repo) -> None:
    done = there.coord("lock", "b.py", "--agent", "dora", "--ttl", "1h30m")
    assert done.stdout.startswith("b.py  exclusive  dora  for 1h30m") and done.returncode == 0, done
    assert "  1h30m  " in there.coord("locks").stdout
    assert there.coord("unlock", "b.py", "--agent", "dora").returncode == 0


@pytest.mark.parametrize(("line", "named"), [
    ("lock a.py --agent A --wait 100000", "`--wait` must be between"),
    ("task claim --agent A --wait 100000", "`--wait` must be between"),
    ("task add x --priority 5000", "`--priority` is 5000"),
    ("task add x --attempts-max 0", "`--attempts-max` is 0"),
    ("signal add a.py priority --agent A --half-life 0.1", "`--half-life` must be between"),
    ("locks --limit 0", "`--limit` must be at least 1"),
])
def test_a_wrong_value_is_told_by_the_option_that_it_was_typed_with(repo: Repo, line: str, named: str) -> None:
    assert repo.coord("up").returncode == 0
    done = repo.coord(*line.split())
    assert done.returncode == 2 and named in done.stderr, done


@pytest.mark.parametrize(("line", "then"), [
    ("signal add a.py warning --agent A --strength nan", "another `--strength`"),
    ("compact --keep-days -1", "another `--keep-days`"),
    ("state get key:none", "--version 0 --agent NAME"),
])
def test_what_to_repeat_is_named_as_it_is_typed(repo: Repo, line: str, then: str) -> None:
    assert repo.coord("up").returncode == 0
    done = repo.coord(*line.split())
    assert then in done.stderr.split("next: ")[1] and "signal_add" not in done.stderr, done


def test_a_task_that_comes_after_a_title_is_told_of_ids(repo: Repo) -> None:
    repo.write("t.yaml", "- title: First one\n- title: Second\n  after: [First one]\n")
    done = repo.coord("task", "import", "t.yaml")
    assert done.returncode == 7 and "an `id` in this file" in done.stderr, done


def test_who_goes_on_is_not_said_to_rest(repo: Repo) -> None:
    for time in ("10m", "0"):
        assert repo.coord("limit", "--agent", "ann", "--for", time).returncode == 0
    told = repo.coord("events").stdout.splitlines()
    assert told[-1].endswith("ann goes on: its provider's limit is over") and "rests until 2" in told[-2], told


def test_no_editor_is_started_where_nobody_could_use_it(repo: Repo) -> None:
    """An agent would wait for `vi` for ever."""
    repo.coord("task", "add", "one")
    nothing = dict.fromkeys(("GIT_EDITOR", "VISUAL", "EDITOR"), "")
    done = repo.coord("task", "edit", "T-1", env=nothing)
    assert done.returncode == 2 and "no terminal" in done.stderr and "Set EDITOR" in done.stderr, done
