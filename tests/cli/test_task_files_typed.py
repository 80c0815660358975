"""`coord task template`, `schema` and `edit`, and the older words, as a person types them: a real editor (a script) changes a real file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.conftest import Repo


@pytest.mark.parametrize("form", ["yaml", "markdown", "jsonl"])
def test_a_template_is_a_file_of_tasks(repo: Repo, form: str) -> None:
    text = repo.coord("task", "template", "--format", form).stdout
    name = {"yaml": "t.yaml", "markdown": "t.md", "jsonl": "t.jsonl"}[form]
    repo.write(name, text)
    repo.coord("up")
    added = repo.coord("task", "import", name)
    assert added.returncode == 0 and len(added.stdout.splitlines()) == 3
    assert added.stderr in ("", "coord: One task is marked done, and was not added.\n")
    second = repo.client().task_show("T-2")
    assert (second.after, second.priority, second.resources[-1]) == (["T-1"], 2, {"markdown": "main.py"}.get(form, "main.py"))
    assert "attempts_max" in text and ("task import" in text)


def test_the_schema_is_what_editors_check_by(repo: Repo) -> None:
    schema = repo.coord("task", "schema").stdout
    kept = Path(__file__).parents[2] / "docs/schemas/tasks.schema.json"
    assert schema == kept.read_text("utf-8")
    template = repo.coord("task", "template").stdout
    assert "needs: [port]" in template
    assert template.startswith("# yaml-language-server: $schema=")
    check = jsonschema.Draft202012Validator(json.loads(schema))
    check.validate(yaml.safe_load(template))
    (wrong,) = check.iter_errors([{"title": "x", "priority": "high"}])
    assert [str(part) for part in (wrong.context or [])]


def test_no_such_format(repo: Repo) -> None:
    wrong = repo.coord("task", "template", "--format", "xml")
    assert wrong.returncode == 2 and "yaml, jsonl, markdown" in wrong.stderr


def test_older_words_are_taken_and_told(repo: Repo) -> None:
    added = repo.coord("task", "add", "x", "--file", "a.py", "--attempts", "2", "--resource", "b.py")
    assert added.returncode == 0 and "`--file` is called `--resource` now" in added.stderr and "`--attempts-max`" in added.stderr
    task = repo.client().task_show("T-1")
    assert (task.resources, task.attempts_max) == (["a.py", "b.py"], 2)
    assert "--file" not in repo.coord("task", "add", "--help").stdout
    repo.write("t.md", "- [ ] y (files: c.py)\n")
    read = repo.coord("task", "import", "t.md")
    assert read.stdout == "T-2 ready: y\n" and "Line 1: `files` is called `resources` now" in read.stderr


def test_a_launch_tells_of_older_words_too(repo: Repo) -> None:
    repo.write("t.md", "- [ ] y (files: c.py)\n")
    done = repo.coord("launch", "t.md", "-n", "1", "-c", "true")
    assert done.returncode == 0 and "t.md: Line 1: `files` is called `resources` now" in done.stdout, done


# ------------------------------------------------------------------------------------------ edit


def edit(repo: Repo, script: str, *more: str, task: str = "T-1") -> subprocess.CompletedProcess[str]:
    editor = repo.root.parent / "editor.sh"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    return repo.coord("task", "edit", task, *more, env={"GIT_EDITOR": str(editor), "TMPDIR": str(repo.root.parent)})


@pytest.fixture
def task(repo: Repo) -> Repo:
    repo.client().task_add("Add the parser", resources=["a.py"], prompt="Read the format.\nThen write.\n", priority=1)
    return repo


def left(repo: Repo) -> list[Path]:
    return sorted(repo.root.parent.glob("coord-T-1-*"))


def test_what_is_changed_in_the_editor_is_changed(task: Repo) -> None:
    done = edit(task, "sed -i 's/Add the parser/Write the parser/; s/^- a.py/- b.py/; s/  - a.py/  - b.py/; s/priority: 1/priority: 3/' \"$1\"")
    assert done.returncode == 0 and "changed: title, resources, priority" in done.stdout, done
    row = task.client().task_show("T-1")
    assert (row.title, row.resources, row.priority, row.prompt) == ("Write the parser", ["b.py"], 3, "Read the format.\nThen write.\n")
    assert left(task) == []
    told = edit(task, "sed -i '/^ *priority/d' \"$1\"", "--json")
    assert json.loads(told.stdout)["priority"] == 0, "what is taken out has its default"


@pytest.mark.parametrize("script", ["true", 'touch "$1"', 'printf "\\n# a remark\\n" >> "$1"', ': > "$1"'])
def test_unchanged_changes_nothing(task: Repo, script: str) -> None:
    seq = task.client().events().items[-1].seq
    done = edit(task, script)
    assert (done.returncode, done.stdout) == (0, "T-1 stays as it is.\n"), done
    assert task.client().events().items[-1].seq == seq and left(task) == []


@pytest.mark.parametrize(("script", "said"), [
    ("sed -i 's/priority: 1/priority: high/' \"$1\"", "priority"),
    ("sed -i 's/priority: 1/prio: 2/' \"$1\"", "did you mean `priority`"),
    ("sed -i 's/priority: 1/priority: 5000/' \"$1\"", "between -1000 and 1000"),
    ("echo '- another' >> \"$1\"", "2 tasks"),
    ("echo '  id: T-9' >> \"$1\"", "cannot be changed here"),
    ("echo ': [' >> \"$1\"", "malformed at line"),
    ("sed -i 's/  - a.py/  - ..\\/out/; s/^- a.py/- ..\\/out/' \"$1\"", "not inside"),
    ("sed -i 's/parser/lexer/' \"$1\"; exit 3", "ended with 3"),
    ("printf '\\377' >> \"$1\"", "not UTF-8"),
])
def test_a_mistake_is_told_and_the_text_is_kept(task: Repo, script: str, said: str) -> None:
    done = edit(task, script)
    assert done.returncode != 0 and said in done.stderr and "Traceback" not in done.stderr, done
    assert task.client().task_show("T-1").title == "Add the parser"
    (kept,) = left(task)
    again = re.search(r"`coord (task edit T-1 --from (.*))`", done.stderr)
    assert again is not None and again[2] == str(kept), done.stderr
    if said == "priority":  # corrected, and applied
        done = edit(task, "sed -i 's/priority: high/priority: 7/' \"$1\"", "--from", str(kept))
        assert done.returncode == 0 and task.client().task_show("T-1").priority == 7, done


def test_an_editor_that_fails_before_anything_is_written_leaves_nothing(task: Repo) -> None:
    assert "ended with 1" in edit(task, "exit 1").stderr and left(task) == []


def test_an_editor_that_is_not_there_is_told_with_how_to_name_another(task: Repo) -> None:
    done = task.coord("task", "edit", "T-1", env={"GIT_EDITOR": "no-such-editor", "TMPDIR": str(task.root.parent)})
    assert done.returncode == 2 and "no-such-editor" in done.stderr and "ended with 127" in done.stderr, done
    assert "GIT_EDITOR=nano coord task edit T-1" in done.stderr and left(task) == []


def test_a_directory_is_no_task_file(task: Repo) -> None:
    (task.root / "folder").mkdir()
    done = task.coord("task", "import", "folder")
    assert done.returncode == 2 and "folder is a directory" in done.stderr and "Make room" not in done.stderr, done


def test_a_task_that_is_worked_on_opens_no_editor(task: Repo) -> None:
    task.client(agent="ann").claim("T-1")
    done = edit(task, "touch opened")
    assert done.returncode != 0 and "claimed by ann" in done.stderr and not (task.root / "opened").exists()
    assert left(task) == []


def test_what_others_change_meanwhile_is_not_undone(task: Repo) -> None:
    def both(field: str, value: object) -> subprocess.CompletedProcess[str]:
        """Somebody changes a field while the editor is open, in which the title is changed."""
        other = task.root.parent / "other.py"
        other.write_text(f"from coordinator import Client\nwith Client() as c: c.task_edit('T-1', {field}={value!r})\n")
        return edit(task, f"cd '{task.root}' && '{sys.executable}' '{other}' && sed -i 's/title: .*/title: Mine/' \"$1\"")

    assert both("priority", 9).returncode == 0
    row = task.client().task_show("T-1")
    assert (row.title, row.priority) == ("Mine", 9)
    task.client().task_edit("T-1", title="ours")
    refused = both("title", "Theirs")
    assert refused.returncode != 0 and "Somebody has changed title" in refused.stderr
    assert task.client().task_show("T-1").title == "Theirs" and len(left(task)) == 1


def test_an_editor_that_removes_the_file_changes_nothing(task: Repo) -> None:
    done = edit(task, 'rm "$1"')
    assert done.returncode == 2 and "cannot be read" in done.stderr and "Nothing was changed" in done.stderr and "bug" not in done.stderr
    assert left(task) == []


@pytest.mark.parametrize(("fields", "code", "names"), [
    ("priority: 5000", 2, ["`priority` is 5000", "-1000 and 1000"]), ("attempts_max: 0", 2, ["`attempts_max` is 0"]),
    ("resources: [../../etc/passwd]", 2, ["/etc/passwd", "not inside"]), ("resources: ['shared:']", 2, ["is empty"]), ("after: nope", 7, ["'nope'"]),
])
def test_a_refusal_names_the_task_the_value_and_what_was_left(repo: Repo, fields: str, code: int, names: list[str]) -> None:
    repo.write("t.yaml", f"- title: Sound\n- title: Odd one\n  {fields}\n")
    done = repo.coord("task", "import", "t.yaml")
    assert done.returncode == code and done.stdout == "", done
    for name in ['task 2 ("Odd one"): ', *names, "Nothing was added."]:
        assert name in done.stderr, done.stderr
    assert done.stderr.count("Nothing was") == 1
    assert repo.client().task_list().items == []


def test_a_title_is_one_line_everywhere(repo: Repo) -> None:
    repo.write("t.yaml", '- title: "two\\n  lines"\n')
    assert repo.coord("task", "import", "t.yaml").stdout == "T-1 ready: two lines\n"
    assert repo.coord("task", "add", "and\r\nmore").stdout == "T-2 ready: and more\n"
    assert [row.title for row in repo.client().task_list().items] == ["two lines", "and more"]


def test_text_that_looks_like_markdown_and_is_read_as_yaml_says_so(repo: Repo) -> None:
    repo.write("t.txt", "- [ ] One\n")
    for words, text in ((("t.txt",), None), (("-",), "# Plan\n\n- [ ] One\n- [x] Two\n")):
        done = repo.coord("task", "import", *words, text=text)
        assert done.returncode == 2 and "--format markdown" in done.stderr, done


def test_a_file_means_the_same_wherever_the_command_is_typed(repo: Repo) -> None:
    """Its names begin at the root, as those of `coord launch` and of an export."""
    repo.write("src/a.py", "x\n")
    repo.write("t.yaml", "- title: x\n  resources: [src/a.py, README.md]\n")
    below = repo.root / "src"
    assert repo.coord("task", "import", "../t.yaml", cwd=below).returncode == 0
    text = repo.coord("task", "export", cwd=below).stdout
    assert repo.coord("task", "import", "-", "--format", "yaml", cwd=below, text=text).returncode == 0
    shown = json.loads(repo.coord("task", "list", "--json").stdout)["items"]
    assert [sorted(one["resources"]) for one in shown] == [["README.md", "src/a.py"]] * 2


def test_what_one_exports_the_other_reads_from_a_pipe(repo: Repo) -> None:
    for title in ("one", "two"):
        repo.coord("task", "add", title, "-r", "a.py")
    for form in ("jsonl", "yaml"):
        text = repo.coord("task", "export", "--format", form).stdout
        done = repo.coord("task", "import", "-", text=text)
        assert done.returncode == 0 and ": one" in done.stdout and ": two" in done.stdout, done
