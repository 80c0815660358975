"""All operations; every door (socket, HTTP, MCP, CLI, Python) is made from them."""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.kernel.holders import agents
from coordinator.kernel.operations import KERNEL_OPERATIONS, Operation
from coordinator.operations import malformed
from coordinator.operations.slices import SLICES
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: Those that the daemon serves itself.
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
        raise malformed.refusal(operation.name, operation.request, bad) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise malformed.no_json(operation.name, bad) from None


def _check_nul(value: Any, where: str) -> None:
    """That no text in a request holds a NUL: no path, no name in git and no terminal can.

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
        for one in value:
            _check_nul(one, where)
