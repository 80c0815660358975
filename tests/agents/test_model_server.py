"""The scripted model itself, asked over HTTP as agents ask it. No agent is needed for these."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx
import pytest

from tests.agents.conversation import (
    Create,
    Edit,
    Read,
    Refuse,
    Result,
    Say,
    Script,
    Scripted,
    Shell,
)
from tests.agents.model_server import ModelServer, Session

Json = dict[str, Any]


def post(session: Session, path: str, body: Json) -> httpx.Response:
    return httpx.post(session.url + path, json=body, timeout=20, trust_env=False)


def events(text: str) -> list[Json]:
    found = (line[6:] for line in text.splitlines() if line.startswith("data: "))
    return [json.loads(data) for data in found if data != "[DONE]"]


TOOLS = [{"name": "Edit"}, {"name": "Bash"}, {"name": "Read"}]


def claude_asks(session: Session, *messages: Json, stream: bool = False) -> httpx.Response:
    body = {"model": "m", "stream": stream, "tools": TOOLS, "messages": list(messages)}
    return post(session, "/v1/messages", body)


def test_a_script_is_told_what_came_of_each_step_and_all_else_that_is_new(
    server: ModelServer,
) -> None:
    heard: list[Result] = []

    def script(given: Scripted) -> Script:
        assert given.first.user_texts == ("Begin.",)
        heard.append((yield Read("a.txt")))
        heard.append((yield (Shell("true"), Say("Both at once."), Edit("a.txt", "x", "y"))))

    session = server.session("one", "claude", "/r", script)
    begin = {"role": "user", "content": "Begin."}
    first = claude_asks(session, begin).json()
    [call] = first["content"]
    assert (call["name"], call["input"], first["stop_reason"]) == (
        "Read", {"file_path": "/r/a.txt"}, "tool_use")
    said = {"role": "assistant", "content": first["content"]}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "the text"}
    told = {"role": "user", "content": [result, {"type": "text", "text": "By the way: hurry."}]}
    second = claude_asks(session, begin, said, told).json()
    assert heard[0].ok and heard[0].text == "the text" and heard[0].extra == ("By the way: hurry.",)
    assert [b["type"] for b in second["content"]] == ["text", "tool_use", "tool_use"]

    answers = [
        {"type": "tool_result", "tool_use_id": b["id"], "content": b["name"], "is_error": error}
        for b, error in zip(second["content"][1:], (False, True), strict=True)]
    third = claude_asks(
        session, begin, said, told, {"role": "assistant", "content": second["content"]},
        {"role": "user", "content": [*answers, {"type": "text", "text": "By the way: hurry."}]})
    assert third.json()["stop_reason"] == "end_turn" and session.main.finished
    assert heard[1].extra == ("By the way: hurry.",)  # said once more is new once more
    assert not heard[1].ok and [p.ok for p in heard[1].parts] == [True, True, False]
    assert session.told("hurry") == [1, 2] and session.told("Both at once.") == []


def test_a_retry_gets_the_same_words_and_a_new_beginning_the_whole_script_again(
    server: ModelServer,
) -> None:
    session = server.session("one", "claude", "/r", [Read("a"), Read("b"), Say("end")])
    begin = {"role": "user", "content": "Begin."}
    first = claude_asks(session, begin).json()["content"]
    assert claude_asks(session, begin).json()["content"] == first
    said = {"role": "assistant", "content": first}
    told = {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": first[0]["id"], "content": "t"}]}
    assert claude_asks(session, begin, said, told).json()["content"][0]["input"] == {
        "file_path": "/r/b"}
    again = claude_asks(session, begin).json()["content"]
    assert again[0]["input"] == {"file_path": "/r/a"} and again != first
    assert session.main.plays == 2


def test_an_error_is_answered_once(server: ModelServer) -> None:
    session = server.session("one", "claude", "/r", [Refuse(529, "too busy"), Say("better")])
    begin = {"role": "user", "content": "Begin."}
    refused = claude_asks(session, begin)
    assert refused.status_code == 529 and refused.json()["error"]["type"] == "overloaded_error"
    assert claude_asks(session, begin).json()["content"][0]["text"] == "better"


def test_titles_counts_and_model_lists_do_not_use_up_the_script(server: ModelServer) -> None:
    session = server.session("one", "claude", "/r", [Say("the only step")])
    asked = {"role": "user", "content": "Begin."}
    title = post(session, "/v1/messages", {"messages": [asked]}).json()
    assert title["content"][0]["text"] == "Scripted work"
    assert post(session, "/v1/messages/count_tokens", {}).json()["input_tokens"] > 0
    assert httpx.get(session.url + "/v1/models", trust_env=False).json()["data"]
    assert claude_asks(session, asked).json()["content"][0]["text"] == "the only step"
    assert post(session, "/v1/elsewhere", {}).status_code == 404
    assert session.unknown == ["POST /s/one/v1/elsewhere"]
    assert [told.script for told in session.log] == ["", "", "main"]


def test_sessions_and_sub_agents_have_scripts_of_their_own(server: ModelServer) -> None:
    def helper(_: Scripted) -> Script:
        yield Say("from the helper")

    one = server.session("one", "claude", "/r", [Say("from one")], {"helper": helper})
    two = server.session("two", "claude", "/r", [Say("from two")])
    said = [
        claude_asks(session, {"role": "user", "content": prompt}).json()["content"][0]["text"]
        for session, prompt in ((one, "Begin."), (two, "Begin."), (one, "[[helper]] Begin."))]
    assert said == ["from one", "from two", "from the helper"]


def test_one_session_can_wait_for_another(server: ModelServer) -> None:
    gate = threading.Event()

    def waits(_: Scripted) -> Script:
        assert gate.wait(20)
        yield Say("after it")

    def opens(_: Scripted) -> Script:
        gate.set()
        yield Say("first")

    patient, quick = server.session("p", "claude", "/r", waits), server.session("q", "claude", "/r", opens)
    said: list[str] = []
    begin = {"role": "user", "content": "Begin."}
    thread = threading.Thread(
        target=lambda: said.append(claude_asks(patient, begin).json()["content"][0]["text"]))
    thread.start()
    claude_asks(quick, begin)
    thread.join(20)
    assert said == ["after it"]


def test_a_script_that_fails_says_so_to_the_test(server: ModelServer) -> None:
    def script(_: Scripted) -> Script:
        yield Read("a")
        raise AssertionError("not what was hoped for")

    session = server.session("one", "claude", "/r", script)
    begin = {"role": "user", "content": "Begin."}
    first = claude_asks(session, begin).json()["content"]
    last = claude_asks(session, begin, {"role": "assistant", "content": first}).json()
    assert last["stop_reason"] == "end_turn"
    assert "not what was hoped for" in str(session.failure)


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_messages(server: ModelServer, stream: bool) -> None:
    session = server.session("one", "claude", "/r", [(Say("Now."), Create("n", "text\n"))])
    asked = claude_asks(session, {"role": "user", "content": "Begin."}, stream=stream)
    if not stream:
        assert [b["type"] for b in asked.json()["content"]] == ["text", "tool_use"]
        return
    seen = events(asked.text)
    assert [e["type"] for e in seen] == [
        "message_start", *["content_block_start", "content_block_delta", "content_block_stop"] * 2,
        "message_delta", "message_stop"]
    assert json.loads(seen[5]["delta"]["partial_json"]) == {
        "file_path": "/r/n", "content": "text\n"}


def test_openai_responses(server: ModelServer) -> None:
    heard: list[Result] = []

    def script(_: Scripted) -> Script:
        heard.append((yield Edit("a.txt", "old", "new")))
        heard.append((yield Shell("false")))

    session = server.session("one", "codex", "/r", script)
    tools = [{"type": "custom", "name": "apply_patch"}, {"type": "function", "name": "exec_command"}]
    given: list[Json] = [{"role": "user", "content": [{"type": "input_text", "text": "Begin."}]}]
    body = {"model": "m", "tools": tools, "input": given, "stream": True}
    item = events(post(session, "/v1/responses", body).text)[-1]["response"]["output"][0]
    assert item["type"] == "custom_tool_call" and "-old\n+new\n" in item["input"]
    given += [item, {"type": "custom_tool_call_output", "call_id": item["call_id"],
                     "output": "Exit code: 0\nSuccess. Updated the following files:\nM a.txt\n"}]
    item = post(session, "/v1/responses", {**body, "stream": False}).json()["output"][0]
    assert json.loads(item["arguments"])["cmd"] == "false"
    given += [item, {"type": "function_call_output", "call_id": item["call_id"],
                     "output": "Process exited with code 1\nOutput:\n"}]
    assert post(session, "/v1/responses", {**body, "stream": False}).json()["output"][0][
        "content"][0]["text"] == "Done."
    assert [h.ok for h in heard] == [True, False]


@pytest.mark.parametrize("stream", [False, True])
def test_openai_chat(server: ModelServer, stream: bool) -> None:
    heard: list[Result] = []

    def script(_: Scripted) -> Script:
        heard.append((yield Shell("ls")))

    session = server.session("one", "mini", "/r", script)
    given: list[Json] = [{"role": "user", "content": "Begin."}]
    body = {"tools": [{"type": "function", "function": {"name": "bash"}}], "messages": given,
            "stream": stream}
    first = post(session, "/v1/chat/completions", body)
    call: Json
    if stream:
        deltas = [e["choices"][0]["delta"] for e in events(first.text) if e["choices"]]
        [call] = next(d["tool_calls"] for d in deltas if "tool_calls" in d)
    else:
        [call] = first.json()["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"command": "ls"}
    given += [{"role": "assistant", "content": None, "tool_calls": [call]},
              {"role": "tool", "tool_call_id": call["id"],
               "content": '{"returncode": 2, "output": "none"}'}]
    post(session, "/v1/chat/completions", body)
    assert not heard[0].ok


@pytest.mark.parametrize("how", ["generateContent", "streamGenerateContent?alt=sse"])
def test_gemini(server: ModelServer, how: str) -> None:
    heard: list[Result] = []

    def script(_: Scripted) -> Script:
        heard.append((yield Edit("a.txt", "old", "new")))

    session = server.session("one", "gemini", "/r", script)
    tools = [{"functionDeclarations": [{"name": "replace"}, {"name": "run_shell_command"}]}]
    given: list[Json] = [{"role": "user", "parts": [{"text": "Begin."}]}]

    def ask() -> Json:
        got = post(session, f"/v1beta/models/m:{how}", {"tools": tools, "contents": given})
        whole: Json = events(got.text)[0] if "sse" in how else got.json()
        content: Json = whole["candidates"][0]["content"]
        return content

    said = ask()
    assert said["parts"][0]["functionCall"]["args"]["new_string"] == "new"
    answer = {"name": "replace", "response": {"error": "no such text"}}
    given += [said, {"role": "user", "parts": [{"functionResponse": answer}]}]  # without an id
    assert ask()["parts"][0]["text"] == "Done."
    assert not heard[0].ok and heard[0].text == "no such text"


def test_aider_is_believed_when_it_is_silent_and_not_when_it_complains(
    server: ModelServer,
) -> None:
    heard: list[Result] = []

    def script(_: Scripted) -> Script:
        heard.append((yield Read("a.txt")))
        heard.append((yield Edit("a.txt", "one", "two")))
        heard.append((yield Edit("a.txt", "two", "three")))
        yield Say("end")

    session = server.session("one", "aider", "/r", script)
    given: list[Json] = [
        {"role": "user", "content": "a.txt\n```\none\n```\n"},
        {"role": "assistant", "content": "an example of its own"},
    ]

    def ask(word: str) -> Json:
        """The last message carries rules, which are left out when it has become history."""
        body = {"messages": [*given, {"role": "user", "content": f"{word}\n\n# Rules"}]}
        said: Json = post(session, "/v1/chat/completions", body).json()["choices"][0]["message"]
        given.extend([{"role": "user", "content": word}, said])
        return said

    for word in ("Begin.", "Go on with the next step."):
        assert "<<<<<<< SEARCH" in ask(word)["content"]
    ask("That file is taken.")
    assert [h.ok for h in heard] == [True, True, False] and heard[0].text == "one\n"
    assert heard[2].text.startswith("That file is taken.") and session.main.plays == 1
