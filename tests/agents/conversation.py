"""The words between a script and a coding agent: what a scripted model wants, and what it was told.

A script never sees a wire format or a tool's name. It yields *intents* (read, edit, create, shell,
say) and receives a `Result` for each; `vocabulary` turns intents into one agent's own tools and
the `wire_*` modules carry them. This module is data only: it opens nothing and remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


# What a script asks for ------------------------------------------------------------------------


@dataclass(frozen=True)
class Read:
    """Look at a file; `path` is relative to the repository, as in every intent."""

    path: str


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new`, both whole lines (some agents patch by line, not by character)."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Create:
    """Write a whole file."""

    path: str
    text: str


@dataclass(frozen=True)
class Shell:
    command: str


@dataclass(frozen=True)
class Say:
    """Speak. Alone in a step it ends the agent's turn, and the agent usually ends with it."""

    text: str


@dataclass(frozen=True)
class Mcp:
    """Call a tool of an MCP server, by the server's name in the agent's settings."""

    server: str
    tool: str
    args: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Use:
    """Call an agent's own tool by its own name: for what only one agent has."""

    tool: str
    args: Json | str
    namespace: str = ""


@dataclass(frozen=True)
class Refuse:
    """The model's server answers this one request with an HTTP error."""

    status: int
    message: str = "refused by the script"


Intent = Read | Edit | Create | Shell | Say | Mcp | Use | Refuse
Step = Intent | Sequence[Intent]  # several at once: one reply with several calls


@dataclass(frozen=True)
class Result:
    """What the model is told after a step.

    `ok` is false when a tool reported an error, a denial or a non-zero exit. `extra` holds every
    text which is new in this request and is not a tool's result: reminders, hooks' words, a
    person's next message. `parts` has one entry for each intent of a step, in order.
    """

    ok: bool = True
    text: str = ""
    extra: tuple[str, ...] = ()
    parts: tuple[Result, ...] = ()

    @property
    def all_text(self) -> str:
        """Everything new that the model can read now."""
        return "\n".join((self.text, *self.extra))


# What travels ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One tool call of a reply. A string for `args` is a free-form (grammar) tool's input."""

    id: str
    tool: str
    args: Json | str
    namespace: str = ""


@dataclass(frozen=True)
class Reply:
    """What the model answers: text, calls, both, or an HTTP error."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200


@dataclass(frozen=True)
class Answer:
    """A tool's result as a request carries it; `failed` is None where the protocol has no flag."""

    call_id: str
    text: str
    failed: bool | None = None


@dataclass(frozen=True)
class Message:
    """One entry of the conversation: role is system, user, assistant or tool."""

    role: str
    texts: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()  # ids
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True)
class Turn:
    """A request for the model's next words, the same for all protocols."""

    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    wants_json: bool = False  # the answer must fit a schema: never the agent's own work

    @property
    def system(self) -> str:
        return "\n".join(t for m in self.messages if m.role == "system" for t in m.texts)

    @property
    def tool_results(self) -> tuple[Answer, ...]:
        """Results that came since the model last spoke."""
        since: list[Answer] = []
        for message in self.messages:
            if message.role == "assistant":
                since.clear()
            since.extend(message.answers)
        return tuple(since)

    @property
    def user_texts(self) -> tuple[str, ...]:
        return tuple(t for m in self.messages if m.role == "user" for t in m.texts)

    def texts(self) -> Iterable[str]:
        """Each text that the model is given, without its own words and without tool results."""
        for message in self.messages:
            if message.role != "assistant":
                yield from message.texts

    def everything(self) -> str:
        """All that the model is given, its own words left out."""
        answers = (a.text for m in self.messages for a in m.answers)
        return "\n".join((*self.texts(), *answers))


Script = Generator[Step, Result, None]


@dataclass(frozen=True)
class Scripted:
    """What a script is started with: the repository's root and the first request."""

    root: str
    first: Turn


Writer = Callable[[Scripted], Script]


def in_order(*steps: Step) -> Writer:
    """A script that does not react: one step after the other."""

    def write(_: Scripted) -> Script:
        for step in steps:  # not `yield from`: a tuple cannot be sent results
            _heard = yield step

    return write


def flatten(content: Any) -> tuple[str, ...]:
    """The texts of a string, of a list of blocks, or of nothing."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (content,) if content else ()
    if isinstance(content, dict):
        content = [content]
    found = (b if isinstance(b, str) else b.get("text") for b in content)
    return tuple(t for t in found if isinstance(t, str) and t)
