"""OpenAI Chat Completions: a request read into a `Turn`, a `Reply` written as JSON or as chunks."""

from __future__ import annotations

import json
import uuid

from tests.agents.conversation import Answer, Json, Message, Reply, Turn, flatten

USAGE = {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}


def read(body: Json) -> Turn:
    messages: list[Message] = []
    for entry in body.get("messages", []):
        texts = flatten(entry.get("content"))
        role = "system" if entry["role"] == "developer" else entry["role"]
        if role == "tool":
            answer = Answer(entry.get("tool_call_id", ""), "\n".join(texts))
            messages.append(Message("tool", answers=(answer,)))
        else:
            calls = tuple(c["id"] for c in entry.get("tool_calls") or ())
            messages.append(Message(role, texts, calls))
    tools = tuple(
        str((t.get("function") or t.get("custom") or t).get("name"))
        for t in body.get("tools") or ()
    )
    shape = (body.get("response_format") or {}).get("type", "text")
    return Turn(tuple(messages), tools, shape != "text")


def write(reply: Reply, body: Json) -> tuple[str, bytes]:
    calls = [
        {"id": c.id, "type": "function",
         "function": {"name": c.tool, "arguments": json.dumps(c.args)}}
        for c in reply.calls
    ]
    finish = "tool_calls" if calls else "stop"
    head = {"id": "chatcmpl-" + uuid.uuid4().hex, "created": 0, "model": body.get("model")}
    if not body.get("stream"):
        said: Json = {"role": "assistant", "content": reply.text or None}
        if calls:
            said["tool_calls"] = calls
        choice = {"index": 0, "message": said, "finish_reason": finish}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}
        return "application/json", json.dumps(whole).encode()
    deltas: list[tuple[Json, str | None]] = [({"role": "assistant", "content": reply.text}, None)]
    if calls:
        numbered = [{"index": n, **c} for n, c in enumerate(calls)]
        deltas.append(({"tool_calls": numbered}, None))
    deltas.append(({}, finish))
    chunks: list[Json] = [
        {**head, "object": "chat.completion.chunk",
         "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in deltas
    ]
    chunks.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": USAGE})
    lines = [f"data: {json.dumps(c)}\n\n" for c in chunks]
    return "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode()


def error(status: int, message: str) -> Json:
    return {"error": {"type": "invalid_request_error", "code": str(status), "message": message}}
