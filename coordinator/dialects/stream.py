"""Reading an agent's own stream of output by the rules of its profile. Pure.

Exit codes mislead: some agents end with 0 although their model could not be reached. So the stream
decides how an attempt went, where there is one. A rule looks at one line of JSON: `when` names what
must be in it, and the other fields say where to find things. `a.b` goes into objects and `*` into
lists. Lines that are no JSON, or that no rule knows, do no harm.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

#: Bytes of one line that are looked at; longer ones are passed over.
LINE_BYTES_MAX = 4 * 1024 * 1024
#: Characters of one thing said or done, when it is shown in one line.
SHOWN_CHARS = 200


class Rule(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One kind of line.

    Attributes:
        when: path -> the text that must be there.
        session: the agent's own id of its session.
        say, tool: what it says; the tool that it uses, and `about` what that is about.
        result: its last words; a line with it ends the run.
        failed: true where the run did not succeed.
        model_error: why the model or its server failed: no fault of the task.
        cost_usd, tokens_in, tokens_out, turns: totals; with `adds` they are added up.
    """

    when: dict[str, str]
    session: str = ""
    say: str = ""
    tool: str = ""
    about: tuple[str, ...] = ()
    result: str = ""
    ends: bool = False
    failed: str = ""
    model_error: str = ""
    cost_usd: str = ""
    tokens_in: str = ""
    tokens_out: str = ""
    turns: str = ""
    adds: bool = False


class StreamTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The `[stream]` section of a profile. `model_errors`: patterns that mean, in plain output or
    in the last words, that the model failed. `must_end`: without an ending line it did not succeed.
    """

    rules: tuple[Rule, ...] = ()
    model_errors: tuple[str, ...] = ()
    must_end: bool = False


class Told(msgspec.Struct):
    """What the stream has told so far."""

    session: str = ""
    doing: str = ""
    result: str = ""
    ended: bool = False
    failed: bool = False
    model_error: str = ""
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    turns: int | None = None
    tools: int = 0


class Reader:
    """Reads lines by a table; without one, every line stays as it is."""

    def __init__(self, table: StreamTable | None) -> None:
        self._plain = table is None
        table = table or StreamTable()
        self._table = table
        self._errors = [re.compile(model_error) for model_error in table.model_errors]
        self.told = Told()

    def feed(self, line: str) -> list[str]:
        """Take one line. Returns its lines for a person (none: nothing worth showing)."""
        message = self.told
        read = None if self._plain else _json(line)
        if read is None:
            if any(error.search(line) for error in self._errors):
                message.model_error = line.strip()[:500]
            if line.strip():
                message.doing = line.strip()[:SHOWN_CHARS]
            return [line.rstrip()] if line.strip() else []
        result: list[str] = []
        for rule in self._table.rules:
            if all(_text(read, path) == value for path, value in rule.when.items()):
                result += self._apply(rule, read)
        return result

    def _apply(self, rule: Rule, read: Any) -> list[str]:
        message, result = self.told, []
        if rule.session:
            message.session = _text(read, rule.session) or message.session
        for text in _texts(read, rule.say):
            message.doing = _one_line(text)
            result.append(text.strip())
        for number, tool in enumerate(_texts(read, rule.tool)):
            message.tools += 1
            about = [matches[number] for path in rule.about
                     if len(matches := _texts(read, path)) > number]
            message.doing = _one_line(" ".join([tool, *about[:1]]))
            result.append(f"> {message.doing}")
        if rule.failed:
            message.failed = _flag(read, rule.failed)
        if rule.result:
            message.result = _text(read, rule.result) or message.result
            if any(error.search(message.result) for error in self._errors):
                message.model_error = _one_line(message.result)
        message.ended = message.ended or rule.ends
        if rule.model_error and (why := _text(read, rule.model_error)):
            message.model_error = _one_line(why)
            result.append(f"! {message.model_error}")
        self._count(rule, read)
        return result

    def _count(self, rule: Rule, read: Any) -> None:
        message = self.told
        cost = _number(read, rule.cost_usd)
        if cost is not None:
            message.cost_usd = cost + (message.cost_usd or 0.0 if rule.adds else 0.0)
        for name, path in (("tokens_in", rule.tokens_in), ("tokens_out", rule.tokens_out),
                           ("turns", rule.turns)):
            count = _number(read, path)
            if count is not None:
                before = getattr(message, name) or 0
                setattr(message, name, int(count) + (before if rule.adds else 0))

    def verdict(self, code: int, success_codes: tuple[int, ...]) -> str:
        """Why the attempt failed, by its stream and exit code; empty if it succeeded."""
        message = self.told
        if message.model_error and (message.failed or not message.ended or code not in success_codes
                                    or _same(message.model_error, message.result)):
            return f"the model failed: {message.model_error}"
        if code not in success_codes:
            return f"exit code {code}"
        if message.failed:
            return message.result[:500] or "it says that it failed"
        if self._table.must_end and not message.ended:
            return "it ended without saying how it went"
        return ""


def _json(line: str) -> Any:
    if not line.lstrip().startswith("{"):
        return None
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _find_values(read: Any, path: str) -> list[Any]:
    nodes = [read]
    for part in path.split(".") if path else ():
        if part == "*":
            nodes = [item for node in nodes if isinstance(node, list) for item in node]
        else:
            nodes = [node[part] for node in nodes if isinstance(node, dict) and part in node]
    return nodes if path else []


def _texts(read: Any, path: str) -> list[str]:
    return [name for name in _find_values(read, path) if isinstance(name, str) and name.strip()]


def _text(read: Any, path: str) -> str:
    values = _find_values(read, path)
    if not values:
        return ""
    first = values[0]
    return first if isinstance(first, str) else json.dumps(first, ensure_ascii=False)


def _flag(read: Any, path: str) -> bool:
    """True for a true value, or for a path `a.b=text` that has this text."""
    path, _, wanted = path.partition("=")
    values = _find_values(read, path)
    return bool(values) and (str(values[0]) == wanted if wanted else values[0] is True)


def _number(read: Any, path: str) -> float | None:
    values = [value for value in _find_values(read, path)
              if isinstance(value, int | float) and not isinstance(value, bool)]
    return float(sum(values)) if values else None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:SHOWN_CHARS]


def _same(error: str, result: str) -> bool:
    return bool(result) and _one_line(result)[:100] == error[:100]
