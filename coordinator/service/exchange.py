"""The backlog as text: YAML, JSON lines, Markdown check-lists. Reading is strict, and says where.

YAML is a list of tasks (or `tasks:` with one), each a title or a mapping; a JSON line is one such
mapping; in Markdown each `- [ ] Title` is a task, with `(files: a, b)`, `(after: T-1)`,
`(priority: 3)`, `(id: x)` at its end and its prompt indented below.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import msgspec
import yaml

from coordinator.words.refusals import Code, Refusal

Format = Literal["yaml", "jsonl", "markdown"]
_BOX = re.compile(r"^[-*+] \[( |x|X)\] +(.*)$")
_FACT = re.compile(r"\s*\((files|file|after|priority|id|attempts): *([^()]*)\)\s*$")


class Item(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One task as text."""

    id: str | None = None
    title: str
    prompt: str = ""
    files: list[str] = []
    after: list[str] = []
    priority: int = 0
    attempts: int | None = None
    state: str | None = None  # written by export, ignored by import except `done`
    done: bool = False


def read(text: str, form: Format) -> list[Item]:
    """The tasks in `text`.

    Raises:
        Refusal: INVALID, naming line and column (YAML, JSON) or the item.
    """
    if "\0" in text:
        raise Refusal(Code.INVALID, "The text contains a NUL character. Nothing was added.")
    items = {"yaml": _yaml, "jsonl": _jsonl, "markdown": _markdown}[form](text)
    if not items:
        raise Refusal(Code.INVALID, f"No task was found in the {form} text. Nothing was added.")
    return items


def write(items: list[Item], form: Format) -> str:
    """`items` as text that `read` takes back."""
    if form == "markdown":
        return "".join(_as_markdown(item) for item in items)
    rows = [msgspec.to_builtins(item) for item in items]
    if form == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return yaml.safe_dump({"tasks": rows}, sort_keys=False, allow_unicode=True, width=100)


def _yaml(text: str) -> list[Item]:
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise Refusal(
            Code.INVALID, f"The YAML is malformed at {where}: {bad.problem}. Nothing was added.",
            line=mark.line + 1 if mark else None, column=mark.column + 1 if mark else None,
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as bad:
        raise Refusal(Code.INVALID, f"The YAML cannot be read: {bad}. Nothing was added.") from None
    if isinstance(data, dict) and set(data) == {"tasks"}:
        data = data["tasks"]
    if data is None:
        return []
    if not isinstance(data, list):
        raise Refusal(
            Code.INVALID, "The YAML must be a list of tasks, or `tasks:` with one. "
            "Nothing was added.",
        )
    return [_item(entry, f"task {i}") for i, entry in enumerate(data, 1)]


def _jsonl(text: str) -> list[Item]:
    items = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as bad:
            column = getattr(bad, "colno", 1)
            raise Refusal(
                Code.INVALID, f"Line {number}, column {column} is not JSON: "
                f"{getattr(bad, 'msg', bad)}. Nothing was added.", line=number, column=column,
            ) from None
        items.append(_item(entry, f"line {number}"))
    return items


def _item(entry: Any, where: str) -> Item:
    if isinstance(entry, str):
        entry = {"title": entry}
    if isinstance(entry, dict):
        for name in ("files", "after"):
            if isinstance(entry.get(name), str):
                entry[name] = [entry[name]]
        if isinstance(entry.get("id"), int):
            entry["id"] = str(entry["id"])
        if isinstance(entry.get("after"), list):
            entry["after"] = [str(a) if isinstance(a, int) else a for a in entry["after"]]
    try:
        item = msgspec.convert(entry, Item)
    except msgspec.ValidationError as bad:
        raise Refusal(Code.INVALID, f"{where}: {bad}. Nothing was added.", where=where) from None
    item.done = item.done or item.state == "done"
    return item


def _markdown(text: str) -> list[Item]:
    items: list[Item] = []
    for number, line in enumerate(text.splitlines(), 1):
        box = _BOX.match(line)
        if box:
            items.append(_from_box(box[2], box[1] != " ", number))
        elif items and line.startswith(("  ", "\t")) and line.strip():
            last = items[-1]
            last.prompt = f"{last.prompt}\n{line.strip()}".strip()
    return items


def _from_box(title: str, done: bool, number: int) -> Item:
    facts: dict[str, Any] = {}
    while fact := _FACT.search(title):
        title = title[: fact.start()]
        name = "files" if fact[1] == "file" else fact[1]
        value: Any = fact[2].strip()
        if name in ("files", "after"):
            value = [part.strip().strip("`") for part in value.split(",") if part.strip()]
        elif name in ("priority", "attempts"):
            try:
                value = int(value)
            except ValueError:
                raise Refusal(
                    Code.INVALID, f"Line {number}: {name} must be a number, not {value!r}. "
                    "Nothing was added.", line=number,
                ) from None
        facts[name] = value
    return _item({"title": title.strip(), "done": done, **facts}, f"line {number}")


def _as_markdown(item: Item) -> str:
    facts = ""
    if item.files:
        facts += f" (files: {', '.join(item.files)})"
    if item.after:
        facts += f" (after: {', '.join(item.after)})"
    if item.priority:
        facts += f" (priority: {item.priority})"
    if item.attempts:
        facts += f" (attempts: {item.attempts})"
    if item.id:
        facts += f" (id: {item.id})"
    prompt = "".join(f"  {line}\n" for line in item.prompt.splitlines() if line.strip())
    title = " ".join(item.title.split())
    return f"- [{'x' if item.done else ' '}] {title}{facts}\n{prompt}"
