"""The backlog as text: YAML, JSON lines, Markdown check-lists. Reading is strict, and says where.

YAML is a list of tasks (or `tasks:` with one), each a title or a mapping; a JSON line is one such
mapping; in Markdown each `- [ ] Title` is a task, with `(files: a, b)`, `(after: T-1)`,
`(priority: 3)`, `(id: x)` at its end and its prompt indented below. `resources`, the word of the
API, is taken for `files`.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from coordinator.words.refusals import Code, Refusal

# YAML is imported where it is read and written: most coordinators never see any.
if TYPE_CHECKING:
    import yaml

Format = Literal["yaml", "jsonl", "markdown"]
_BOX = re.compile(r"^[-*+] \[( |x|X)\] +(.*)$")
#: One of several names; names that are written between backticks.
_PART = re.compile(r"\s*(`[^`]*`|[^,]+)\s*")
_QUOTED = re.compile(r"[,()'\"]")
_FACT = re.compile(r"(\w+): *(.*)", re.DOTALL)
#: Words of a fact in Markdown, as people write them -> the field.
_FIELDS = {
    "files": "files", "file": "files", "resources": "files", "resource": "files",
    "after": "after", "priority": "priority", "prio": "priority", "id": "id",
    "attempts": "attempts",
}
#: What a task in a file may say, for `--help` and for whoever mistypes it.
FIELDS_TOLD = ("title, prompt, files (what it writes: paths, dir/, globs, key:…; shared:PATH to "
               "read), after (ids), priority, attempts, id")


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
    import yaml

    return yaml.dump({"tasks": rows}, Dumper=_dumper(), sort_keys=False, allow_unicode=True,
                     width=100)


@cache
def _dumper() -> type[yaml.SafeDumper]:
    """As PyYAML writes, but that signs which YAML takes for ends of lines are escaped."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(str, _escaped)
    return Dumper


def _escaped(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _BREAKS.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_BREAKS = re.compile("[\r\x85\u2028\u2029\ufeff]")


def _yaml(text: str) -> list[Item]:
    import yaml

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
    for number, line in enumerate(_lines(text), 1):
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


def _lines(text: str) -> list[str]:
    """Its lines. Only a newline ends one: other signs that break lines may stand in a prompt."""
    return text.split("\n")


def _item(entry: Any, where: str) -> Item:
    if isinstance(entry, str):
        entry = {"title": entry}
    if isinstance(entry, dict):
        if "resources" in entry and "files" not in entry:
            entry = {**entry, "files": entry["resources"]}
            del entry["resources"]
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
        raise Refusal(
            Code.INVALID, f"{where}: {bad}. Nothing was added.", where=where,
            next=f"A task has these fields: {FIELDS_TOLD}.",
        ) from None
    item.done = item.done or item.state == "done"
    return item


def _markdown(text: str) -> list[Item]:
    items: list[Item] = []
    for number, line in enumerate(_lines(text), 1):
        box = _BOX.match(line)
        if box:
            items.append(_from_box(box[2], box[1] != " ", number))
        elif items and line.startswith(("  ", "\t")) and line.strip():
            _prompt_line(items[-1], line)
        elif items and not line.strip() and items[-1].prompt:
            items[-1].prompt += "\n"
    for item in items:
        item.prompt = item.prompt.strip("\n")
    return items


def _prompt_line(item: Item, line: str) -> None:
    """One more line of a prompt, without the two signs (or the tab) by which all of it is
    indented; what is beyond them is the prompt's own."""
    own = line[1:] if line.startswith("\t") else line[2:]
    item.prompt += ("\n" if item.prompt else "") + own.rstrip()


def _from_box(title: str, done: bool, number: int) -> Item:
    facts: dict[str, Any] = {}
    while (found := _last_fact(title)) is not None:
        at, name, value = found
        if title[:at].endswith("\\"):  # it is no fact, but the title's own
            title = title[: at - 1] + title[at:]
            break
        title = title[:at]
        if name in ("files", "after"):
            value = [*_parts(value), *facts.get(name, [])]
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


def _last_fact(title: str) -> tuple[int, str, Any] | None:
    """(where it begins, its field, its value) of a fact in parentheses at the end of a title.
    Parentheses within it belong to it: `(files: app/(auth)/page.tsx)`; between backticks they mean
    nothing."""
    text = title.rstrip()
    if not text.endswith(")"):
        return None
    depth, code = 0, False
    for at in range(len(text) - 1, -1, -1):
        code = code != (text[at] == "`")
        depth += 0 if code else {")": 1, "(": -1}.get(text[at], 0)
        if depth == 0:
            fact = _FACT.fullmatch(text[at + 1 : -1])
            name = _FIELDS.get(fact[1].lower()) if fact else None
            return (at, name, fact[2].strip()) if fact and name else None
    return None


def _parts(value: str) -> list[str]:
    """What stands between commas; between backticks or quotes as it is."""
    found = (part.strip() for part in _PART.findall(value))
    return [part[1:-1] if part[:1] == "`" == part[-1:] and len(part) > 1 else part.strip("`'\"")
            for part in found if part]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" if _QUOTED.search(name) else name for name in names)


def _as_markdown(item: Item) -> str:
    facts = ""
    if item.files:
        facts += f" (files: {_listed(item.files)})"
    if item.after:
        facts += f" (after: {_listed(item.after)})"
    if item.priority:
        facts += f" (priority: {item.priority})"
    if item.attempts:
        facts += f" (attempts: {item.attempts})"
    if item.id:
        facts += f" (id: {item.id})"
    lines = item.prompt.strip("\n").split("\n") if item.prompt.strip("\n") else []
    prompt = "".join(f"  {line}\n" if line.strip() else "\n" for line in lines)
    title = " ".join(item.title.split())
    own = _last_fact(title)
    if own is not None:
        title = f"{title[: own[0]]}\\{title[own[0] :]}"
    return f"- [{'x' if item.done else ' '}] {title}{facts}\n{prompt}"
