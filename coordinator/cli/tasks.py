"""`coord task …`: the backlog by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, get_args

from coordinator.cli.app import ask, complain, one_of, print_json, say
from coordinator.commands.signatures import Argument, AsJson, Option, command
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
    shared:PATH to read), after (ids), priority, attempts_max, id. In YAML:

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
    """The request that adds the tasks of a file.

    Raises:
        Refusal: INVALID, STORAGE.
    """
    chosen = _form(form) if form else None
    try:
        if not file:  # (as a path it would be the folder)
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
