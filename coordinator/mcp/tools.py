"""The tools that a model gets over MCP: the operation that each asks, and the fields that it may
set.

The tools are data, made from the request shapes. A tool takes some fields of one operation's
request, with their types and defaults. The acting agent is never among them, because the connection
decides that. The module speaks no protocol and sends no request.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import msgspec

from coordinator.words import requests as rq
from coordinator.words import wrong_values
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import Line

#: Longest wait of one call (seconds): well inside what the most impatient client allows a tool.
WAIT_S_MAX = 45.0
#: Most that the arguments of one call may come to, as JSON (bytes).
ARGUMENTS_BYTES_MAX = 1024 * 1024

_RESOURCES = "Paths relative to the repository root; also `dir/`, globs, `key:a:b`."
_TASK = "The task's id, like `T-3`."
_NEW = "Also functions, classes or methods that are not there yet, and that you will add."
_ANNOTATED: Any = Annotated  # with types that are known at run time only
_Names = Annotated[list[str], msgspec.Meta(min_length=1)]


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        takes: the request's fields that the model may give -> their descriptions.
        typed: fields that are narrower here than in the request (none of their defaults hold).
        preset: values of fields that the model is not asked for, or need not give.
        reads: it changes nothing. again: asking it twice comes to the same as once.
    """

    name: str
    title: str
    description: str
    request: type[rq.Request[Any]]
    takes: dict[str, str]
    typed: Mapping[str, Any] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    reads: bool = False
    again: bool = False

    @cached_property
    def arguments(self) -> type[msgspec.Struct]:
        """The shape of the model's arguments."""
        hints = typing.get_type_hints(self.request, include_extras=True)
        made: list[Any] = []
        for parameter in msgspec.structs.fields(self.request):
            if parameter.name not in self.takes:
                continue
            message = _ANNOTATED[
                self.typed.get(parameter.name, _without_none(hints[parameter.name])),
                msgspec.Meta(description=self.takes[parameter.name]),
            ]
            if parameter.name in self.preset:
                made.append((parameter.name, message, self.preset[parameter.name]))
            elif parameter.required or parameter.name in self.typed:
                made.append((parameter.name, message))
            else:
                made.append((parameter.name, message | msgspec.UnsetType, msgspec.UNSET))
        return msgspec.defstruct(self.name, made, forbid_unknown_fields=True, kw_only=True)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        (_,), parts = msgspec.json.schema_components([self.arguments])
        made: dict[str, Any] = parts[self.name]
        made.pop("title", None)
        return made

    @cached_property
    def _any_json(self) -> frozenset[str]:
        """The fields that may be any JSON: there null is a value like others."""
        hints = typing.get_type_hints(self.request)
        return frozenset(name for name in self.takes if hints[name] is msgspec.Raw)

    @property
    def acts(self) -> bool:
        """Whether it is done by an agent, or tells of it, so that the agent has to be known."""
        return any((f.name == "agent" and f.required) or f.name == "reader"
                   for f in msgspec.structs.fields(self.request))

    def asked(self, given: Mapping[str, Any], agent: str | None,
              cwd: str | None) -> rq.Request[Any]:
        """Make the request of a call with these arguments. A null counts as missing, unless the
        field may be any JSON.

        Raises:
            Refusal: INVALID, naming the field; LIMIT.
        """
        chosen = self._checked(given)
        fields = {name: value for name in self.takes
                  if (value := getattr(chosen, name)) is not msgspec.UNSET}
        names = {f.name for f in msgspec.structs.fields(self.request)}
        if "reader" in names:  # everything that it names, otherwise its own
            fields["reader"] = None if {"task", "thread"} & {*fields} else agent
        elif self.acts:
            fields["agent"] = agent
        if "cwd" in names:
            fields["cwd"] = cwd
        preset = {k: v for k, v in self.preset.items() if k not in self.takes}
        return self.request(**preset, **fields)

    def _checked(self, given: Mapping[str, Any]) -> msgspec.Struct:
        """The arguments, as `arguments` has them.

        Raises:
            Refusal: INVALID, naming the field; LIMIT.
        """
        try:
            given_json = msgspec.json.encode(
                {k: v for k, v in given.items() if v is not None or k in self._any_json})
            if len(given_json) > ARGUMENTS_BYTES_MAX:
                raise Refusal(
                    Code.LIMIT, f"{self.name}: the arguments are over {ARGUMENTS_BYTES_MAX} "
                    "bytes. Nothing was done.", next="Say it shorter.",
                )
            return msgspec.json.decode(given_json, type=self.arguments)
        except (msgspec.ValidationError, msgspec.DecodeError, ValueError, TypeError,
                RecursionError) as bad:
            inner = ", ".join(f"`{name}`" for name in wrong_values.fields(bad, self.arguments))
            raise Refusal(
                Code.INVALID,
                f"{self.name}: {wrong_values.in_words(bad)[:300]}. Nothing was done.",
                next=f"Call {self.name} again with {inner} there." if inner else
                f"Call {self.name} again with {self._listed()}.",
            ) from None

    def _listed(self) -> str:
        return ", ".join(f"`{name}`" for name in self.takes)


