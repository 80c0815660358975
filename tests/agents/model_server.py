"""The scripted model server: loopback HTTP, four protocols, one `Session` for each agent process.

A session lives below its own path (`/s/NAME`), so several agents can use one server at once. It
owns the scripts that play its model and the record of all that it was told. It decides nothing
about an agent's files and speaks only when asked.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.agents import wire_anthropic, wire_chat, wire_gemini, wire_responses
from tests.agents.conversation import (
    Answer,
    Intent,
    Json,
    Refuse,
    Reply,
    Result,
    Say,
    Script,
    Scripted,
    Step,
    Turn,
    Writer,
    in_order,
)
from tests.agents.vocabulary import TONGUES, Tongue

MARK = re.compile(r"\[\[(\w+)\]\]")  # in a sub-agent's prompt: which script plays its model
MAIN = "main"
PAST_THE_END = "Done."


@dataclass(frozen=True)
class Transcript:
    """One request that a session received, and what was answered."""

    path: str
    body: Json
    turn: Turn | None  # None: a question which is not for a model's words
    script: str = ""  # empty: a side request (a title, a summary, a count)
    reply: Reply | None = None


class Conversation:
    """One script at play: a generator, and what it has heard so far.

    An agent that begins anew (a request in which the model has not spoken yet) gets the script from
    its beginning: that is how a task which is tried again is played again.
    """

    def __init__(self, writer: Writer, tongue: Tongue, root: str) -> None:
        self.finished = False
        self.plays = 1
        self._writer = writer
        self._tongue = tongue
        self._root = root
        self._script: Script | None = None
        self._step: Sequence[Intent] = ()
        self._reply: Reply | None = None
        self._seen: Counter[str] = Counter()
        self._said: set[str] = set()
        self._last_asked = 0
        self._lock = threading.Lock()

    def answer(self, turn: Turn) -> Reply:
        """The next words; asked the same thing again (a retry), the same words again.

        Not so after an HTTP error: then asking again is the next step.
        """
        with self._lock:
            asked = hash(turn.messages)
            answered = self._reply is not None and self._reply.status == 200
            if self._reply is not None and answered and asked == self._last_asked:
                return self._reply
            if answered and not self._tongue.has_begun(turn, self._said):
                self._begin_anew()
            self._last_asked = asked
            self._reply = self._advance(turn)
            self._said.add(self._reply.text)
            return self._reply

    def _begin_anew(self) -> None:
        self._script, self._reply, self.finished = None, None, False
        self._seen.clear()
        self._said.clear()
        self.plays += 1

    def _advance(self, turn: Turn) -> Reply:
        extra = self._new_texts(turn)
        try:
            if self._script is None:
                self._script = self._writer(Scripted(self._root, turn))
                step = next(self._script)
            else:
                step = self._script.send(self._result(turn, extra))
            while (known := self._known_already(step, turn)) is not None:
                step = self._script.send(known)
        except StopIteration:
            self.finished = True
            self._step = (Say(PAST_THE_END),)
            return self._tongue.speak(self._step, self._root)
        self._step = _intents(step)
        if isinstance(self._step[0], Refuse):
            return Reply(self._step[0].message, status=self._step[0].status)
        self.finished = all(isinstance(intent, Say) for intent in self._step)
        return self._tongue.speak(self._step, self._root)

    def _known_already(self, step: Step, turn: Turn) -> Result | None:
        intents = _intents(step)
        return self._tongue.at_once(intents[0], turn) if len(intents) == 1 else None

    def _new_texts(self, turn: Turn) -> tuple[str, ...]:
        """What was not in the request before; the same words said once more are new."""
        texts = list(turn.texts())
        left = Counter(texts) - self._seen
        self._seen = Counter(texts)
        new: list[str] = []
        for text in reversed(texts):
            if left[text]:
                left[text] -= 1
                new.append(text)
        return tuple(reversed(new))

    def _result(self, turn: Turn, extra: tuple[str, ...]) -> Result:
        calls = self._reply.calls if self._reply else ()
        if not calls:
            return self._tongue.heard_instead(turn, extra)
        answers = turn.tool_results
        by_id = {a.call_id: a for a in answers if a.call_id}
        in_turn: list[Answer | None] = [by_id.get(c.id) for c in calls]
        if not any(in_turn) and len(answers) == len(calls):  # ids are the agent's own
            in_turn = list(answers)
        left = iter(in_turn)
        parts = tuple(self._part(i, None if isinstance(i, Say) else next(left)) for i in self._step)
        text = "\n".join(p.text for p in parts if p.text)
        return Result(all(p.ok for p in parts), text, extra, parts)

    def _part(self, intent: Intent, answer: Answer | None) -> Result:
        if isinstance(intent, Say):
            return Result()
        if answer is None:
            return Result(False, "no result came")
        return Result(self._tongue.worked(intent, answer), answer.text)


def _intents(step: Step) -> Sequence[Intent]:
    return step if isinstance(step, Sequence) else (step,)


class Session:
    """One agent process as its model sees it: its scripts, and the record of what was said."""

    def __init__(self, url: str, tongue: Tongue, root: str, scripts: dict[str, Writer]) -> None:
        self.url = url
        self.log: list[Transcript] = []
        self.unknown: list[str] = []  # requests that no protocol here has
        self.failure: BaseException | None = None  # what a script raised
        self._tongue = tongue
        self._lock = threading.Lock()
        self._scripts = {
            name: Conversation(writer, tongue, root) for name, writer in scripts.items()}

    @property
    def main(self) -> Conversation:
        return self._scripts[MAIN]

    def script(self, name: str) -> Conversation:
        return self._scripts[name]

    @property
    def work(self) -> list[Transcript]:
        """The requests that scripts answered, in order."""
        return [told for told in self.log if told.script]

    def told(self, words: str) -> list[int]:
        """Which requests (indices into `log`) carried these words to the model."""
        return [n for n, told in enumerate(self.log)
                if told.turn is not None and words in told.turn.everything()]

    def reply_to(self, turn: Turn, path: str, body: Json) -> Reply:
        name = self._script_for(turn)
        # A sub-agent may be given fewer tools than work needs; its prompt's mark is enough.
        if not self._tongue.is_work(turn) and (name == MAIN or not turn.tools):
            reply = Reply(_aside(turn))
            self._note(Transcript(path, body, turn, "", reply))
            return reply
        try:
            reply = self._scripts[name].answer(turn)
        except Exception as raised:
            self.failure = self.failure or raised
            reply = self._tongue.speak((Say(f"The script failed: {raised!r}"),), "")
        self._note(Transcript(path, body, turn, name, reply))
        return reply

    def note(self, path: str, body: Json) -> None:
        self._note(Transcript(path, body, None))

    def _note(self, told: Transcript) -> None:
        with self._lock:
            self.log.append(told)

    def _script_for(self, turn: Turn) -> str:
        named = (m.group(1) for text in turn.user_texts for m in MARK.finditer(text))
        return next((n for n in reversed(list(named)) if n in self._scripts), MAIN)


def _aside(turn: Turn) -> str:
    """An answer for a question beside the work: a title, a summary, who speaks next."""
    if turn.wants_json:
        return json.dumps({
            "title": "Scripted work", "isNewTopic": False, "next_speaker": "user",
            "reasoning": "scripted", "model_choice": "pro", "complexity_score": 1,
            "complexity_reasoning": "scripted", "summary": "scripted"})
    return "Scripted work"


class ModelServer:
    """Listens on 127.0.0.1 from `start` to `stop`. Use it as a context manager."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        outer = self

        class Handler(_Handler):
            server_of = outer

        self._http = _Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def session(
        self, name: str, agent: str, root: str, script: Writer | Iterable[Step],
        others: dict[str, Writer] | None = None,
    ) -> Session:
        """A new session. `others` are played for prompts that carry their name as `[[name]]`."""
        assert re.fullmatch(r"[\w.-]+", name) and name not in self._sessions, name
        writer = script if callable(script) else in_order(*script)
        made = Session(
            f"{self.url}/s/{name}", TONGUES[agent], root, {MAIN: writer, **(others or {})})
        self._sessions[name] = made
        return made

    def at(self, path: str) -> tuple[Session | None, str]:
        """The session that a path belongs to, and the rest of the path."""
        found = re.match(r"/s/([\w.-]+)(/.*)?$", path)
        if not found:
            return None, path
        return self._sessions.get(found.group(1)), found.group(2) or "/"


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """A client that was killed in mid-request is what many scenarios are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: ModelServer

    def log_message(self, *_: object) -> None:
        return

    def do_HEAD(self) -> None:
        self._send(200, "text/plain", b"")

    def do_GET(self) -> None:
        session, rest = self.server_of.at(urlsplit(self.path).path)
        if rest.endswith("/models"):
            models = [{"id": "scripted", "object": "model", "created": 0, "owned_by": "tests"}]
            self._json(200, {"object": "list", "data": models, "models": []})
        elif rest == "/":
            self._json(200, {})
        else:
            self._nothing_here(session)

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        session, rest = self.server_of.at(url.path)
        body = self._body()
        if session is None:
            return self._nothing_here(None)
        if rest.endswith("/count_tokens") or rest.endswith(":countTokens"):
            session.note(rest, body)
            return self._json(200, {"input_tokens": 12, "totalTokens": 12})
        wire: Any
        if rest.endswith("/messages"):
            wire = wire_anthropic
        elif rest.endswith("/responses"):
            wire = wire_responses
        elif rest.endswith("/chat/completions"):
            wire = wire_chat
        elif rest.lower().endswith("generatecontent"):
            wire = wire_gemini
        else:
            return self._nothing_here(session)
        reply = session.reply_to(wire.read(body), rest, body)
        if reply.status != 200:
            return self._json(reply.status, wire.error(reply.status, reply.text))
        if wire is wire_gemini:
            kind, data = wire.write(reply, ":stream" in rest, "alt=sse" in url.query)
        else:
            kind, data = wire.write(reply, body)
        self._send(200, kind, data)

    def _body(self) -> Json:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            raw = b""
            while size := int(self.rfile.readline(), 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            read = json.loads(raw or b"{}")
        except ValueError:
            return {}
        return read if isinstance(read, dict) else {"items": read}

    def _nothing_here(self, session: Session | None) -> None:
        if session is not None:
            session.unknown.append(f"{self.command} {self.path}")
        self._json(404, {"error": {"message": "not here", "type": "not_found_error"}})

    def _json(self, status: int, value: Json) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
