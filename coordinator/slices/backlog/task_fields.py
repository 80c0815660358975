"""The fields of a task in a file, their older names, and their JSON Schema.

`Item` is the one definition for three formats. A field has the name that the API gives it. Files
with older names are still read, and each older name is reported. An unknown name is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from coordinator.slices.backlog import task_mistakes
from coordinator.words.refusals import Code, Refusal

TITLE_CHARS_MAX = 500
PROMPT_CHARS_MAX = 200_000
PRIORITY_MAX = 1000
ATTEMPTS_MAX = 1000
#: Names of fields in files from before 0.2 -> what the field is called.
OLDER = {"files": "resources", "attempts": "attempts_max"}
#: The fields of a task in a file, for `--help` and for an author who mistyped one.
FIELDS_TOLD = ("title, prompt, resources (what it writes: paths, dir/, globs, key:…; shared:PATH "
               "to read), needs (pools), after (ids), priority, attempts_max, id")
#: Tells something to the author of the file.
Warn = Callable[[str], None]


def _describe_field(meaning: str, **more: Any) -> Meta:
    return Meta(description=meaning, extra_json_schema=more or None)


class Item(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One task."""

    id: Annotated[str | None, _describe_field(
        "A name for this task within the file, for `after` of others. coord gives the task a "
        "number of its own (T-3).")] = None
    title: Annotated[str, _describe_field(
        "What is to be done, in one line.", minLength=1, maxLength=TITLE_CHARS_MAX)]
    prompt: Annotated[str, _describe_field(
        "All that the agent has to know. It gets the title, this text, and what coord adds.",
        maxLength=PROMPT_CHARS_MAX)] = ""
    resources: Annotated[list[str], _describe_field(
        "What the task writes. All of it is leased when the task is claimed: a path (`src/pay.py`),"
        " a directory (`src/`), a glob (`src/**/*.sql`), a region (`src/pay.py::charge`) or a key "
        "(`key:account:1`). `shared:` before it: the task only reads it.")] = []
    needs: Annotated[list[str], _describe_field(
        "Pools of the environment (`coord.toml`). The agent is given a value of each with the "
        "claim, like a port of its own in PORT.")] = []
    after: Annotated[list[str], _describe_field(
        "Tasks that have to be done before: ids of this file, or of tasks that coord has (T-3)."
    )] = []
    priority: Annotated[int, _describe_field(
        "A higher number is given out first; among equals the older task.",
        minimum=-PRIORITY_MAX, maximum=PRIORITY_MAX)] = 0
    attempts_max: Annotated[int | None, _describe_field(
        "How often it may be tried before a person has to look at it (default: the setting "
        "`backlog.attempts_max`).", minimum=1, maximum=ATTEMPTS_MAX)] = None
    state: Annotated[str | None, _describe_field(
        "Written by `coord task export`. Reading ignores it, save `done`.")] = None
    done: Annotated[bool, _describe_field("A task that is done is not added.")] = False


NAMES = tuple(field.name for field in msgspec.structs.fields(Item))


def item(entry: Any, where: str, warn: Warn) -> Item:
    """The task that this entry of a file is.

    Raises:
        Refusal: INVALID, naming the place and the field.
    """
    if isinstance(entry, str):
        entry = {"title": entry}
    if isinstance(entry, dict):
        entry = _named(entry, where, warn)
        for name in ("resources", "needs", "after"):
            if isinstance(entry.get(name), str) and "," in entry[name]:
                raise refused(where, task_mistakes.several(name, entry[name]))
            if isinstance(entry.get(name), str | int) and entry[name] is not True:
                entry[name] = [entry[name]]
        if type(entry.get("id")) is int:
            entry["id"] = str(entry["id"])
        if isinstance(entry.get("after"), list):
            entry["after"] = [str(a) if type(a) is int else a for a in entry["after"]]
    try:
        made = msgspec.convert(entry, Item)
    except msgspec.ValidationError as bad:
        raise refused(where, task_mistakes.of_field(str(bad), entry)) from None
    made.done = made.done or made.state == "done"
    return made


def _named(entry: Mapping[Any, Any], where: str, warn: Warn) -> dict[str, Any]:
    """The entry with today's names of its fields.

    Raises:
        Refusal: INVALID: a name that nobody knows, or two for one field.
    """
    named: dict[str, Any] = {}
    for name, value in entry.items():
        now = OLDER.get(name, name)
        if now in named:
            raise refused(where, f"`{now}` is there twice, once by its older name. Put all into "
                          "one.")
        if now not in NAMES:
            raise refused(where, unknown(str(name)))
        if name in OLDER:
            warn(older(where, name, now))
        named[now] = value
    return named


def unknown(name: str) -> str:
    """The message for an unknown field, with the field that may have been meant."""
    near = difflib.get_close_matches(name.lower(), [*NAMES, *OLDER, "prio"], 1, 0.6)
    meant = {"prio": "priority"}.get(near[0], OLDER.get(near[0], near[0])) if near else None
    return f"there is no field {name[:60]!r}" + (f"; did you mean `{meant}`?" if meant else ".")


def older(where: str, name: str, now: str) -> str:
    """The message for an older name."""
    return (f"{where}: `{name}` is called `{now}` now. It was read as that; the version after this "
            "one will refuse the older name.")


def refused(where: str, why: str) -> Refusal:
    """INVALID, with the place and the fields that there are."""
    return Refusal(Code.INVALID, f"{where}: {why} Nothing was added.", where=where,
                   next=f"A task has these fields: {FIELDS_TOLD}.")


#: In a schema: not blanks alone.
SAYS_SOMETHING = r"\S"


def schema() -> dict[str, Any]:
    """The JSON Schema of a task file in YAML (or JSON): what `item` takes, no more and no less."""
    made = msgspec.json.schema(Item)["$defs"]["Item"]
    fields: dict[str, Any] = made["properties"]
    names = {"type": "array", "items": {"type": "string", "pattern": SAYS_SOMETHING}}
    ids = {"type": ["string", "integer"], "pattern": SAYS_SOMETHING}
    fields["title"]["pattern"] = SAYS_SOMETHING
    for name, several in (("resources", names), ("needs", names),
                          ("after", {"type": "array", "items": ids})):
        one = {**(ids if name == "after" else {"type": "string"}),
               "pattern": r"^[^,]*[^,\s][^,]*$"}  # a comma would be a part of the name
        fields[name] = {"description": fields[name]["description"], "anyOf": [one, several]}
    fields["id"] = {"description": fields["id"]["description"],
                    "type": ["string", "integer", "null"]}
    for name, now in OLDER.items():
        fields[name] = {**fields[now], "deprecated": True,
                        "description": f"The older name of `{now}`."}
    task = {"title": "Task", "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": TITLE_CHARS_MAX, "pattern": SAYS_SOMETHING,
         "description": "A title alone."},
        {**made, "allOf": [{"not": {"required": [name, now]}} for name, now in OLDER.items()]},
    ]}
    tasks = {"type": "array", "items": {"$ref": "#/$defs/task"}, "minItems": 1}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tasks for coord",
        "description": "A file of `coord task import` and `coord launch`: a list of tasks, or "
                       "`tasks:` with one.",
        "anyOf": [tasks, {
            "type": "object", "properties": {"tasks": tasks}, "required": ["tasks"],
            "additionalProperties": False,
        }],
        "$defs": {"task": task},
    }
