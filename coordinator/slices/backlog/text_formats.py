"""The backlog as text: YAML, JSON lines, Markdown check-lists. Reading is strict, and says where.

YAML is a list of tasks (or `tasks:` with one), each a title or a mapping; a JSON line is one such
mapping; Markdown is read by `markdown_tasks`. What a task may say is in `task_fields`.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from coordinator.slices.backlog import markdown_tasks, task_fields, task_mistakes
from coordinator.slices.backlog.task_fields import Item, Warn
from coordinator.slices.backlog.task_mistakes import TEMPLATE
from coordinator.words.refusals import Code, Refusal

# YAML is imported where it is read and written: most coordinators never see any.
if TYPE_CHECKING:
    import yaml

Format = Literal["yaml", "jsonl", "markdown"]
#: The format by the ending of a file's name.
ENDINGS: dict[str, Format] = {
    ".yaml": "yaml", ".yml": "yaml", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".md": "markdown", ".markdown": "markdown",
}
#: Several lines, an object of JSON on each.
_OBJECTS = re.compile(r"\s*\{.*\}[ \t\r]*\n\s*\{")
#: How many warnings of one text are shown; a large old file has as many as tasks.
WARNINGS_MAX = 20


class Read(NamedTuple):
    """The tasks of a text, and what its writer should know."""

    items: list[Item]
    warnings: list[str]


def format_of(name: str, text: str) -> Format:
    """The format of a file by the ending of its name, otherwise by its text."""
    _, dot, ending = name.rpartition(".")
    known = ENDINGS.get(dot + ending.lower())
    return known or ("jsonl" if _OBJECTS.match(text) else "yaml")


def read(text: str, form: Format) -> Read:
    """The tasks in `text`.

    Raises:
        Refusal: INVALID, naming line and column (YAML, JSON) or the item.
    """
    if "\0" in text:
        raise Refusal(Code.INVALID, "The text contains a NUL character. Nothing was added.")
    warnings: list[str] = []
    how = {"yaml": _yaml, "jsonl": _jsonl, "markdown": markdown_tasks.read}[form]
    items = how(text, warnings.append)
    if not items:
        raise Refusal(Code.INVALID, f"No task was found in the {form} text. Nothing was added.",
                      next=f"{TEMPLATE} (`--format {form}`).")
    if len(warnings) > WARNINGS_MAX:
        more = len(warnings) - WARNINGS_MAX
        warnings[WARNINGS_MAX:] = [f"And {more} more of these."]
    return Read(items, warnings)


def write(items: list[Item], form: Format) -> str:
    """`items` as text that `read` takes back."""
    if form == "markdown":
        return "".join(markdown_tasks.write(item) for item in items)
    rows = [msgspec.to_builtins(item) for item in items]
    if form == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return as_yaml({"tasks": rows})


def as_yaml(data: Any) -> str:
    """Data as YAML. Nothing in a text is taken for an end of line that was none."""
    import yaml

    return yaml.dump(data, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=100)


@cache
def _dumper() -> type[yaml.SafeDumper]:
    """As PyYAML writes, but that signs which YAML takes for ends of lines are escaped, and that a
    text of several lines is written as such where that is possible."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(str, _escaped)
    return Dumper


def _escaped(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _BREAKS.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_BREAKS = re.compile("[\r\x85\u2028\u2029\ufeff]")


@cache
def _loader() -> type[yaml.SafeLoader]:
    """As PyYAML reads, but that a key which is there twice is refused: the first was lost."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in getattr(node, "value", ()):
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"`{key.value}` is there twice", key.start_mark)
                    seen.add(key.value)
            return super().construct_mapping(node, deep)

    return Loader


_BOX = re.compile(r"^\s*[-*+] \[[ xX]\] \S", re.MULTILINE)


def _yaml(text: str, warn: Warn) -> list[Item]:
    import yaml

    try:
        loader = _loader()(text)
        node: Any = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise Refusal(
            Code.INVALID, f"The YAML is malformed at {where}: "
            f"{task_mistakes.yaml_problem(bad.problem)}. Nothing was added.",
            line=mark.line + 1 if mark else None, column=mark.column + 1 if mark else None,
            next="This looks like Markdown: repeat it with `--format markdown`."
            if _BOX.search(text) else task_mistakes.yaml_hint(bad.problem),
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as bad:
        raise Refusal(Code.INVALID, f"The YAML cannot be read: {bad}. Nothing was added.") from None
    if isinstance(data, dict) and set(data) == {"tasks"}:
        data, node = data["tasks"], node.value[0][1]
    if data is None:
        return []
    if not isinstance(data, list):
        raise Refusal(
            Code.INVALID, "The YAML must be a list of tasks, or `tasks:` with one. "
            "Nothing was added.",
            next=f"Begin each task with a dash (`- title: a`); {TEMPLATE}.",
        )
    lines = [entry.start_mark.line + 1 for entry in node.value]
    return [task_fields.item(entry, f"task {i} (line {lines[i - 1]})", warn)
            for i, entry in enumerate(data, 1)]


def _jsonl(text: str, warn: Warn) -> list[Item]:
    items = []
    # Only a newline ends a line, because a prompt may contain other line separators.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line, object_pairs_hook=_once)
        except (ValueError, RecursionError) as bad:
            column = getattr(bad, "colno", 1)
            raise Refusal(
                Code.INVALID, f"Line {number}, column {column} is not JSON: "
                f"{getattr(bad, 'msg', bad)}. Nothing was added.", line=number, column=column,
            ) from None
        if isinstance(entry, list):
            raise Refusal(Code.INVALID, f"line {number} is a list. Nothing was added.",
                          next="Write one object a line, without [ ] around them; as YAML "
                          "(`--format yaml`) a list is read.")
        items.append(task_fields.item(entry, f"line {number}", warn))
    return items


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"`{twice}` is there twice")
    return made
