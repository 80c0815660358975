"""Events as sentences, for people and for models."""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.kernel.holders.agents import HUMAN
from coordinator.rules import recovery
from coordinator.rules.backlog import told_state
from coordinator.store.rows import LogRow
from coordinator.words import requests as rq
from coordinator.words.events import SENTENCES
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
    facts = _Lenient()
    for key, value in data.items():
        if isinstance(value, list):
            facts[key] = ", ".join(str(v[0] if isinstance(v, list) and v else v) for v in value[:4])
        elif isinstance(value, str) and (row.kind, key) in _QUOTED:
            facts[key] = quoted(value, QUOTED_MAX)
        else:
            instant = key == "expires_at" and isinstance(value, str)
            facts[key] = "" if value is None else f"{value[11:16]}Z" if instant else value
    if row.kind == "unlock_answered" and data["status"] == "coexisting":
        facts["status"] = "agreed to be shared"
    if row.kind == "task_changed":
        facts["told_state"] = told_state(data["state"])
    text = SENTENCES.get(row.kind, row.kind).format_map(facts).strip()
    if row.kind == "agent_rests" and data.get("until") is None:
        text = f"{data['agent']} goes on: its provider's limit is over"
    elif row.kind == "agent_rests" and not data.get("note"):
        text = text.removesuffix("?").removesuffix(": ")
    if row.kind == "task_changed":
        text += f" by {data['agent']}" if data.get("agent") else ""
        text += f": {data['why']}" if data.get("why") else ""
    if row.kind == "candidate_judged":
        text += recovery.describe_remedy(str(data["remedy"]))
    if row.kind == "lease_placed" and data.get("worktree"):
        text += f" in {data['worktree']}"
    if row.kind == "acquisition_refused" and data.get("before"):
        text = text.replace(f"(held by {facts['holders']})", _in_the_way(data))
    if row.kind == "acquisition_refused" and data.get("redirect"):
        text += f"; sent to {data['redirect']}"
    if row.kind == "lease_released" and data.get("by"):
        text += f" (by {'a person' if data['by'] == HUMAN else data['by']}, override)"
    if row.kind == "unlock_answered":
        text += " (override)" if data.get("override") else ""
        text += f": {quoted(data['answer'], QUOTED_MAX)}" if data.get("answer") else ""
    if row.kind == "review_decided" and data["state"] == "kept":
        edited = [path for path, before, after in data["files"] if before != after]
        text += f", with an edited text of {', '.join(edited[:4])}" if edited else ""
    if row.kind == "verdict_ended" and data.get("why"):
        text += f": {data['why']}"
    if row.kind == "noted" and data.get("facts"):
        text += ": " + ", ".join(f"{k} {v}" for k, v in data["facts"].items())
    text = one_line(text)
    return f"{row.at[:19]}Z {text}" if stamp else text


def _in_the_way(data: dict[str, Any]) -> str:
    """Who holds what was asked for, and who only asked for it before."""
    held = [one for one in data["holders"] if one not in data["before"]]
    parts = [f"held by {', '.join(held[:4])}"] if held else []
    return f"({'; '.join([*parts, 'before it in line: ' + ', '.join(data['before'][:4])])})"


def make_event_reply(row: LogRow) -> rq.EventRow:
    """An event as it is told."""
    return rq.EventRow(
        seq=row.seq, at=row.at, kind=row.kind, agent=row.agent, task=row.task,
        resource=row.resource, data=msgspec.json.decode(row.data),
        text=tell_event(row, stamp=False),
    )
