"""A model for the OpenAI Agents SDK that says what the test has written down."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


def call(tool: str, call_id: str = "c1", **arguments: Any) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", name=tool, call_id=call_id, arguments=json.dumps(arguments))


def say(text: str) -> ResponseOutputMessage:
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[
        ResponseOutputText(type="output_text", text=text, annotations=[])])


class Scripted(Model):
    """Each turn is a list of what it puts out; what it was shown is kept."""

    def __init__(self, *turns: list[Any]) -> None:
        self.turns = list(turns)
        self.shown: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *more: Any, **named: Any) -> ModelResponse:  # noqa: A002
        self.shown.append(input)
        return ModelResponse(output=self.turns.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *more: Any, **named: Any) -> AsyncIterator[Any]:
        raise NotImplementedError

    def results(self) -> dict[str, str]:
        """What each call's result was, as the model was shown it last."""
        return {item["call_id"]: item["output"] for item in self.shown[-1]
                if isinstance(item, dict) and item.get("type") == "function_call_output"}
