"""A story of requests as a transcript: each answer or refusal, and each event that it recorded, held
against a text (tests/data/golden/transcripts).

Words of refusals, fields of answers, arguments and order of events are all in it, so a change of any
of them is seen in the difference.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from coordinator.store import events as ev
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Refusal
from tests.golden import assert_golden
from tests.sessions import Session
from tests.world import World

#: Longer lists in a request are only counted.
LISTED_MAX = 100
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
#: What is another one each time, and what is too long to be read.
_CHANGING = [
    (re.compile(r'("(?:token|token_hash)":")[0-9a-f]+"'), r'\1…"'),
    (re.compile(r'("inode":")[^"]+"'), r'\1…"'),
    (re.compile(r'("aside":")[^"]+"'), r'\1…"'),
    (re.compile(r"(git said ')[^']+"), r"\1…"),
    (re.compile(r"(sha256:[0-9a-f]{6})[0-9a-f]+"), r"\1…"),
    (re.compile(r'("lease_token":"[0-9a-f]{6})[0-9a-f]+'), r"\1…"),
]
_RUN = re.compile(r"(.)\1{30,}")


class Transcript:
    """What was asked of a world and what came of it, line by line."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.began_ms = world.clock.now_ms()
        self.seq = 0
        self.late = 0
        self.lines: list[str] = []

    def ask(self, request: rq.Request[Any], token: str | None = None) -> Any:
        """Ask it, and tell of it; a refusal is a value."""
        said = " ".join(f"{name}={self._json(value)}" for name, value in _given(request).items())
        by = " (by a token)" if token is not None else ""
        answer: Any
        try:
            answer = self.world.ask(request, token)
        except Refusal as refusal:
            answer = refusal
        self.came(f"{request.op} {said}{by}", answer)
        return answer

    def came(self, what: str, value: Any = None) -> None:
        """Something happened, and this came of it."""
        self.lines.append(self._plain(f"\n> {what}"))
        if isinstance(value, Refusal):
            self.lines.append(self._plain(f"! {value.code} {value.message}"))
            self.lines += [self._plain(f"  next: {value.next}")] if value.next else []
            self.lines += [f"  {self._json(_without_empty(value.facts))}"] if value.facts else []
        elif value is not None:
            self.lines.append(f"= {self._json(_without_empty(msgspec.to_builtins(value, enc_hook=_refusal)))}")
        if self.world.ledger.late > self.late:
            self.late = self.world.ledger.late
            self.lines.append("~ decided after something was recorded, so all of it was done again")
        rows = self.world.db.execute("SELECT seq, data FROM events WHERE seq > ? ORDER BY seq",
                                     (self.seq,)).fetchall()
        for seq, data in rows:
            event = ev.ANY.decode(data)
            self.lines.append(f"+ {ev.KIND_OF[type(event)]} {self._json(_without_kind(event))}")
            self.seq = seq

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.world.clock.advance(round(seconds * 1000))
        self.lines.append(f"\n--- {seconds:g} s later")

    def assert_is(self, name: str) -> None:
        """Hold it against the text of this name."""
        assert_golden(f"transcripts/{name}.txt", "\n".join(self.lines).strip() + "\n")

    def _json(self, value: Any) -> str:
        return self._plain(msgspec.json.encode(value, enc_hook=_refusal).decode())

    def _plain(self, text: str) -> str:
        text = text.replace(str(self.world.root), "ROOT")
        text = _INSTANT.sub(lambda at: f"T+{(from_iso(at[0]) - self.began_ms) / 1000:g}", text)
        for pattern, instead in _CHANGING:
            text = pattern.sub(instead, text)
        return _RUN.sub(lambda run: f"{run[1]}*{len(run[0])}", text)


class Heard(Session):
    """A session whose every hook call is told of."""

    def __init__(self, told: Transcript, session: str, sub: str = "", **more: Any) -> None:
        super().__init__(told.world, session, sub, **more)
        self.told = told

    def hook(self, event: str, **more: Any) -> Any:
        came = super().hook(event, **more)
        said = {name: value for name in ("deny", "context", "again", "protects", "waiting")
                if (value := getattr(came, name))}
        given = msgspec.json.encode(more, enc_hook=list, order="sorted").decode()
        self.told.came(f"hook of {self.name}: {event} {given}", {"holder": came.holder, **said})
        return came


def _given(request: rq.Request[Any]) -> dict[str, Any]:
    defaults = {field.name: field.default for field in msgspec.structs.fields(request)}
    said = {name: value for name in request.__struct_fields__
            if (value := getattr(request, name)) != defaults[name] and value != []}
    return {name: f"{len(value)} of them" if isinstance(value, list) and len(value) > LISTED_MAX
            else value for name, value in said.items()}


def _without_kind(event: ev.Event) -> dict[str, Any]:
    said = msgspec.to_builtins(event)
    del said["kind"]
    return dict(said)


def _without_empty(value: Any) -> Any:
    """Without what is null, false or empty, or says no more than that, so that it can be read."""
    if isinstance(value, dict):
        kept = {name: _without_empty(one) for name, one in value.items()}
        return {name: one for name, one in kept.items()
                if one not in (None, False, "", [], {}) and (name, one) != ("purpose", "asked")}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value


def _refusal(value: Any) -> Any:
    assert isinstance(value, Refusal)
    return value.body()
