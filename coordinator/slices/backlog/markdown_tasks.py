"""Tasks as a Markdown check-list. Each `- [ ] Title` is one task.

Parentheses at the end of the title hold its fields: `(resources: a, b)`, `(after: T-1)`,
`(priority: 3)`. The prompt is indented below. Text that looks like a field is never silently taken
into the title; the author writes `\\(` to mean a plain parenthesis. Headings and other text beside
the list are ignored. Names with commas or parentheses stand between backticks, as code does in
Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from coordinator.slices.backlog import task_fields
from coordinator.slices.backlog.task_fields import TITLE_CHARS_MAX, Item, Warn
from coordinator.words.refusals import Code, Refusal

_BOX = re.compile(r"^(?:[-*+]|\d{1,9}[.)]) \[( |x|X)\] +(\S.*)$")
#: Text that somebody may have meant as a check box.
_NEARLY = re.compile(r"^ ?(?:[-*+]|\d{1,9}[.)]) *\[ *[xX]? *\](?![(\[:])")
_NESTED = re.compile(r"^\s+(?:[-*+]|\d{1,9}[.)]) \[[ xX]\] ")
_FENCE = re.compile(r"^(`{3,}|~{3,})")
#: `(word:` with the backslashes before it. An unknown word needs a space after its colon, because
#: `(http://…)` and `(10:30)` say nothing about a task.
_OPEN = re.compile(r"(\\*)\(\s*([A-Za-z][\w-]*)\s*:(\s|(?=\)))?")
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
_MARKS = "'\"`"
_NEEDS_QUOTES = re.compile(r"[,()'\"`]|^\s|\s$")
#: Words for a field that people write in Markdown, beside its name and its older names.
_SHORT = {"resource": "resources", "file": "resources", "prio": "priority"}
_WORDS = {**dict.fromkeys(("resources", "needs", "after", "priority", "attempts_max", "id"), ""),
          **task_fields.OLDER, **_SHORT}


class _Fact(NamedTuple):
    word: str
    parts: list[str]
    #: The first of them that begins or ends with a quotation mark, and should not.
    odd: str | None
    #: Its text, for a field with one value.
    text: str


def read(text: str, warn: Warn) -> list[Item]:
    """The tasks of a check-list.

    Raises:
        Refusal: INVALID, naming the line.
    """
    items: list[Item] = []
    open_: Item | None = None
    within, since = "", 0  # a comment or a block of code: what ends it, where it began
    for number, line in enumerate(text.split("\n"), 1):
        if within:
            if _closes(line, within):
                within = ""
        elif box := _BOX.match(line.rstrip()):
            open_ = _from_box(box[2], box[1] != " ", number, warn)
            items.append(open_)
        elif open_ is not None and line.startswith(("  ", "\t")) and line.strip():
            _add_line(open_, line)
        elif not line.strip():
            if open_ is not None and open_.prompt:
                open_.prompt += "\n"
        elif _NEARLY.match(line):
            raise _refused(number, "this looks like a task and is none", "Write `- [ ] Title`.")
        elif _NESTED.match(line):
            raise _refused(number, "a task that is indented belongs to the prompt of the task "
                           "above it, and there is none", "Begin the line with `- [ ]`.")
        else:
            open_ = None
            within, since = _find_end(line), number
    if within:
        raise _refused(since, f"what begins here is not closed by `{within}`", "Close it.")
    for item in items:
        item.prompt = item.prompt.strip("\n")
    return items


def _closes(line: str, within: str) -> bool:
    return (within == "-->" and within in line) or line.rstrip() == within


def _find_end(line: str) -> str:
    """The end of the code block or comment that begins in this line; empty if none begins."""
    if fence := _FENCE.match(line):
        return fence[1]
    return "-->" if line.startswith("<!--") and "-->" not in line else ""


def _add_line(item: Item, line: str) -> None:
    own = line[1:] if line.startswith("\t") else line[2:]
    item.prompt += ("\n" if item.prompt else "") + own.rstrip()


def write(item: Item) -> str:
    """A task as `read` takes it back."""
    facts = ""
    for word, names in (("resources", item.resources), ("needs", item.needs),
                        ("after", item.after)):
        if names:
            facts += f" ({word}: {', '.join(map(_quoted, names))})"
    if item.priority:
        facts += f" (priority: {item.priority})"
    if item.attempts_max:
        facts += f" (attempts_max: {item.attempts_max})"
    if item.id:
        facts += f" (id: {_quoted(item.id)})"
    lines = item.prompt.strip("\n").split("\n") if item.prompt.strip("\n") else []
    prompt = "".join(f"  {line}\n" if line.strip() else "\n" for line in lines)
    title = _OPEN.sub(lambda match: "\\" + match[1] + match[0], " ".join(item.title.split()))
    return f"- [{'x' if item.done else ' '}] {title}{facts}\n{prompt}"


def _from_box(title: str, done: bool, number: int, warn: Warn) -> Item:
    where = f"Line {number}"
    title, facts = _split(title, number)
    given: dict[str, Any] = {}
    for fact in facts:
        field = _WORDS[fact.word] or fact.word
        if fact.word in task_fields.OLDER:
            warn(task_fields.older(where, fact.word, field))
        if field in ("resources", "needs", "after"):
            given[field] = [*given.get(field, []), *fact.parts]
        elif field in given:
            raise _refused(number, f"`{field}` is there twice", "Leave one of them out.")
        else:
            given[field] = fact.text
            if field in ("priority", "attempts_max"):
                given[field] = _number(fact, field, number)
    return task_fields.item({"title": title, "done": done, **given}, where, warn)


def _number(fact: _Fact, field: str, number: int) -> int:
    try:
        return int(fact.text)
    except ValueError:
        raise Refusal(
            Code.INVALID, f"Line {number}: {field} must be a number, not {fact.text!r}. "
            "Nothing was added.", line=number,
        ) from None


def _check_facts(facts: Sequence[_Fact], number: int) -> None:
    for fact in facts:
        if fact.word not in _WORDS:
            raise _refused(number, f"`({fact.word}: …)` is not understood: "
                           + task_fields.unknown(fact.word).rstrip("."), _OWN)
        if fact.odd is not None:
            raise _refused(number, f"the quotation marks of {fact.odd[:60]} are not understood",
                           "Write the name between backticks.")


def _split(line: str, number: int) -> tuple[str, list[_Fact]]:
    """The title, and the facts at its end.

    Raises:
        Refusal: INVALID: something that looks like a fact is none.
    """
    facts: list[_Fact] = []
    title = line
    for match in _OPEN.finditer(line, 0, 4 * TITLE_CHARS_MAX):
        position = match.start() + len(match[1])
        stands_apart = line[position - 1 : position] in ("", " ", "\t", ")")
        if len(match[1]) % 2 == 0 and _is_fact(match) and stands_apart:
            read_on = _to_the_end(line, position)
            if read_on is not None:
                title, facts = line[:position], read_on
                break
    _check_facts(facts, number)
    code = [found_match.span() for found_match in _CODE.finditer(title)]
    for match in _OPEN.finditer(title):
        position = match.start() + len(match[1])
        if (len(match[1]) % 2 == 0 and match[2].lower() in _WORDS
                and not any(begin < position < end for begin, end in code)):
            raise _refused(number, f"`({match[2]}: …)` is not at the end of the line, or is not "
                           "closed", _OWN)
    return _OPEN.sub(lambda found_match: found_match[0].replace(
        found_match[1], "\\" * (len(found_match[1]) // 2), 1) if len(found_match[1]) % 2
        else found_match[0],
        title).strip(), facts


_OWN = "Correct it, or write `\\(` in its place if it belongs to the title."


def _is_fact(match: re.Match[str]) -> bool:
    return match[3] is not None or match[2].lower() in _WORDS


def _to_the_end(line: str, position: int) -> list[_Fact] | None:
    """The facts from here to the end of the line; None if there is anything else."""
    facts = []
    while position < len(line):
        match = _OPEN.match(line, position)
        if match is None or match[1] or not _is_fact(match):
            return None
        read = _parts(line, match.end())
        if read is None:
            return None
        parts, odd, end = read
        text = line[match.end() : end - 1].strip()
        facts.append(_Fact(match[2].lower(), parts, odd, parts[0] if len(parts) == 1 else text))
        position = end
        while line[position : position + 1].isspace():
            position += 1
    return facts


def _skip_part(line: str, position: int) -> int:
    """The end of a part without quotation marks. A comma between parentheses belongs to it."""
    depth = 0
    while position < len(line) and (depth or line[position] not in ",)"):
        depth += {"(": 1, ")": -1}.get(line[position], 0)
        position += 1
    return position


def _parts(line: str, position: int) -> tuple[list[str], str | None, int] | None:
    """(the parts between commas, the first with odd quotation marks, the position behind the
    closing parenthesis)."""
    parts: list[str] = []
    odd: str | None = None
    while True:
        while line[position : position + 1].isspace():
            position += 1
        between = _between_marks(line, position)
        if between is not None:
            part, position = between
            while line[position : position + 1].isspace():
                position += 1
        else:
            begin, position = position, _skip_part(line, position)
            part = line[begin:position].strip()
            if part and (part[0] in _MARKS or part[-1] in _MARKS):
                odd = odd or part
        if part:
            parts.append(part)
        ends = line[position : position + 1]
        if ends not in (",", ")") or not ends:
            return None
        position += 1
        if ends == ")":
            return parts, odd, position


def _between_marks(line: str, position: int) -> tuple[str, int] | None:
    """A name between quotation marks or backticks, and its end. There are as many marks at its end
    as at its beginning, and one space within each side does not count. None if there are no marks.
    """
    mark = line[position : position + 1]
    if mark in ("'", '"') and mark:
        end = line.find(mark, position + 1)
        return (line[position + 1 : end],
                end + 1) if end > position + 1 and _over(line, end + 1) else None
    match = _CODE.match(line, position) if mark == "`" else None
    if match is None or not _over(line, match.end()):
        return None
    inner = match[0][len(match[1]) : -len(match[1])]
    if inner[:1] == inner[-1:] == " " and inner.strip(" "):
        inner = inner[1:-1]
    return inner, match.end()


def _over(line: str, position: int) -> bool:
    return line[position:].lstrip()[:1] in (",", ")")


def _quoted(name: str) -> str:
    if not _NEEDS_QUOTES.search(name):
        return name
    longest = max(map(len, re.findall("`+", name)), default=0)
    fence = "`" * (longest + 1)
    padded = name[:1] in " `" or name[-1:] in " `"
    return f"{fence} {name} {fence}" if padded else f"{fence}{name}{fence}"


def _refused(number: int, why: str, then: str) -> Refusal:
    text = f"Line {number}: {why}. Nothing was added."
    return Refusal(Code.INVALID, text, line=number, next=then)
