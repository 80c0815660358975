"""Anthropic Messages: a request read into a `Turn`, a `Reply` written as JSON or as events."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.agents.conversation import Answer, Json, Message, Reply, Turn, flatten

USAGE = {
    "input_tokens": 12, "output_tokens": 7,
    "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
}


def read(body: Json) -> Turn:
    messages = [Message("system", flatten(body.get("system")))]
    for entry in body.get("messages", []):
        content = entry["content"]
        blocks: list[Json] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else content
        )
        answers = tuple(
            Answer(b["tool_use_id"], "\n".join(flatten(b.get("content"))), bool(b.get("is_error")))
            for b in blocks if b.get("type") == "tool_result"
        )
        messages.append(Message(
            entry["role"],
            flatten([b for b in blocks if b.get("type") == "text"]),
            tuple(b["id"] for b in blocks if b.get("type") == "tool_use"),
            answers,
        ))
    tools = tuple(str(t.get("name", t.get("type"))) for t in body.get("tools") or ())
    schema = (body.get("output_config") or {}).get("format") or body.get("output_format")
    return Turn(tuple(messages), tools, bool(schema))


def write(reply: Reply, body: Json) -> tuple[str, bytes]:
    blocks: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    blocks += [
        {"type": "tool_use", "id": c.id, "name": c.tool, "input": c.args} for c in reply.calls
    ]
    head: Json = {
        "id": "msg_" + uuid.uuid4().hex, "type": "message", "role": "assistant",
        "model": body.get("model", "scripted"), "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": USAGE,
    }
    stop = "tool_use" if reply.calls else "end_turn"
    if not body.get("stream"):
        whole = {**head, "content": blocks, "stop_reason": stop}
        return "application/json", json.dumps(whole).encode()
    events: list[Json] = [{"type": "message_start", "message": head}]
    for index, block in enumerate(blocks):
        empty: dict[str, Any]
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events += [
        {"type": "message_delta", "usage": USAGE,
         "delta": {"stop_reason": stop, "stop_sequence": None}},
        {"type": "message_stop"},
    ]
    lines = (f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    return "text/event-stream", "".join(lines).encode()


def error(status: int, message: str) -> Json:
    kind = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error",
            429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}
