"""All operations. Every door is made from them: socket, HTTP, MCP, CLI, Python.

The kernel and the slices of `words.slices` contribute them. The module also lists further HTTP
paths: people expect `POST /v1/tasks/T-3/lock`, which is `acquire` of `task:T-3`. An operation is
served by one path of its own (`Request.http`), and a further path only fills in some of its fields.

A request that cannot be read is answered in words: which field, and what it must be. The last table
names the methods of the Python client. A method has the name of its operation, except where a list
has a bare plural and its siblings have not, as in `task_add`, `task_show` and `task_list`. It also
says which fields may be given without their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import msgspec

from coordinator.kernel.holders import agents
from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import KERNEL_OPERATIONS, Operation
from coordinator.words import requests as rq
from coordinator.words import wrong_values
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import TASK
from coordinator.words.slices import import_parts


def refusal(operation: str, request: type[Any], bad: Exception) -> Refusal:
    """INVALID for a request that does not fit its shape."""
    field, text = wrong_values.sentence(bad)
    fields = ", ".join(field.name for field in msgspec.structs.fields(request))
    among, inner = wrong_values.choices(bad, request), wrong_values.fields(bad, request)
    next_ = f"Choose one of: {', '.join(among)}." if among else (
        f"`{field}` takes: {', '.join(inner)}.") if inner else (
        f"Repeat it with another `{field}`.") if field else (
        f"`{operation}` takes: {fields}." if fields else f"`{operation}` takes no field.")
    return Refusal(Code.INVALID, f"{operation}: {text} Nothing was done.",
                   next=next_, field=_meant(field, str(bad)) or None)


def _meant(field: str, text: str) -> str:
    """The wrong field, also if it is missing or unknown."""
    match = re.match(r"Object (?:missing required|contains unknown) field `(.+?)`", text)
    return ".".join(filter(None, (field, match[1]))) if match is not None else field


def no_operation(name: str, names: Iterable[str]) -> Refusal:
    """INVALID for an operation that there is not."""
    near = get_close_matches(name[:60], list(names), 1)
    return Refusal(
        Code.INVALID, f"There is no operation called {name[:60]!r}.",
        next=(f"Did you mean `{near[0]}`? " if near else "") + "Over HTTP GET /openapi.json lists "
        "them; the documents do under operations.")


def no_request(bad: Exception) -> Refusal:
    """INVALID for a line on the socket that is no request."""
    return Refusal(Code.INVALID, f"Not a request line: {wrong_values.in_words(bad)}.", next=(
        'Send one JSON object a line, like {"id": 1, "op": "locks", "params": {}}.'))


def no_json(operation: str, bad: Exception) -> Refusal:
    """INVALID for an input that is no JSON object at all."""
    return Refusal(Code.INVALID, f"{operation}: not JSON: {wrong_values.in_words(bad)}. "
                   "Nothing was done.", next="Send one JSON object, as UTF-8 and not compressed.")


def _make_slices() -> tuple[Slice, ...]:
    """Each folder's `slice` module declares one."""
    return tuple(part() for module in import_parts("slice") for part in vars(module).values()
                 if isinstance(part, type) and part.__module__ == module.__name__
                 and issubclass(part, Slice))


SLICES = _make_slices()


#: The operations that the daemon serves itself.
_DAEMON_OPERATIONS = tuple(Operation(request, None) for request in (
    rq.Coordinators, rq.Compact, rq.OpenSession, rq.JoinSession, rq.AgentOfProcess,
    rq.TaskLog, rq.PageOpen, rq.Shutdown,
))
_BACKSLASH = ord("\\")
OPERATIONS: dict[str, Operation] = {
    operation.name: operation for operation in (
        *KERNEL_OPERATIONS, *(operation for part in SLICES for operation in part.operations),
        *_DAEMON_OPERATIONS)
}


def decode(operation: Operation, params: bytes | msgspec.Raw) -> Any:
    """The request that these bytes of JSON are.

    Raises:
        Refusal: INVALID, naming the field.
    """
    try:
        text = bytes(params)
        request = (operation._decode or operation._make_decode())(text)
        if _BACKSLASH in text and b"\\u0000" in text:
            _check_nul(request, operation.name)
        if operation.names_agent and (name := request.agent) is not None:
            agents.check_name(name)
        return request
    except msgspec.ValidationError as bad:
        raise refusal(operation.name, operation.request, bad) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise no_json(operation.name, bad) from None


