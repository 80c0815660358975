"""What an agent's own hook asks before it writes: the lease is taken on its behalf, or it is told.

Reads the dialect that an agent CLI speaks (Claude Code's PreToolUse) and answers in it. Grants by
the same rules as `leases.acquire`, durably, re-entrant for what is held. What coord does not guard
(other tools, other events, files outside the repository) is allowed without a word to the agent.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import msgspec

from coordinator.service import leases
from coordinator.service.core import Actor, Service
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.hooks")
#: Tools that write one file, and the parameter that names it.
WRITERS = {"Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}


class Guarded(NamedTuple):
    """One write that is about to happen."""

    tool: str
    path: str
    cwd: str | None


class _Payload(msgspec.Struct):
    """Claude Code's hook input, as far as it matters here."""

    hook_event_name: str
    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    cwd: str | None = None


_decode = msgspec.json.Decoder(_Payload).decode


def understood(payload: bytes) -> Guarded | None:
    """The write that a hook's input announces; None if there is nothing to guard.

    Raises:
        Refusal: INVALID: not a hook's input, so nobody knows what would be written.
    """
    try:
        said = _decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise Refusal(
            Code.INVALID, f"The hook's input is not understood ({bad}); the write is stopped.",
            next="Check the hook's entry in the agent's settings.",
        ) from None
    if said.hook_event_name != "PreToolUse" or said.tool_name not in WRITERS:
        log.info("not guarded: %.80s %.80s", said.hook_event_name, said.tool_name)
        return None
    path = said.tool_input.get(WRITERS[said.tool_name])
    if not isinstance(path, str) or not path:
        raise Refusal(
            Code.INVALID,
            f"{said.tool_name} without `{WRITERS[said.tool_name]}`; the write is stopped.",
            next="Name the file.",
        )
    return Guarded(said.tool_name, path, said.cwd)


def guard(
    svc: Service, tx: Tx, actor: Actor, agent: str, write: Guarded
) -> rq.Acquired | Refusal | None:
    """Take the exclusive lease for a write; None for a file outside the repository.

    A lease taken while the agent works on one claimed task belongs to it, and ends with it.

    Raises:
        Refusal: as `leases.acquire`.
    """
    try:
        located = svc.tree.resolve(write.path, write.cwd, literal=True)
    except Refusal as refusal:
        if refusal.code is Code.OUTSIDE_REPO:
            return None
        raise
    claimed = tx.rows("tasks_of_holder", agent)
    request = rq.Acquire(
        agent=agent, resources=[write.path], cwd=write.cwd, description=f"{write.tool} by its hook",
        task=str(claimed[0][0]) if len(claimed) == 1 else None,
    )
    return leases.acquire_located(svc, tx, actor, request, [located])


def told(answer: rq.Acquired | Refusal | None) -> str:
    """The answer in the agent CLI's words, for its standard output: empty when it may write."""
    if not isinstance(answer, Refusal):
        return ""
    said = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": f"{answer.message} {answer.next}".strip(),
    }
    return msgspec.json.encode({"hookSpecificOutput": said}).decode()
