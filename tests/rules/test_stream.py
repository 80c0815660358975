"""Streams of real agents, shortened, read by the profiles that coord ships."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.dialects.stream import Reader
from coordinator.profiles import profiles

TABLES = {one.name: one.stream for one in profiles(Path("/nowhere")) if one.stream}


def read(name: str, *lines: Any) -> tuple[Reader, list[str]]:
    reader = Reader(TABLES[name])
    shown = [s for line in lines for s in reader.feed(line if isinstance(line, str) else json.dumps(line))]
    return reader, shown


def test_claude() -> None:
    reader, shown = read(
        "claude-code", {"type": "system", "subtype": "init", "session_id": "s1"},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "name": "Edit", "input": {"file_path": "a.py"}}]}},
        {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "num_turns": 3, "total_cost_usd": 0.5, "usage": {"input_tokens": 9, "output_tokens": 4}})
    told = reader.told
    assert (told.session, told.result, told.cost_usd, told.tokens_in, told.tokens_out, told.turns) == ("s1", "Done.", 0.5, 9, 4, 3)
    assert shown == ["I look.", "> Edit a.py"]
    assert reader.verdict(0, (0,)) == "" and told.tools == 1
    assert "exit code 1" in reader.verdict(1, (0,))


def test_claude_whose_model_failed() -> None:
    reader, _ = read("claude-code", {"type": "result", "is_error": True, "result": "API Error: 400 no"})
    assert reader.verdict(1, (0,)).startswith("the model failed")


def test_claude_that_ends_in_the_middle() -> None:
    reader, _ = read("claude-code", {"type": "system", "subtype": "init", "session_id": "s1"})
    assert "without saying" in reader.verdict(0, (0,))


def test_codex() -> None:
    reader, shown = read(
        "codex", {"type": "thread.started", "thread_id": "t1"},
        {"type": "item.completed", "item": {"type": "command_execution", "command": "ls"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}},
        {"type": "turn.completed", "usage": {"input_tokens": 96, "output_tokens": 56}})
    assert (reader.told.session, reader.told.result, reader.told.tokens_out) == ("t1", "Done.", 56)
    assert shown == ["> ls", "Done."] and reader.verdict(0, (0,)) == ""
    reader, _ = read("codex", {"type": "turn.failed", "error": {"message": "no model"}})
    assert reader.verdict(1, (0,)) == "the model failed: no model"


def test_opencode_adds_up() -> None:
    step = {"type": "step_finish", "sessionID": "ses", "part": {"cost": 0.25, "tokens": {"input": 12, "output": 7}}}
    reader, _ = read("opencode", step, step)
    assert (reader.told.session, reader.told.cost_usd, reader.told.tokens_in) == ("ses", 0.5, 24)


def test_an_exit_code_of_zero_is_not_believed() -> None:
    reader, _ = read("aider", "litellm.BadRequestError: no such model")
    assert reader.verdict(0, (0,)).startswith("the model failed")


@pytest.mark.parametrize("name", sorted(TABLES))
@given(line=st.text(max_size=100) | st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda k: st.lists(k, max_size=3) | st.dictionaries(st.sampled_from(["type", "message", "content", "item", "part", "result", "error", "usage", "data"]), k, max_size=4), max_leaves=12))
def test_no_line_upsets_a_reader(name: str, line: Any) -> None:
    reader, _ = read(name, line)
    reader.verdict(0, (0,))