def _check_nul(value: Any, where: str) -> None:
    """Check that no text in a request holds a NUL. No path, no git name and no terminal allows one.

    Raises:
        Refusal: INVALID, naming the field.
    """
    if isinstance(value, str) and "\0" in value:
        raise Refusal(Code.INVALID, f"{where} has a NUL character in it, which no name and no text "
                      "may have. Nothing was done.", next="Leave it out.")
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _check_nul(getattr(value, name), f"{where}: `{name}`")
    elif isinstance(value, list):
        for item in value:
            _check_nul(item, where)


@dataclass(frozen=True)
class HttpPath:
    """One more path of an operation.

    Attributes:
        path: with the placeholders `{task}` or `{resource:path}`, and `{request}`.
        op: the operation's name.
        names: the field that takes the resource, and whether it takes a list of them.
        fixed: fields that this path has already said.
    """

    method: str
    path: str
    op: str
    names: tuple[str, bool]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def fields(self, given: Mapping[str, str]) -> dict[str, Any]:
        """The values of the placeholders, as fields of the request."""
        result: dict[str, Any] = {k: v for k, v in given.items() if k not in ("task", "resource")}
        resource = given["resource"] if "resource" in given else TASK + _task_id(given["task"])
        name, many = self.names
        result[name] = [resource] if many else resource
        return {**result, **self.fixed}

    @property
    def operation_id(self) -> str:
        """Its name in the description of all paths."""
        of = "task" if "{task}" in self.path else "resource"
        last = re.sub(r"\W+", "_", self.path.rpartition("}/")[2] or "withdraw").strip("_")
        return f"{of}_{last}_{self.method.lower()}"


def _task_id(text: str) -> str:
    bare = text.strip().upper()
    return f"T-{bare}" if bare.isdigit() else bare


def _below(root: str) -> list[HttpPath]:
    asked = f"{root}/unlock-requests"
    return [
        HttpPath("POST", f"{root}/lock", "acquire", ("resources", True)),
        HttpPath("POST", f"{root}/unlock", "release", ("resources", True)),
        HttpPath("GET", asked, "requests", ("resource", False)),
        HttpPath("POST", asked, "request_file", ("resource", False)),
        *(HttpPath("POST", f"{asked}/{{request}}/{verdict}", "request_answer", ("resource", False),
                   {"verdict": verdict}) for verdict in ("approve", "narrow", "coexist", "reject")),
        HttpPath("DELETE", f"{asked}/{{request}}", "request_withdraw", ("resource", False)),
    ]


HTTP_PATHS: tuple[HttpPath, ...] = (
    *_below("/v1/tasks/{task}"),
    # A resource's own name has slashes in it; what follows it decides which path it is.
    *_below("/v1/resources/{resource:path}"),
)


#: Operation -> method, where they differ.
METHODS = {
    "tasks": "task_list", "reviews": "review_list", "requests": "request_list",
    "signals": "signal_list", "changes": "change_list", "steps": "step_list",
    "dead": "dead_list", "state_keys": "state_list", "messages": "message_list",
    "verifications": "verification_list", "commit_region": "commit_regions",
}
#: Methods that are written by hand (coordinator/client), because they do more than ask.
BY_HAND = frozenset({"register"})
#: Operation -> optional fields that may be given in this order, without their names.
BY_PLACE: dict[str, tuple[str, ...]] = {
    "task_import": ("format",), "task_claim": ("task",),
    "task_done": ("result",), "task_fail": ("reason", "blocked"), "heartbeat": ("progress", "ack"),
}
#: Operations whose resources are their positional arguments.
OF_RESOURCES = frozenset({"acquire", "release", "renew"})
#: Short forms: another name for a method.
SHORT = {"claim": "task_claim", "done": "task_done", "fail": "task_fail"}


def method_of(op: str) -> str:
    """The method's name."""
    return METHODS.get(op, op)
