"""Answers in words for a model, and as data: the reply's own shape without secrets.

The module is pure. A tool's answer is one text that ends with the one next action. The data contain
the same text as `message`, for clients that show their model only one of the two.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import block, fenced, harmless, in_json, quoted

#: A diff of partial work longer than this (characters) is cut; the whole is in the review.
DIFF_CHARS_MAX = 20_000
#: The longest value of a key (characters) that is shown outside of `get_state`.
VALUE_CHARS_MAX = 4_000
#: Leases and waiters listed in words; the data has all.
LISTED_MAX = 30
#: Secrets that no model needs; what the words already have; the store's own.
_LEFT_OUT = frozenset({
    "lease_token", "prompt", "excerpts", "partial", "snippet", "notices", "acquisition_id",
    "content_hash", "created_at", "updated_at", "attempts", "attempts_max",
})
#: Commands that are tools here, and the calls that they are.
_CALLS = (
    (re.compile(r"`?coord task claim (T-\d+)(?: --agent [^\s`]+)?`?"), r'next_task {"task": "\1"}'),
    (re.compile(r"`coord request (approve|coexist|reject) (U-\d+)(?: --agent [^\s`]+)?"
                r"(?: --answer WHY)?`"),
     r'answer_unlock {"request": "\2", "verdict": "\1"}'),
    (re.compile(r"`coord request narrow (U-\d+)(?: --agent [^\s`]+)? --keep PART`"),
     r'answer_unlock {"request": "\1", "verdict": "narrow", "keep": [PART]}'),
    (re.compile(r"`coord request file ([^\s`]+) --reason WHY --holder (\S+) --agent [^\s`]+`"),
     r'request_unlock {"resource": "\1", "reason": WHY, "holder": "\2"}'),
    (re.compile(r"`coord tell ([^\s`]+) TEXT --reply (M-\d+)`"),
     r'tell {"to": "\1", "reply_to": "\2", "text": …}'),
)
#: Several names, which may be quoted as for a shell.
_NAMES = r"""(?:'[^']*'|"'"|[^\s`'"])+ """
_FAIL = re.compile(rf"`?coord task fail (T-\d+) ((?:--blocked {_NAMES})+)--agent [^\s`]+`?")
_OVERRIDE = re.compile(r",? or `coord unlock [^`]* --force` as a person")
_UNLOCK = re.compile(rf"`?coord unlock ((?:{_NAMES})+)--agent [^\s`]+`?")
_LOCK = re.compile(rf"`coord lock (--new )?({_NAMES.rstrip()})(?: --agent [^\s`]+)?`")


def render_reply_text(reply: Any, notices: Iterable[rq.Notice] = ()) -> tuple[str, dict[str, Any]]:
    """Render a reply or a refusal as text and as data, with the agent's notices."""
    text, data = refused(reply) if isinstance(reply, Refusal) else _replied(reply)
    besides = [harmless(f"[coord] {_as_tools(notice.text)}") for notice in notices]
    if not besides:
        return text, data
    text_lines = "\n".join([text, *besides])
    if "message" in data:  # some clients show their model only the data
        return text_lines, {**data, "message": text_lines}
    return text_lines, {**data, "notices": besides}


def in_words(reply: Any) -> str:
    """A reply in words."""
    return harmless(_in_words(reply))


def _in_words(reply: Any) -> str:
    tell = _SENTENCES.get(type(reply))
    if tell is None:
        raise TypeError(f"nothing is said of {type(reply).__name__}")
    return tell(reply)


def _asked_to_release(reply: rq.Unlock) -> str:
    return (f"{reply.holder} is asked to release {reply.resource} ({reply.request}). You stand in "
            "line and are told the answer. Go on with other work.")


def _limited(reply: rq.Limited) -> str:
    back = f" Given back: {', '.join(reply.given_back)}." if reply.given_back else ""
    return (f"You rest until {_clock(reply.rests_until)}.{back} Write nothing of that now."
            if reply.rests_until else "Noted: you go on. Call next_task.")


def _change(reply: rq.Change) -> str:
    return (f"The owner of {reply.key} is asked for it ({reply.change}, {reply.state}). You are "
            "told what came of it. Go on with other work.")


