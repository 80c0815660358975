"""`coord task template|schema|edit`: a file of tasks to start from, what editors check one by, and
a task as such a file in one's own editor.

What a task may say, and how a file is read, is the service's (`slices.backlog.task_fields`).

`coord task …`: the backlog by hand.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from coordinator.cli.app import ask, complain, one_of, print_json, say
from coordinator.cli.screens import tools
from coordinator.commands.signatures import Argument, AsJson, Option, command
from coordinator.slices.backlog import task_fields, text_formats
from coordinator.slices.backlog.commands import TaskId
from coordinator.slices.backlog.task_fields import Item
from coordinator.words import requests as rq
from coordinator.words import texts
from coordinator.words.refusals import Code, Refusal
from coordinator.words.wrong_values import in_words

Form = Literal["yaml", "jsonl", "markdown"]


@command("task import")
def import_(
    file: Annotated[str, Argument("A .yaml, .jsonl or .md file; - for standard input.")],
    form: Annotated[str | None, Option("yaml, jsonl or markdown.", "--format")] = None,
    as_json: AsJson = False,
) -> None:
    """Add many tasks, all or none.

    A task has these fields: title, prompt, resources (what it writes: paths, dir/, globs, key:…;
    shared:PATH to read), needs (pools), after (ids), priority, attempts_max, id. In YAML:

    - {title: Add the parser, resources: [parsers/aoi.py], id: p}

    - {title: Use it, resources: [main.py], after: p, priority: 2}

    In Markdown: - [ ] Use it (resources: main.py) (after: p), the prompt indented below.
    `coord task template` prints a file to start from, `coord task schema` what editors check it by.
    """
    added = ask(import_request(file, form))
    for warning in added.warnings:
        complain(f"coord: {warning}")
    if as_json:
        print_json(added)
        return
    for row in added.items:
        say(f"{row.task} {row.state}: {row.title}")


def import_request(file: str, form: str | None = None) -> rq.TaskImport:
    """Return the request that adds the tasks of a file.

    Raises:
        Refusal: INVALID, STORAGE.
    """
    chosen = _form(form) if form else None
    try:
        if not file:  # as a path it would be the folder
            raise FileNotFoundError(file)
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except FileNotFoundError:
        raise Refusal(
            Code.INVALID, f"There is no file {file or repr(file)}.",
            next="Name a .yaml, .jsonl or .md file.",
        ) from None
    except IsADirectoryError:
        raise Refusal(
            Code.INVALID, f"{file} is a directory.", next="Name a .yaml, .jsonl or .md file."
        ) from None
    except UnicodeDecodeError as bad:
        raise Refusal(Code.INVALID, f"{file} cannot be read: {in_words(bad)}. Nothing was "
                      "added.", next="Save it as UTF-8.") from None
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{file} cannot be read: {bad.strerror}.") from None
    return rq.TaskImport(text=text, format=chosen, name=file)


@command("task export")
def export(
    form: Annotated[str, Option("yaml, jsonl or markdown.", "--format")] = "yaml",
    as_json: AsJson = False,
) -> None:
    """The backlog as text that `task import` reads."""
    exported = ask(rq.TaskExport(format=_form(form)))
    if as_json:
        print_json(exported)
        return
    text = exported.text
    sys.stdout.write(texts.harmless(text) if sys.stdout.isatty() else text)


def _form(text: str) -> Form:
    form: Form = one_of(text, get_args(Form), f"No format is called {text!r}")
    return form


#: Form -> the file with its example.
TEMPLATES: dict[Form, str] = {"yaml": "task_template.yaml", "markdown": "task_template.md",
                              "jsonl": "task_template.jsonl"}
HEAD = """\
# {task}. Change it, save, and leave the editor: what is changed here is changed there.
# A field that you take out has its default again. Leave all as it is to change nothing.
"""
FIELDS = ("title", "prompt", "resources", "needs", "after", "priority", "attempts_max")
#: How often a change is sent again because another field of the task has changed.
TRIES = 5


@command("task template")
def template(
    form: Annotated[str, Option("yaml, markdown or jsonl.", "--format")] = "yaml",
) -> None:
    """Print a file of tasks to start from, with remarks: `coord task template > tasks.yaml`."""
    form_name: Form = one_of(form, get_args(Form), f"No format is called {form!r}")
    sys.stdout.write(Path(__file__).with_name(TEMPLATES[form_name]).read_text("utf-8"))


@command("task schema")
def schema() -> None:
    """Print the JSON Schema of a task file, by which editors check it while you write.

    `coord task schema > tasks.schema.json`; then begin the YAML file beside it with the line
    `# yaml-language-server: $schema=tasks.schema.json`.
    """
    sys.stdout.write(schema_text())


def schema_text() -> str:
    """Return the schema as it is printed, and kept in the documents."""
    return json.dumps(task_fields.schema(), indent=2, ensure_ascii=False) + "\n"


@command("task edit")
def edit(
    task: TaskId,
    begin: Annotated[Path | None, Option("Begin with the text of this file.", "--from")] = None,
    as_json: AsJson = False,
) -> None:
    """Change what a task says, in your editor ($GIT_EDITOR, git's core.editor, $VISUAL, $EDITOR).

    Not while an agent works on it. Nothing is changed when the text stays as it is.
    """
    row = ask(rq.TaskEdit(task=task))  # nothing yet: whether it can be changed at all
    before = HEAD.format(task=row.task) + text_formats.as_yaml(
        [{name: getattr(row, name) for name in FIELDS}])
    kept = _written(row.task, before if begin is None else _text(begin))
    try:
        code = tools.edit(kept, None, Path.cwd())
        after = _text(kept)
        if code:
            raise Refusal(
                Code.INVALID, f"The editor ended with {code}. Nothing was changed.",
                next=f"Another editor: `GIT_EDITOR=nano coord task edit {row.task}`.")
        changes = _changes(before, after)
        made = _sent(row, changes) if changes else row
    except Refusal as refusal:
        there = kept.read_bytes() if kept.exists() else None  # an editor may have removed it
        if there is None or (begin is None and there == before.encode()):
            kept.unlink(missing_ok=True)
        else:
            then = f"Your text is kept: `coord task edit {row.task} --from {kept}`."
            refusal.next = f"{refusal.next} {then}" if refusal.next else then
        raise
    kept.unlink(missing_ok=True)
    if as_json:
        print_json(made)
    elif not changes:
        say(f"{row.task} stays as it is.")
    else:
        say(f"{made.task} {made.state}: {made.title}")
        say(f"  changed: {', '.join(changes)}")


def _written(task: str, text: str) -> Path:
    handle, path = tempfile.mkstemp(prefix=f"coord-{task}-", suffix=".yaml")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(path)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as bad:
        raise Refusal(Code.INVALID, f"{path} cannot be read: {in_words(bad)}. Nothing was "
                      "changed.") from None


def _changes(before: str, after: str) -> dict[str, Any]:
    """Return each changed field with its new value.

    Raises:
        Refusal: INVALID: the text is not one task.
    """
    if after == before or not after.strip():
        return {}
    old, new = _read_item(before), _read_item(after)
    if new.attempts_max is None:
        new.attempts_max = old.attempts_max
    return {name: getattr(new, name) for name in FIELDS if getattr(new, name) != getattr(old, name)}


def _read_item(text: str) -> Item:
    try:
        read = text_formats.read(text, "yaml")
    except Refusal as refusal:
        raise Refusal(refusal.code, refusal.message.replace("added", "changed"),
                      next=refusal.next, **refusal.facts) from None
    for warning in read.warnings:
        complain(f"coord: {warning}")
    if len(read.items) != 1:
        raise Refusal(Code.INVALID, f"The text has {len(read.items)} tasks in place of one. "
                      "Nothing was changed.")
    (item,) = read.items
    if item.id is not None or item.done or item.state is not None:
        raise Refusal(Code.INVALID, "`id`, `done` and `state` cannot be changed here. Nothing was "
                      "changed.", next="`coord task done`, `cancel` and `retry` change its state.")
    return item


def _sent(row: rq.Task, changes: dict[str, Any]) -> rq.Task:
    """Change the task, unless one of these fields was changed while the editor was open.

    Raises:
        Refusal: VERSION_CHANGED, and whatever the coordinator has against it.
    """
    seen = row.updated_at
    for _ in range(TRIES):
        try:
            return ask(rq.TaskEdit(task=row.task, seen=seen, **changes))
        except Refusal as refusal:
            if refusal.code is not Code.VERSION_CHANGED:
                raise
        now = ask(rq.TaskShow(task=row.task))
        both = [name for name in changes if getattr(now, name) != getattr(row, name)]
        if both:
            raise Refusal(
                Code.VERSION_CHANGED, f"Somebody has changed {', '.join(both)} of {row.task} while "
                "you wrote. Nothing was changed.", next=f"`coord task show {row.task}` has it now.",
            )
        seen = now.updated_at
    raise Refusal(Code.VERSION_CHANGED, f"{row.task} changes all the time. Nothing was changed.")
