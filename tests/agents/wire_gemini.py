"""Gemini generateContent: a request read into a `Turn`, a `Reply` written whole or as a stream."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.agents.conversation import Answer, Json, Message, Reply, Turn, flatten


def read(body: Json) -> Turn:
    messages = [Message("system", flatten((body.get("systemInstruction") or {}).get("parts")))]
    for entry in body.get("contents", []):
        parts: list[Json] = entry.get("parts") or []
        messages.append(Message(
            "assistant" if entry.get("role") == "model" else "user",
            flatten([p for p in parts if not p.get("thought")]),
            tuple(p["functionCall"].get("id", "") for p in parts if "functionCall" in p),
            tuple(_answer(p["functionResponse"]) for p in parts if "functionResponse" in p),
        ))
    tools = tuple(
        str(declared.get("name"))
        for tool in body.get("tools") or () for declared in tool.get("functionDeclarations", ())
    )
    config: dict[str, Any] = body.get("generationConfig") or {}
    wants_json = bool(config.get("responseSchema") or config.get("responseJsonSchema"))
    return Turn(tuple(messages), tools, wants_json)


def _answer(response: Json) -> Answer:
    said = response.get("response") or {}
    if "error" in said:
        return Answer(response.get("id", ""), str(said["error"]), True)
    text = said["output"] if "output" in said else json.dumps(said)
    return Answer(response.get("id", ""), str(text))


def write(reply: Reply, stream: bool, events: bool) -> tuple[str, bytes]:
    parts: list[Json] = [{"text": reply.text}] if reply.text else []
    parts += [
        {"functionCall": {"id": c.id, "name": c.tool, "args": c.args}} for c in reply.calls
    ]
    whole = {
        "candidates": [{
            "index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts},
        }],
        "usageMetadata": {
            "promptTokenCount": 12, "candidatesTokenCount": 7, "totalTokenCount": 19},
        "modelVersion": "scripted", "responseId": uuid.uuid4().hex,
    }
    if stream and events:
        return "text/event-stream", f"data: {json.dumps(whole)}\n\n".encode()
    return "application/json", json.dumps([whole] if stream else whole).encode()


def error(status: int, message: str) -> Json:
    return {"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}