def _without_none(kind: Any) -> Any:
    """`X | None` as `X`: a caller with nothing to say leaves the field out."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kept = [argument for argument in typing.get_args(kind) if argument is not type(None)]
        return kept[0] if len(kept) == 1 else typing.Union[tuple(kept)]  # noqa: UP007
    return kind


TOOLS: dict[str, Tool] = {tool.name: tool for tool in (
    Tool(
        "next_task", "Take a task",
        "Take the best task you can start now, with exclusive leases on its files. Returns what to "
        "do, the files that are yours, and notes that explain them. `task` takes that one.",
        rq.TaskClaim,
        {"task": "Only this task, like `T-3`. Leave it out for the best one.",
         "wait_s": "Wait this many seconds if none can be started now."},
        typed={"wait_s": Annotated[float, msgspec.Meta(ge=0, le=WAIT_S_MAX)]},
        preset={"wait_s": 0.0, "reentrant": True},
    ),
    Tool(
        "complete_task", "Finish a task",
        "Say that a task you took is finished. Its leases are released, so write everything "
        "before you call this.",
        rq.TaskDone,
        {"task": _TASK, "result": "What was done, in a sentence or two."},
    ),
    Tool(
        "fail_task", "Give a task back",
        "Give back a task you cannot finish; it is offered again later. With `blocked`, it waits "
        "until those files are free. What you changed for it, a person looks at first.",
        rq.TaskFail,
        {"task": _TASK, "reason": "Why, for whoever takes it next.",
         "blocked": "Files held by others that it turned out to need."},
    ),
    Tool(
        "acquire", "Lease files",
        "Lease files before you change them: all of them, or none. Refused LOCKED if another "
        "agent holds one: then do not write it, do what the answer says.",
        rq.Acquire,
        {"resources": _RESOURCES, "mode": "`shared` to keep others from writing while you read.",
         "description": "Why, for those who have to wait.", "task": "The task it is for.",
         "new": _NEW},
        typed={"resources": _Names}, preset={"reentrant": True}, again=True,
    ),
    Tool(
        "release", "Release files",
        "Give leases back as soon as you are done with the files.",
        rq.Release, {"resources": _RESOURCES}, typed={"resources": _Names},
    ),
    Tool(
        "commit_region", "Write regions",
        "Write the new text of functions, classes or methods that you have leased by name "
        "(`path::Qualified.name`), of all of them or of none. Others may edit the rest of the file "
        "meanwhile. Refused if a region was changed since you read it, with the fresh text.",
        rq.CommitRegion,
        {"regions": "For each: `resource`, its whole new `text`, and the `content_hash` of the "
         "text that you made it from. One that is not there yet is leased with `new`; `after` is "
         "the region that it comes behind."},
        typed={"regions": Annotated[list[rq.RegionText], msgspec.Meta(min_length=1)]},
    ),
    Tool(
        "who_holds", "Who holds what",
        "Who holds leases now, why and until when, and who waits. `resource` narrows it to what "
        "overlaps that path.",
        rq.Locks, {"resource": "A path, `dir/`, glob or key."}, reads=True, again=True,
    ),
    Tool(
        "wait_for", "Wait for files",
        "Stand in line for files that others hold, and lease them when they are free. If the time "
        "is over first, you keep your place: do other work, or call it again.",
        rq.Acquire,
        {"resources": _RESOURCES, "wait_s": f"Seconds to wait, at most {WAIT_S_MAX:g}.",
         "description": "Why, for those who hold them.", "new": _NEW},
        typed={"resources": _Names, "wait_s": Annotated[float, msgspec.Meta(gt=0, le=WAIT_S_MAX)]},
        preset={"wait_s": 30.0, "reentrant": True}, again=True,
    ),
    Tool(
        "request_unlock", "Ask a holder to let go",
        "Ask whoever holds a file to release it before it is done, with your reason. You stand in "
        "line and are told the answer; go on with other work meanwhile.",
        rq.RequestFile,
        {"resource": "What you need: a path relative to the repository root, `dir/`, glob or key.",
         "reason": "Why you need it now: the holder decides by this.",
         "holder": "Whom to ask, only where several hold parts of it."},
        typed={"reason": Annotated[str, msgspec.Meta(min_length=1)]}, again=True,
    ),
    Tool(
        "answer_unlock", "Answer who asks you to let go",
        "Answer a request for something you hold. `approve` releases it and gives it to whoever "
        "asked, so write everything before; `narrow` does so and keeps parts beside it; `coexist` "
        "lets both write it, by turns; `reject` keeps it.",
        rq.RequestAnswer,
        {"request": "The request's id, like `U-3`.",
         "verdict": "`approve`, `narrow`, `coexist` or `reject`.",
         "keep": "With `narrow`: files of your directory, or `file::region` of your file.",
         "answer": "What the asker is told: why not, or what state it is in."},
    ),
    Tool(
        "get_state", "Read a value",
        "Read the versioned JSON value of a key, like `key:account:12345`.",
        rq.StateGet, {"key": "The key."}, reads=True, again=True,
    ),
    Tool(
        "put_state", "Write a value",
        "Write the value of a key, if it is still at the version that you read. Refused "
        "VERSION_CHANGED with the value as it is now: then decide again.",
        rq.StatePut,
        {"key": "The key.", "value": "The new value: any JSON.",
         "version": "The version that you read; 0: nothing is stored yet.",
         "fencing_token": "Of your lease on the key, where you hold one."},
    ),
    Tool(
        "request_change", "Ask a key's owner for a change",
        "Ask the owner of a key to change it. It is applied once, in its turn; you are told.",
        rq.ChangeAdd,
        {"key": "The key.", "wanted": "What is wanted, as its owner understands it: any JSON.",
         "note": "Why, in a sentence."},
    ),
    Tool(
        "leave_signal", "Leave a hint",
        "Leave a hint for others on a task or a file: it fades, and never blocks anybody.",
        rq.SignalAdd,
        {"subject": "A task, like `T-3`, or a path, `dir/`, glob or key.",
         "name": "`takeup_interest`, `saturation`, `files_blocked`, `task_not_ready`, `priority`, "
         "`completed`, `warning`, or a word of your own.",
         "note": "Why, in a sentence."},
    ),
    Tool(
        "tell", "Tell an agent or a person",
        "Say something to another agent, to `all`, or to `human`. An agent hears it with its next "
        "call; go on with your work meanwhile. Say only what changes what somebody does.",
        rq.MessageSend,
        {"to": "An agent's name, `all`, or `human`.", "text": "What to say.",
         "task": "What it is about, like `T-3`.", "reply_to": "What it answers, like `M-4`."},
    ),
    Tool(
        "read_messages", "Look messages up",
        "What you said and were told, or all that was said of a task or in a thread. (New messages "
        "come to you by themselves, once.)",
        rq.Messages,
        {"task": _TASK, "thread": "A message of it, like `M-4`.", "search": "Words in it.",
         "limit": "At most so many, the newest."},
        typed={"limit": Annotated[int, msgspec.Meta(ge=1, le=100)]}, preset={"limit": 20},
        reads=True, again=True,
    ),
    Tool(
        "search_archive", "Search the context archive",
        "Search the repository's context archive: why the code is as it is, and what other agents "
        "are doing now.",
        rq.ArchiveSearch,
        {"query": "Words to look for.", "limit": "At most this many sections."},
        typed={"limit": Annotated[int, msgspec.Meta(ge=1, le=50)]}, preset={"limit": 5},
        reads=True, again=True,
    ),
    Tool(
        "report_limit", "Report your provider's limit",
        "Say that your provider's usage limit is reached. Your tasks go back, to other agents "
        "first, and you are given nothing until it is over. 0 seconds: you can go on.",
        rq.LimitReached,
        {"for_s": "For so many seconds from now.", "note": "What the provider said."},
        typed={"for_s": Annotated[float, msgspec.Meta(ge=0, le=7 * 86_400)]},
    ),
    Tool(
        "report_progress", "Report progress",
        "Say in a few words what you are doing: it keeps your leases alive. Messages for you come "
        "back.",
        rq.Heartbeat, {"progress": "What you are doing now."},
        typed={"progress": Annotated[Line, msgspec.Meta(min_length=1)]},
    ),
)}

#: The instructions that a client gives its model about this server.
INSTRUCTIONS = (
    "coord lets several coding agents work in this repository at once. Files are leased: nobody "
    "may write what another agent holds. Hooks guard your writes by themselves, so a write may be "
    "refused with the holder's name; then do what the refusal says instead of trying another way. "
    "To begin, call next_task."
)
#: The instructions in a repository that does not use coord.
UNUSED = (
    "This repository does not use coord yet, so there are no tools here. A person can prepare it "
    "with `coord init`."
)
