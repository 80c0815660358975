"""OpenAI Responses: a request read into a `Turn`, a `Reply` written as JSON or as events."""

from __future__ import annotations

import json
import uuid

from tests.agents.conversation import Answer, Call, Json, Message, Reply, Turn, flatten

USAGE = {
    "input_tokens": 12, "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 19,
}


def read(body: Json) -> Turn:
    messages = [Message("system", flatten(body.get("instructions")))]
    given = body.get("input", [])
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    for item in given:
        kind = str(item.get("type", "message"))
        if kind == "message":
            role = "system" if item["role"] == "developer" else item["role"]
            messages.append(Message(role, flatten(item.get("content"))))
        elif kind.endswith("_call"):
            messages.append(Message("assistant", calls=(item.get("call_id", ""),)))
        elif kind.endswith("_output"):
            text = "\n".join(flatten(item.get("output")))
            messages.append(Message("tool", answers=(Answer(item.get("call_id", ""), text),)))
    return Turn(_joined(messages), _tools(body), _schema(body))


def _joined(messages: list[Message]) -> tuple[Message, ...]:
    """The model's text and its calls are separate items: one thing that it said."""
    joined: list[Message] = []
    for message in messages:
        last = joined[-1] if joined else None
        if last is not None and last.role == message.role == "assistant":
            joined[-1] = Message(
                "assistant", last.texts + message.texts, last.calls + message.calls)
        else:
            joined.append(message)
    return tuple(joined)


def _tools(body: Json) -> tuple[str, ...]:
    names: list[str] = []
    for tool in body.get("tools") or ():
        names.append(str(tool.get("name", tool.get("type"))))
        inner = tool.get("tools", ())
        names += [f"{tool.get('name')}.{t.get('name')}" for t in inner]
    return tuple(names)


def _schema(body: Json) -> bool:
    shape = ((body.get("text") or {}).get("format") or {}).get("type", "text")
    return bool(shape != "text")


def _item(call: Call) -> Json:
    if isinstance(call.args, str):
        return {"type": "custom_tool_call", "id": "ctc_" + uuid.uuid4().hex, "status": "completed",
                "call_id": call.id, "name": call.tool, "input": call.args}
    item = {"type": "function_call", "id": "fc_" + uuid.uuid4().hex, "status": "completed",
            "call_id": call.id, "name": call.tool, "arguments": json.dumps(call.args)}
    return {**item, "namespace": call.namespace} if call.namespace else item


def write(reply: Reply, body: Json) -> tuple[str, bytes]:
    items = [_item(call) for call in reply.calls]
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        items.insert(0, {"type": "message", "id": "msg_" + uuid.uuid4().hex, "role": "assistant",
                         "status": "completed", "content": [part]})
    head: Json = {"id": "resp_" + uuid.uuid4().hex, "object": "response", "created_at": 0,
                  "model": body.get("model"), "status": "in_progress", "output": []}
    whole = {**head, "status": "completed", "output": items, "usage": USAGE}
    if not body.get("stream"):
        return "application/json", json.dumps(whole).encode()
    events: list[Json] = [{"type": "response.created", "response": head}]
    for index, item in enumerate(items):
        events += _item_events(index, item)
    events.append({"type": "response.completed", "response": whole})
    numbered = ({**event, "sequence_number": n} for n, event in enumerate(events))
    lines = (f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in numbered)
    return "text/event-stream", "".join(lines).encode()


def _item_events(index: int, item: Json) -> list[Json]:
    at: Json = {"output_index": index, "item_id": item["id"]}
    began = {**item, "status": "in_progress"}
    middle: list[Json] = []
    if item["type"] == "message":
        part = item["content"][0]
        began["content"] = []
        at["content_index"] = 0
        middle = [
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **at, "delta": part["text"]},
            {"type": "response.output_text.done", **at, "text": part["text"]},
            {"type": "response.content_part.done", **at, "part": part},
        ]
    elif item["type"] == "function_call":
        began["arguments"] = ""
        name = "response.function_call_arguments"
        middle = [
            {"type": f"{name}.delta", **at, "delta": item["arguments"]},
            {"type": f"{name}.done", **at, "arguments": item["arguments"]},
        ]
    else:
        began["input"] = ""
        name = "response.custom_tool_call_input"
        middle = [
            {"type": f"{name}.delta", **at, "delta": item["input"]},
            {"type": f"{name}.done", **at, "input": item["input"]},
        ]
    return [
        {"type": "response.output_item.added", "output_index": index, "item": began},
        *middle,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def error(status: int, message: str) -> Json:
    return {"error": {"type": "invalid_request_error", "code": str(status), "message": message}}
