"""TOML settings: merged without losing a letter of what is a person's, and taken out again."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from coordinator.wiring import toml

MARKS = ("coordinator.cli.main",)
SERVER = {"command": "/usr/bin/python3", "args": ["-P", "-m", "coordinator.cli.main", "mcp"]}
PUT = [(("features", "unified_exec_tty"), False), (("mcp_servers", "coord"), SERVER)]

keys = st.sampled_from(["features", "mcp_servers", "a", "b c", "model", "unified_exec_tty"])
scalars = st.booleans() | st.integers(-9, 9) | st.text(max_size=6) | st.floats(0, 9)
tables = st.recursive(
    st.dictionaries(keys, scalars | st.lists(scalars, max_size=3), max_size=3),
    lambda kids: st.dictionaries(keys, scalars | kids, max_size=3), max_leaves=8,
)


def put(text: str) -> str:
    for path, value in PUT:
        text = toml.with_member(text, path, value)
    return text


@given(tables)
def test_what_is_put_in_is_there_and_nothing_else_changes(before: dict[str, Any]) -> None:
    text = "# mine\n" + tomlkit.dumps(before)
    try:
        after = put(text)
    except toml.BadToml:
        assert any(not isinstance(before.get(path[0], {}), dict) for path, _ in PUT)
        return
    for path, value in PUT:
        assert toml.read_at(after, path) == value
    assert put(after) == after
    left = toml.stripped(after, MARKS)
    wanted = dict(before)
    for path, _ in PUT:  # what stood in the very place is gone: only the record of `init` has it
        if isinstance(wanted.get(path[0]), dict):
            wanted[path[0]] = {k: v for k, v in wanted[path[0]].items() if k != path[1]}
    assert without_empty(tomllib.loads(left or "")) == without_empty(wanted)


def without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty(kid) for key, kid in value.items()}
    return {key: kid for key, kid in kept.items() if kid != {}}


@pytest.mark.parametrize("text", [
    "# mine\nmodel = 'x'  # the cheap one\n\n[features]\nweb = true # yes\n",
    "features.web = true\nmodel = 'x'\n",
    "features = { web = true }\n",
    "[mcp_servers.other]\ncommand = 'other'\n[mcp_servers.other.env]\nA = '1'\n",
    "[projects.\"/a b\"]\ntrust_level = \"trusted\"\n",
    "",
])
def test_every_line_of_a_person_stays(text: str) -> None:
    after = put(text)
    rest = iter(after.splitlines())
    for line in text.splitlines():
        assert line in rest or "features = {" in line, f"{line} is lost or moved in:\n{after}"
    left = toml.stripped(after, MARKS) or ""
    assert without_empty(tomllib.loads(left)).get("model") == tomllib.loads(text).get("model")


@pytest.mark.parametrize("text", ["a = ", "[x", "a = 1\na = 2\n", "[features\n"])
def test_a_broken_file_is_said_so(text: str) -> None:
    with pytest.raises(toml.BadToml):
        put(text)


def test_a_scalar_where_a_table_must_be_is_left_alone() -> None:
    with pytest.raises(toml.BadToml, match="no table"):
        toml.with_member("features = 3\n", ("features", "unified_exec_tty"), False)
