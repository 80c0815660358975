"""Events as sentences, for people and for models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from coordinator.kernel.holders.agents import HUMAN
from coordinator.rules import recovery
from coordinator.rules.backlog import told_state
from coordinator.store.events import SENTENCES
from coordinator.store.rows import LogRow
from coordinator.words import requests as rq
from coordinator.words.texts import one_line, quoted

#: Fields of events that hold somebody's own words.
_QUOTED = frozenset({("unlock_asked", "reason"), ("task_added", "title"), ("task_edited", "title"),
                     ("message_sent", "text"), ("agent_rests", "note")})
QUOTED_MAX = 500


class _Lenient(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


def tell_event(row: LogRow, stamp: bool = True) -> str:
    """One event as a sentence, with its instant before it."""
    data: dict[str, Any] = msgspec.json.decode(row.data)
    facts = _gather_facts(row.kind, data)
    text = SENTENCES.get(row.kind, row.kind).format_map(facts).strip()
    complete = _COMPLETIONS.get(row.kind)
    text = one_line(text if complete is None else complete(text, data, facts))
    return f"{row.at[:19]}Z {text}" if stamp else text


def _gather_facts(kind: str, data: dict[str, Any]) -> _Lenient:
    """The fields of an event as they appear in a sentence."""
    facts = _Lenient()
    for key, value in data.items():
        if isinstance(value, list):
            facts[key] = ", ".join(str(v[0] if isinstance(v, list) and v else v) for v in value[:4])
        elif isinstance(value, str) and (kind, key) in _QUOTED:
            facts[key] = quoted(value, QUOTED_MAX)
        elif key == "expires_at" and isinstance(value, str):
            facts[key] = f"{value[11:16]}Z"
        else:
            facts[key] = "" if value is None else value
    if kind == "unlock_answered" and data["status"] == "coexisting":
        facts["status"] = "agreed to be shared"
    if kind == "task_changed":
        facts["told_state"] = told_state(data["state"])
    return facts


def _rests(text: str, data: dict[str, Any], facts: _Lenient) -> str:
    if data.get("until") is None:
        return f"{data['agent']} goes on: its provider's limit is over"
    return text if data.get("note") else text.removesuffix("?").removesuffix(": ")


def _task_changed(text: str, data: dict[str, Any], facts: _Lenient) -> str:
    by = f" by {data['agent']}" if data.get("agent") else ""
    why = f": {data['why']}" if data.get("why") else ""
    return text + by + why


def _refused(text: str, data: dict[str, Any], facts: _Lenient) -> str:
    if data.get("before"):
        text = text.replace(f"(held by {facts['holders']})", _in_the_way(data))
    return text + (f"; sent to {data['redirect']}" if data.get("redirect") else "")


def _released(text: str, data: dict[str, Any], facts: _Lenient) -> str:
    if not data.get("by"):
        return text
    return f"{text} (by {'a person' if data['by'] == HUMAN else data['by']}, override)"


def _answered(text: str, data: dict[str, Any], facts: _Lenient) -> str:
    override = " (override)" if data.get("override") else ""
    answer = f": {quoted(data['answer'], QUOTED_MAX)}" if data.get("answer") else ""
    return text + override + answer


def _decided(text: str, data: dict[str, Any], facts: _Lenient) -> str:
    edited = [path for path, before, after in data["files"]
              if before != after] if data["state"] == "kept" else []
    return text + (f", with an edited text of {', '.join(edited[:4])}" if edited else "")


def _noted(text: str, data: dict[str, Any], facts: _Lenient) -> str:
    if not data.get("facts"):
        return text
    return text + ": " + ", ".join(f"{name} {value}" for name, value in data["facts"].items())


#: Additions to the sentence of an event, by its kind: (sentence, fields, facts) -> sentence.
_COMPLETIONS: dict[str, Callable[[str, dict[str, Any], _Lenient], str]] = {
    "agent_rests": _rests, "task_changed": _task_changed, "acquisition_refused": _refused,
    "lease_released": _released, "unlock_answered": _answered, "review_decided": _decided,
    "noted": _noted,
    "candidate_judged": lambda text, data, facts: text + recovery.describe_remedy(
        str(data["remedy"])),
    "lease_placed": lambda text, data, facts: text + (
        f" in {data['worktree']}" if data.get("worktree") else ""),
    "verdict_ended": lambda text, data, facts: text + (
        f": {data['why']}" if data.get("why") else ""),
}


def _in_the_way(data: dict[str, Any]) -> str:
    """The holders of what was asked for, and those who only asked for it before."""
    held = [item for item in data["holders"] if item not in data["before"]]
    parts = [f"held by {', '.join(held[:4])}"] if held else []
    return f"({'; '.join([*parts, 'before it in line: ' + ', '.join(data['before'][:4])])})"


def make_event_reply(row: LogRow) -> rq.EventRow:
    """An event as a reply."""
    return rq.EventRow(
        seq=row.seq, at=row.at, kind=row.kind, agent=row.agent, task=row.task,
        resource=row.resource, data=msgspec.json.decode(row.data),
        text=tell_event(row, stamp=False),
    )