def _replied(reply: Any) -> tuple[str, dict[str, Any]]:
    """Render a reply as words, and as data with the words as `message`. The data leaves out what
    the words have only for reading, because several clients give their model the data instead of
    the text. A field of the reply's own with that name becomes `sent`."""
    text = in_words(reply)
    plain: dict[str, Any] = _slim(msgspec.json.decode(msgspec.json.encode(reply)))
    if isinstance(reply, rq.StateValue):  # another's JSON: coord must not leave anything out
        plain["value"] = _shown(reply.decoded())
    elif isinstance(reply, rq.Change):
        plain["wanted"] = _shown(msgspec.json.decode(reply.wanted))
    if "message" in plain:
        plain["sent"] = plain.pop("message")
    return text, {"message": text, **plain}


def _slim(value: Any) -> Any:
    if isinstance(value, list):
        return [_slim(item) for item in value]
    if isinstance(value, str):
        return harmless(value)
    if not isinstance(value, dict):
        return value
    return {key: _slim(item) for key, item in value.items()
            if key == "items" or (key not in _LEFT_OUT and item not in (None, "", [], {}))}


def refused(refusal: Refusal) -> tuple[str, dict[str, Any]]:
    """A refusal as text and as data. Commands that are tools here are named as tools."""
    body = _shown(refusal.body())
    body["message"], body["next"] = _as_tools(body["message"]), _as_tools(body["next"])
    text = f"{refusal.code.value}: {body['message']}"
    text += _as_it_is_now(refusal)
    if body["next"] not in text:
        text += f"\nNext: {body['next']}"
    return text, {"error": body}


def _as_it_is_now(refusal: Refusal) -> str:
    """What another agent has made of it meanwhile, for clients whose model reads the words only."""
    if refusal.code is Code.REGION_CHANGED and isinstance(refusal.facts.get("text"), str):
        return f"\nIt is now:\n{fenced(harmless(refusal.facts['text']))}"
    if refusal.code is Code.VERSION_CHANGED and "value" in refusal.facts:
        now = in_json(msgspec.json.encode(refusal.facts["value"]).decode())
        return f"\nIt is now: {now}" if len(now) <= VALUE_CHARS_MAX else ""
    return ""


def _shown(value: Any) -> Any:
    """The value with every text made harmless."""
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return harmless(value) if isinstance(value, str) else value


def _as_tools(text: str) -> str:
    text = _OVERRIDE.sub("", text)  # that is for people
    for pattern, call in _CALLS:
        text = pattern.sub(call, text)
    text = _FAIL.sub(
        lambda match: f'fail_task {{"task": "{match[1]}", "blocked": {_names_in(match[2])}}}', text)
    text = _LOCK.sub(lambda match: f'acquire {{"resources": {_names_in(match[2])}'
                     + (', "new": true}' if match[1] else "}"), text)
    return _UNLOCK.sub(lambda match: f'release {{"resources": {_names_in(match[1])}}}', text)


def _names_in(typed: str) -> str:
    names = [word for word in shlex.split(typed) if word != "--blocked"]
    return msgspec.json.encode(names).decode()


def _claimed(reply: rq.Claimed) -> str:
    task = reply.task
    parts = [f"You have {task.task}: {quoted(task.title, 500)}"]
    if task.prompt.strip():
        parts.append(task.prompt.strip())
    if reply.leases:
        shared = [lease for lease in reply.leases if lease.mode == "shared"]
        own = [lease for lease in reply.leases if lease.mode != "shared"]
        if own:
            parts.append(f"Yours to write until {_clock(own[0].expires_at)}: {_names(own)}.")
        if shared:
            parts.append(f"Yours to read, kept from being written: {_names(shared)}.")
    else:
        parts.append("It names no files: lease what you write as you go.")
    parts += _list_variables(reply.environment)
    parts += [f"Note: {warning}" for warning in reply.warnings]
    if reply.partial is not None:
        parts.append(_partial(reply.partial))
    for quote in reply.excerpts:
        parts.append(f"Context archive, section {quote['section']} {quoted(quote['title'])} "
                     f"({quote['source']}):\n{block(quote['text'])}")
    parts.append(f"When it is finished, call complete_task with task {task.task}; if you cannot "
                 "finish it, fail_task.")
    return "\n\n".join(parts)


def _list_variables(environment: Mapping[str, str]) -> list[str]:
    texts = ", ".join(f"`{name}={text}`" for name, text in environment.items())
    return [f"For you alone; set it for the programs that you start: {texts}."] if texts else []


def _partial(partial: rq.Partial) -> str:
    diff = partial.diff
    if len(diff) > DIFF_CHARS_MAX:
        diff = diff[:DIFF_CHARS_MAX] + f"\n… cut here; `coord review show {partial.review}` has all"
    text = f"A person says of it:\n{block(partial.note)}\n" if partial.note else ""
    return (f"Somebody has begun this: {partial.summary}. {text}Go on from what is there ("
            f"{partial.review}):\n{fenced(diff, 'diff')}")


