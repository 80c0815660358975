"""`coord task …`: the backlog by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, get_args

from coordinator.cli.app import (
    AgentName,
    AsJson,
    Limit,
    Quiet,
    Short,
    app,
    ask,
    carry_out,
    complain,
    one_of,
    print_json,
    say,
)
from coordinator.cli.definition import Listed, typer
from coordinator.commands import backlog as bodies
from coordinator.words import requests as rq
from coordinator.words import texts
from coordinator.words.refusals import Code, Refusal
from coordinator.words.wrong_values import in_words

Form = Literal["yaml", "jsonl", "markdown"]
task_app = typer.Typer(cls=Listed, name="task", help="The backlog.", no_args_is_help=True)
app.add_typer(task_app)
TaskId = Annotated[str, typer.Argument(help="T-3, or 3.")]
TaskIds = Annotated[list[str], typer.Argument(metavar="TASK…", help="T-3, or 3; several.")]


@task_app.command("add")
def add(
    title: str,
    prompt: Annotated[str, typer.Option(help="What to do, for the agent.")] = "",
    resource: Annotated[
        list[str] | None, typer.Option("--resource", "-r", help=(
            "What it writes: a path, dir/, a glob, key:…; shared:PATH to read (repeatable)."))
    ] = None,
    after: Annotated[list[str] | None, typer.Option(help="A task it comes after.")] = None,
    priority: int = 0,
    attempts_max: Annotated[int | None, typer.Option(help="Attempts before it is dead.")] = None,
    file: Annotated[list[str] | None, typer.Option("--file", "-f", hidden=True)] = None,
    attempts: Annotated[int | None, typer.Option(hidden=True)] = None,
    as_json: AsJson = False,
) -> None:
    """Add one task."""
    carry_out(bodies.add, **locals())


@task_app.command("list")
def listing(
    state: Annotated[str | None, typer.Option(help=", ".join(rq.TASK_STATES))] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="Only what it has claimed.")
    ] = None,
    filtered: Annotated[str, typer.Option(
        "--filter", help="Only with this in its id, title, holder or a resource.")] = "",
    order: Annotated[str, typer.Option(help="arrival or priority.")] = "arrival",
    limit: Limit = 200,
    quiet: Quiet = False, short: Short = False,
    as_json: AsJson = False,
) -> None:
    """The backlog in order of arrival, or the next to be given out first."""
    carry_out(bodies.listing, **locals())


@task_app.command("show")
def show(task: TaskId, short: Short = False,
    as_json: AsJson = False) -> None:
    """One task, and who holds what it needs."""
    carry_out(bodies.show, **locals())


@task_app.command("claim")
def claim(
    task: Annotated[str | None, typer.Argument(help="T-3; default: the best one.")] = None,
    agent: AgentName = None,
    ttl: Annotated[str | None, typer.Option(help="30m, 2h.")] = None,
    wait: Annotated[str | None, typer.Option(help="Wait this long for one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take a task and all its leases at once."""
    carry_out(bodies.claim, **locals())


@task_app.command("done")
def done(
    task: TaskId,
    agent: AgentName = None,
    result: Annotated[str, typer.Option(help="What came of it.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Though another claims it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Finish a task; its leases are released."""
    carry_out(bodies.done, **locals())


@task_app.command("fail")
def give_up(
    task: TaskId,
    agent: AgentName = None,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    blocked: Annotated[
        list[str] | None, typer.Option(help="A resource it needs that another holds.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Though another claims it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give a task back; it is tried again later. With `--blocked`, when that is free. What was
    changed for it, a person looks at first."""
    carry_out(bodies.fail, **locals())


@task_app.command("retry")
def retry(tasks: TaskIds, as_json: AsJson = False) -> None:
    """Put dead, failed or cancelled tasks back."""
    carry_out(bodies.retry, **locals())


@task_app.command("cancel")
def cancel(
    tasks: TaskIds,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Though it is claimed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take tasks out of the backlog."""
    carry_out(bodies.cancel, **locals())


@task_app.command("import")
def import_(
    file: Annotated[str, typer.Argument(help="A .yaml, .jsonl or .md file; - for standard input.")],
    form: Annotated[
        str | None, typer.Option("--format", help="yaml, jsonl or markdown.")
    ] = None,
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


@task_app.command("outcome")
def outcome(
    task: TaskId,
    found: Annotated[str, typer.Argument(metavar="OUTCOME", help="VERIFY_FAILED, …")],
    note: Annotated[str, typer.Option(help="Why, in words.")] = "",
    agent: AgentName = None,
    as_json: AsJson = False,
) -> None:
    """Note what came of an attempt at a claimed task, for whoever tries it next."""
    carry_out(bodies.outcome, **locals())


@task_app.command("export")
def export(
    form: Annotated[str, typer.Option("--format", help="yaml, jsonl or markdown.")] = "yaml",
    as_json: AsJson = False,
) -> None:
    """The backlog as text that `task import` reads."""
    told = ask(rq.TaskExport(format=_form(form)))
    if as_json:
        print_json(told)
        return
    text = told.text
    sys.stdout.write(texts.harmless(text) if sys.stdout.isatty() else text)


def _form(text: str) -> Form:
    form: Form = one_of(text, get_args(Form), f"No format is called {text!r}")
    return form


