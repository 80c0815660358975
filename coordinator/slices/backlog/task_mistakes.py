"""Wording the mistakes in a file of tasks in the terms of that file, without types of a programming
language.

`task_fields` and `text_formats` decide what is refused.
"""

from __future__ import annotations

import re
from typing import Any

#: What a field has to be.
_WANTED = {
    "id": "a name or a number",
    "title": "text",
    "prompt": "text",
    "resources": "a name, or a list of names like [a.py, docs/]",
    "needs": "the name of a pool, or a list of names like [port, db]",
    "after": "a task, or a list of tasks like [parser, T-3]",
    "priority": "a whole number",
    "attempts_max": "a whole number",
    "state": "text",
    "done": "true or false",
}
_FIELD = re.compile(r"at `\$\.(\w+)(?:\[(\d+)\])?")
#: A YAML reader's message -> what was probably meant.
_YAML_HINTS = (
    ("mapping values are not allowed", 'Text with a colon and a space in it stands between '
     'quotation marks: title: "Fix: the parser"'),
    (r"'\t'", "Begin the line with spaces in place of the tab."),
    ("cannot start any token", "What begins with this sign stands between quotation marks: "
     "'@home'"),
    ("expected alphabetic or numeric", "What begins with * or & stands between quotation marks: "
     "'*.py'"),
    ("expected ',' or ']'", "A list that begins with `[` needs its `]`, and commas between."),
    ("expected ',' or '}'", "What begins with `{` needs its `}`, and commas between."),
    ("expected <block end>", "The fields of one task begin in the same column."),
)
#: The reader's own symbols -> what they stand for.
_YAML_SIGNS = {
    "<block end>": "the end of the task", "<block mapping start>": "a field",
    "<block sequence start>": "a list", "<stream end>": "the end of the file",
    "<scalar>": "text", "<document start>": "another document",
}
TEMPLATE = "`coord task template` prints a file to start from"


def of_field(problem: str, entry: Any) -> str:
    """Why `entry` is no task, where a check of its types found `problem`."""
    if not isinstance(entry, dict):
        return f"a task is a title, or fields (`title: …`), and this is {_shown(entry)}."
    if "missing required field" in problem:
        return "it has no `title`."
    match = _FIELD.search(problem)
    if match is None or match[1] not in _WANTED:
        return f"{problem}."
    name, place = match[1], match[2]
    value = entry.get(name)
    if place is None or not isinstance(value, list):
        quoted = " Write it between quotation marks." \
            if _WANTED[name] == "text" and value is not None else ""
        return f"`{name}` has to be {_WANTED[name]}, and is {_shown(value)}.{quoted}"
    fields = value[int(place)]
    if isinstance(fields, dict) and len(fields) == 1:  # a colon and a space
        (left, right), = fields.items()
        written = f'"{left}:{right}"'
    else:
        written = f'"{fields}"'
    return (f"`{name}` has {_shown(fields)} in it, which is no name. Write it between quotation "
            "marks:"
            f" {written[:80]}.")


def several(name: str, text: str) -> str:
    """The message that a text which should be one name has commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    return (f"`{name}: {text[:60]}` would be one name. Several are a list: "
            f"`{name}: [{', '.join(names)[:60]}]`; one with a comma in it: "
            f'`{name}: ["a, b.py"]`.')


def yaml_problem(problem: str | None) -> str:
    """A YAML reader's message without its own symbols."""
    text = problem or "it cannot be read"
    for sign, word in _YAML_SIGNS.items():
        text = text.replace(f"'{sign}'", word).replace(sign, word)
    return text


def yaml_hint(problem: str | None) -> str:
    """What to do about it."""
    return next((hint for sign, hint in _YAML_HINTS if sign in (problem or "")), f"{TEMPLATE}.")


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "several fields"
    if isinstance(value, list):
        return "a list"
    return repr(value)[:60]
