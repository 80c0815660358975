"""Pools as `coord.toml` sets them: what counts, what cannot be, and what a person has to trust."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator import settings
from coordinator.rules import pools as rule
from coordinator.rules.pools import Pool
from coordinator.words.refusals import Code, Refusal

PORT = '[pools.port]\nenv = "PORT"\n'


def load(tmp_path: Path, text: str) -> settings.Loaded:
    (tmp_path / "coord.toml").write_text(text)
    return settings.load(tmp_path, {})


def test_values_are_a_range_several_or_a_list() -> None:
    assert Pool(values="5170-5172", env="PORT").list_values() == ["5170", "5171", "5172"]
    assert Pool(values="1-2, 7,9-10", env="PORT").list_values() == ["1", "2", "7", "9", "10"]
    assert Pool(values=["b", "a", "b", 3], env="X").list_values() == ["b", "a", "3"]
    assert len(Pool(values="1-999999999", env="X").list_values()) == rule.VALUES_MAX + 1, "and soon told"


@pytest.mark.parametrize(("pool", "are_ports"), [
    (Pool(values="1-2", env="X"), True), (Pool(values="1-2", env="X", kind="plain"), False),
    (Pool(values=[1, 2], env="PORT"), False), (Pool(values=[1, 2], env="X", kind="port"), True),
    (Pool(values="5,6", env="X"), False),
])
def test_a_range_of_numbers_is_ports_unless_it_says_otherwise(pool: Pool, are_ports: bool) -> None:
    assert pool.is_of_ports is are_ports


@pytest.mark.parametrize(("text", "why"), [
    (PORT + 'values = ""', "`pools.port.values` is empty"),
    (PORT + "values = []", "`pools.port.values` is empty"),
    (PORT + 'values = "9-7"', "`pools.port.values` is empty"),
    (PORT + 'values = "1-1001"', "more than 1,000 values"),
    (PORT + 'values = "0-5"', "'0' in it, which is no port"),
    (PORT + 'values = "65535-65536"', "'65536' in it, which is no port"),
    (PORT + 'values = ["a:b"]', "'a:b' in it: a value has"),
    (PORT + 'values = ["-x"]', "'-x' in it: a value has"),
    (PORT + 'values = ["a"]\ntemplate = "x"', "has no {value} in it"),
    (PORT + 'values = ["a"]\ntemplate = "{value}\\n"', "cannot be printed"),
    (PORT + 'values = 7', "must be a text or a list"),
    (PORT + 'values = "1-2"\nkind = "prot"', "prot"),
    (PORT + 'values = "1-2"\nnope = 1', "no field `nope`"),
    ('[pools.port]\nvalues = "1-2"', "lacks the field `env`"),
    ('[pools.port]\nvalues = "1-2"\nenv = "A B"', "cannot be its variable"),
    ('[pools.port]\nvalues = "1-2"\nenv = "COORD_PORT"', "cannot be its variable"),
    ('[pools.Port]\nvalues = "1-2"\nenv = "PORT"', "cannot be a pool's name"),
    (PORT + 'values = "1-2"\n[pools.other]\nvalues = "3-4"\nenv = "PORT"', "as of the pool port"),
    ("".join(f'[pools.p{n}]\nvalues = ["a"]\nenv = "P{n}_PORT"\n' for n in range(101)), "100 are the most"),
])
def test_mistakes_are_told_with_their_place(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(Refusal) as refused:
        load(tmp_path, text)
    assert refused.value.code is Code.INVALID and why in refused.value.message, refused.value.message
    assert "coord.toml" in refused.value.message and str(refused.value.next).startswith("Correct ")


@pytest.mark.parametrize(("text", "trusted"), [
    ('env = "PORT"', True), ('env = "API_PORT"', True), ('env = "DATABASE_URL"', True), ('env = "TEST_DB"', True),
    ('env = "ANDROID_SERIAL"', True), ('env = "PATH"', False), ('env = "PYTHONPATH"', False), ('env = "pORT"', False),
    ('env = "LD_PRELOAD"', False), ('env = "GIT_SSH_COMMAND"', False), ('env = "PIP_INDEX_URL"', False),
    ('env = "PORT"\ncreate = " "', True), ('env = "PORT"\ncreate = "true"', False), ('env = "PORT"\nreset = "true"', False),
    ('env = "PORT"\ndrop = "true"', False),
])
def test_commands_and_other_variables_need_trust(tmp_path: Path, text: str, trusted: bool) -> None:
    loaded = load(tmp_path, f'[pools.x]\nvalues = ["a"]\n{text}\n')
    assert [*loaded.untrusted] == ([] if trusted else ["pools.x"])
    assert ("x" in loaded.settings.pools) is trusted
    assert len(loaded.warnings()) == (not trusted)


def test_what_cannot_be_written_as_json_is_shown_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "coord.toml").write_text('[pools.x]\nvalues = 2026-01-01\nenv = "PATH"\n')
    weak = settings.weakening(settings.read(tmp_path / "coord.toml"))
    assert b"2026-01-01" in settings.as_shown(weak)
    with pytest.raises(Refusal):
        settings.load(tmp_path, {})


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.text() | st.integers(), st.lists)
                       | st.fixed_dictionaries({"env": st.text() | st.integers(), "create": st.none() | st.text()})))
def test_no_raw_pool_is_too_strange_to_be_looked_at(raw: dict[str, object]) -> None:
    weak = settings.weakening({"pools": raw})
    assert set(weak) <= {f"pools.{name}" for name in raw}
    json.loads(settings.as_shown(weak))
