"""Each tool's answer is told in words: none ends in an error of ours after it was carried out."""

from __future__ import annotations

import typing

import pytest
from mcp import Client

from coordinator.mcp import answers
from coordinator.mcp.tools import TOOLS, Tool
from tests.conftest import Repo
from tests.mcp.talking import code, server, talk, text

SESSION = "0c3f7a52-1111-4222-8333-4444abcd9876"
#: Small enough for whole answers, and with names that are left out of coord's own data.
VALUE = {"attempts": 0, "prompt": "", "list": [], "text": "naïve 🚀"}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_words_are_there_for_what_each_tool_answers(tool: Tool) -> None:
    bases = tool.request.__orig_bases__  # type: ignore[attr-defined]
    (answer,) = typing.get_args(bases[0])
    assert answer in answers._SENTENCES, f"{tool.name} answers {answer.__name__}"


def test_values_are_read_and_written_and_asked_for(repo: Repo) -> None:
    repo.coord("init")

    async def script(client: Client) -> None:
        put = await client.call_tool("put_state", {"key": "key:m", "value": VALUE, "version": 0})
        assert not put.is_error, text(put)
        got = await client.call_tool("get_state", {"key": "key:m"})
        assert not got.is_error, text(got)
        assert "key:m is at version 1" in text(got) and "naïve 🚀" in text(got)
        assert got.structured_content["value"] == VALUE and got.structured_content["version"] == 1
        late = await client.call_tool("put_state", {"key": "key:m", "value": 2, "version": 0})
        assert code(late) == "VERSION_CHANGED" and '"text":"naïve 🚀"' in text(late), "the value is in the data only"
        asked = await client.call_tool(
            "request_change", {"key": "key:m", "wanted": {"attempts": 0}})
        assert not asked.is_error and "key:m" in text(asked), text(asked)
        assert asked.structured_content["wanted"] == {"attempts": 0}

    talk(server(repo, CLAUDE_CODE_SESSION_ID=SESSION), script)


def test_a_region_is_committed(repo: Repo) -> None:
    repo.write("sums.py", "def add(a, b):\n    return a - b\n\n\ndef old():\n    pass\n")
    repo.coord("init")

    async def script(client: Client) -> None:
        got = await client.call_tool("acquire", {"resources": ["sums.py::add", "sums.py::old"]})
        assert not got.is_error, text(got)
        done = await client.call_tool("commit_region", {"regions": [
            {"resource": "sums.py::add", "text": "def add(a, b):\n    return a + b\n"},
            {"resource": "sums.py::old", "text": ""}]})
        assert not done.is_error, text(done)
        assert "Written: sums.py::add." in text(done) and "Removed: sums.py::old." in text(done)
        # By another spelling; and what a person has made of it is told to a model that reads the words only
        repo.write("sums.py", "def add(a, b):\n    return b + a\n")
        mine = {"resource": "./sums.py::add", "text": "def add(*both):\n    return sum(both)\n"}
        late = await client.call_tool("commit_region", {"regions": [mine]})
        assert code(late) == "REGION_CHANGED" and "It is now:\n```\ndef add(a, b):\n    return b + a\n" in text(late), text(late)
        assert repo.read("sums.py") == "def add(a, b):\n    return b + a\n"
        short = text(late).rstrip(".").rpartition(" ")[2]
        done = await client.call_tool("commit_region", {"regions": [{**mine, "content_hash": short}]})
        assert not done.is_error, text(done)

    talk(server(repo, CLAUDE_CODE_SESSION_ID=SESSION), script)
    assert repo.read("sums.py") == "def add(*both):\n    return sum(both)\n"


@pytest.mark.parametrize("path", ["sums.py", "my ünits/it's.py"])
def test_a_region_is_added_by_what_the_refusals_say(repo: Repo, path: str) -> None:
    repo.write(path, "def add(a, b):\n    return a - b\n")
    repo.coord("init")

    async def script(client: Client) -> None:
        more = {"resource": f"{path}::more", "text": "def more():\n    return 1\n"}
        unknown = await client.call_tool("acquire", {"resources": [f"{path}::more"]})
        assert f'acquire {{"resources": ["{path}::more"], "new": true}}' in text(unknown), text(unknown)
        unleased = await client.call_tool("commit_region", {"regions": [{**more, "after": "add"}]})
        assert f'acquire {{"resources": ["{path}::more"], "new": true}}' in text(unleased), text(unleased)
        got = await client.call_tool("acquire", {"resources": [f"{path}::more"], "new": True})
        assert not got.is_error, text(got)
        done = await client.call_tool("commit_region", {"regions": [more]})
        assert not done.is_error, text(done)

    talk(server(repo, CLAUDE_CODE_SESSION_ID=SESSION), script)
    assert repo.read(path).endswith("\n\n\ndef more():\n    return 1\n")


def test_a_wrong_argument_is_named(repo: Repo) -> None:
    repo.coord("init")

    async def script(client: Client) -> None:
        odd = await client.call_tool("acquire", {"paths": ["a.py"]})
        assert code(odd) == "INVALID" and "acquire: it has no field `paths`. Nothing was done." in text(odd)
        assert "Call acquire again with `resources`" in text(odd)
        inner = await client.call_tool("commit_region", {"regions": [{"region": "a.py::f", "text": "x"}]})
        assert "`regions[0]` has no field `region`." in text(inner) and "again with `resource`, `text`, " in text(inner)
        kind = await client.call_tool("acquire", {"resources": "a.py"})
        assert "acquire: `resources` must be a list, not a text." in text(kind)

    talk(server(repo, CLAUDE_CODE_SESSION_ID=SESSION), script)
