"""What is made from the code, so that it cannot drift: the catalogue of refusals, settings,
operations, the life of a task; the methods of the Python clients; and what the attack battery
found, from its results, within `enforcement.md`. `python -m generators` checks
it all, `--write` writes it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import msgspec

from coordinator import toml_tables
from coordinator.cli.task_files import schema_text
from coordinator.operations.listing import BY_HAND, OPERATIONS, method_of
from coordinator.rules.backlog import TRANSITIONS
from coordinator.words.refusals import MEANING, Code, Exit
from generators import client_methods, command_files, reference_pages

FOLDER = Path(__file__).resolve().parent.parent / "context_archive"
#: What real agents came to (tests/agents/test_battery.py; `make battery` writes it).
RESULTS = FOLDER.parent / "tests" / "data" / "battery"
BEGIN = "<!-- battery: made by `make docs` from tests/data/battery; do not edit -->\n"
END = "<!-- end of battery -->\n"
SHOWN = {
    "claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "opencode": "OpenCode",
    "copilot": "Copilot CLI",
}
NOTE = "<!-- Made by `make docs` from the code; do not edit. -->\n"


def refusals() -> str:
    """The catalogue of refusals."""
    rows = [
        f"| `{code.value}` | {code.row.http} | {code.row.exit} "
        f"| {'yes' if code.row.retryable else 'no'} | {code.row.meaning} | {code.row.next} |"
        for code in Code
    ]
    return (
        f"{NOTE}# Refusals\n\nA refusal is a lawful no: it changes nothing (save its own event and "
        "place in line). Every door gives the\nsame code, sentence and next step; the body is "
        '`{"error": {"code", "message", "retryable", "next", …facts}}`.\nA request that earns '
        "several gets the first of this list.\n\n"
        "| code | HTTP | exit | retryable | meaning | next step |\n|---|---|---|---|---|---|\n"
        + "\n".join(rows) + "\n\n## Exit codes\n\nWhat a command exits with; "
        "`coord help exit-codes` says the same.\n\n| exit | name | meaning |\n|---|---|---|\n"
        + "".join(f"| {one.value} | `{one.name}` | {MEANING[one]} |\n" for one in Exit)
    )


def operations() -> str:
    """The one list of operations."""
    lines = [
        NOTE + "# Operations\n",
        "Each is written once (`coordinator/words/requests/` its shape, `coordinator/kernel/` or\n"
        "`coordinator/slices/` its use case) and served alike by the local socket, HTTP, "
        "the Python client and the\ncommand line. `/openapi.json` has the shapes.\n",
        "| operation | HTTP | Python | fields | meaning |\n|---|---|---|---|---|",
    ]
    for operation in OPERATIONS.values():
        method, path = operation.request.http
        fields = ", ".join(
            f"`{f.name}`" if f.required else f.name
            for f in msgspec.structs.fields(operation.request)
        )
        meaning = " ".join(operation.meaning.split("\n\n")[0].split())
        python = operation.name if operation.name in BY_HAND else method_of(operation.name)
        lines.append(f"| `{operation.name}` | {method} `{path}` | `{python}` | {fields} "
                     f"| {meaning} |")
    return "\n".join(lines) + "\n"


def life() -> str:
    """The transitions of a task, as a table and a diagram."""
    drawn = "\n".join(f"    {a} --> {b}: {verb}" for (a, verb), b in TRANSITIONS.items())
    rows = "\n".join(f"| {a} | {verb} | {b} |" for (a, verb), b in TRANSITIONS.items())
    return (
        f"{NOTE}# The life of a task\n\nWhat is not here is refused: `BAD_TRANSITION`. Drawn from "
        "`TRANSITIONS` in `coordinator/rules/backlog.py`.\n\n```mermaid\nstateDiagram-v2\n"
        f"    [*] --> pending\n    [*] --> ready\n{drawn}\n```\n\n"
        f"| state | verb | becomes |\n|---|---|---|\n{rows}\n"
    )


def enforcement() -> str:
    """The page as it is, with the table of the battery made anew."""
    text = (FOLDER / "enforcement.md").read_text("utf-8")
    before, begun, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    return f"{before}{BEGIN}{_battery()}{END}{after}" if begun and ended else text


#: What is listed by name below the table: of which list, which outcome, under which title.
BY_NAME = (
    ("attacks", "detected", "Only detected: changed, then found, both contents kept"),
    ("attacks", "missed", "Missed"),
    ("actions", "refused by design", "Refused by design"),
    ("actions", "stated price", "The price of a session for an ordinary user"),
    ("actions", "harmed", "Harmed"),
    ("attacks", "not run",
     "Not run, for the CLI by itself, without coord, refuses the command or ends the process"),
    ("actions", "not run", "Ordinary work that the CLI by itself refuses"),
)


def _battery() -> str:
    """One row for each CLI and user; then by name whatever was not prevented, or not equal."""
    kept = {}
    for agent, shown in SHOWN.items():
        file = RESULTS / f"{agent}.json"
        read = json.loads(file.read_text("utf-8")) if file.exists() else {}
        for user in (user for user in ("root", "user") if user in read):
            whose = shown if user == "root" else f"{shown}, ordinary user"
            kept[whose] = {"version": read["version"].rpartition("@")[2], **read[user]}
    rows = []
    for whose, one in kept.items():
        attacks, actions = (Counter(one.get(part, {}).values()) for part in ("attacks", "actions"))
        cells = (
            whose, one["version"], attacks.total() - attacks["not run"], attacks["prevented"],
            attacks["detected"], attacks["missed"], attacks["not run"],
            actions.total() - actions["not run"], actions["equal"], actions["refused by design"],
            actions["stated price"], actions["harmed"], actions["not run"])
        rows.append(f"| {' | '.join(map(str, cells))} |")
    lists = []
    for part, outcome, title in BY_NAME:
        named = []
        for name in dict.fromkeys(name for one in kept.values() for name in one.get(part, ())):
            tried = [whose for whose, one in kept.items() if name in one.get(part, ())]
            so = [whose for whose in tried if kept[whose][part][name] == outcome]
            if so:
                named.append(name if so == tried else f"{name} ({', '.join(so)})")
        lists.append(f"\n**{title}:** {'; '.join(named) or 'nothing'}.\n")
    return (
        "| | version | attacks | prevented | detected | missed | not run "
        "| actions | equal | refused by design | stated price | harmed | not run |\n"
        f"|{13 * '---|'}\n" + "\n".join(rows) + "\n" + "".join(lists))


DOCUMENTS = {
    "refusals.md": refusals, "settings.md": reference_pages.settings, "operations.md": operations,
    "task-states.md": life, "enforcement.md": enforcement,
}


def made() -> dict[Path, str]:
    """All that is made from the code: the documents, the methods of the Python clients, and what
    the `coord` command needs to know of itself."""
    package = FOLDER.parent / "coordinator"
    return {
        **{FOLDER / name: make() for name, make in DOCUMENTS.items()},
        **reference_pages.pages(FOLDER.parent / "docs"),
        FOLDER.parent / "docs" / "schemas" / "tasks.schema.json": schema_text(),
        **{package / "client" / name: text for name, text in client_methods.sources().items()},
        **{package / name: make() for name, make in command_files.FILES.items()},
        package / toml_tables.FILE: toml_tables.made(),
    }


def stale() -> list[str]:
    """Those that are not what the code says."""
    return [
        str(path.relative_to(FOLDER.parent)) for path, text in made().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]


def main(arguments: list[str]) -> int:
    """Exit code: 1 when a document is stale (and was not to be written)."""
    old = stale()
    if "--write" in arguments:
        texts = made()
        for name in old:
            path = FOLDER.parent / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], "utf-8")
            sys.stdout.write(f"written: {name}\n")
        return 0
    for name in old:
        sys.stderr.write(f"stale: {name}; `make docs` writes it again\n")
    return 1 if old else 0