def _task(task: rq.Task) -> str:
    if task.state == "done":
        return f"{task.task} is done and its leases are released. Call next_task for the next one."
    why = f": it {task.explanation}" if task.explanation else ""
    return f"{task.task} is {task.state}{why}. Call next_task for another one."


def _acquired(reply: rq.Acquired) -> str:
    until = _clock(min(lease.expires_at for lease in reply.leases)) if reply.leases else ""
    text = f"Leased to you until {until}: {_names(reply.leases)}. Read afresh before you write."
    return "\n".join([text, *(f"Note: {warning}" for warning in reply.warnings)])


def _held(reply: rq.LockList) -> str:
    if not reply.items and not reply.waiters:
        return "Nothing is leased."
    lines = []
    for lease in reply.items[:LISTED_MAX]:
        why = " ".join(part for part in (
            lease.task or "", lease.description and quoted(lease.description)) if part)
        lines.append(f"{lease.resource}: {lease.locked_by} ({lease.mode}) until "
                     f"{_clock(lease.expires_at)}" + (f": {why}" if why else ""))
    lines = list(dict.fromkeys(lines))
    if len(reply.items) > LISTED_MAX:
        lines.append(f"… and {len(reply.items) - LISTED_MAX} more")
    for waiter in reply.waiters[:LISTED_MAX]:
        lines.append(f"{waiter.agent} waits for {', '.join(waiter.resources)}")
    return "\n".join(lines)


def _hits(reply: rq.HitList) -> str:
    if not reply.items:
        return "The context archive says nothing on that."
    return "\n\n".join(f"{hit.number} {quoted(hit.title)} ({hit.source})\n{block(hit.snippet)}"
                       for hit in reply.items)


def _sent(reply: rq.MessageTold) -> str:
    text = f"Said ({reply.message.message}). Go on with your work; an answer comes by itself."
    if reply.left_out:
        text += f" Not told, for they have too many unread: {', '.join(reply.left_out)}."
    return text


def _render_reply(reply: rq.MessageList) -> str:
    return "\n\n".join(
        f"{message.message}: {message.sender} to {message.to}"
        + (f", on {message.task}" if message.task else "")
        + f", at {_clock(message.sent_at)}:\n{block(message.text)}" for message in reply.items
    ) or "Nothing was said."


def _value(reply: rq.StateValue) -> str:
    if reply.deleted:
        return f"{reply.key} was deleted; that is its version {reply.version}."
    by = f", written by {reply.written_by}" if reply.written_by else ""
    value = block(in_json(bytes(reply.value).decode()))
    return f"{reply.key} is at version {reply.version}{by}:\n{value}"


def _committed(reply: rq.RegionsCommitted) -> str:
    gone = [committed_region.resource for committed_region in reply.regions
            if committed_region.content_hash is None]
    there = [committed_region.resource for committed_region in reply.regions
             if committed_region.content_hash is not None]
    text = f"Committed ({reply.commit})." + (f" Written: {', '.join(there)}." if there else "")
    text += f" Removed: {', '.join(gone)}." if gone else ""
    return "\n".join([text, *(f"Note: {warning}" for warning in reply.warnings)])


def _names(leases: list[rq.Lease]) -> str:
    names = list(dict.fromkeys(lease.resource for lease in leases))
    more = f" and {len(names) - LISTED_MAX} more" if len(names) > LISTED_MAX else ""
    return ", ".join(names[:LISTED_MAX]) + more


def _clock(instant: str) -> str:
    return f"{instant[11:16]}Z"


#: The sentence of each reply that a tool gives.
_SENTENCES: dict[type, Callable[[Any], str]] = {
    rq.Claimed: _claimed, rq.Task: _task, rq.Acquired: _acquired,
    rq.Released: lambda reply: f"Released: {_names(reply.released)}.",
    rq.LockList: _held, rq.Unlock: _asked_to_release,
    rq.UnlockAnswered: lambda reply: str(reply.message), rq.HitList: _hits,
    rq.Signal: lambda reply: f"Left on {reply.subject}: {reply.name}, {reply.strength:g} now.",
    rq.Limited: _limited, rq.MessageTold: _sent, rq.MessageList: _render_reply,
    rq.StateValue: _value,
    rq.Change: _change, rq.RegionsCommitted: _committed, rq.Alive: lambda reply: "Noted.",
}
