"""Extreme values in every field of every operation: refused in words, or served; never an error."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.client.locating import connect
from coordinator.operations.listing import OPERATIONS
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.effort import EFFORT, examples

#: Its own end is asked for last, or others could not be asked.
ASKED = sorted(set(OPERATIONS) - {"shutdown"})
WHOLE = [0, -1, 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30]
NUMBERS = [0.0, -1.0, 5e-324, 1e-9, 1e9, 1e12, 1e18, 1e308, -1e308, *WHOLE]
TEXTS = ["", "\0", "a\0b", "/\0", "a" * 5_000, "../..", "/", ".", "T-1", "T-" + "9" * 40, "R-" + "9" * 40, "U-1",
         "A-" + "9" * 40, "9" * 5_000, "²", "\u202e", "key:", "key:" + "a:" * 300, "git:index", "**", "[", "a.py::b",
         "::", "shared:", "shared:shared:a", "refs/heads/x", "-x", "%s", "' OR 1=1 --", "\ufffe", "\U0010ffff", "\uef80",
         "{'a': [", "- [ ] " + "(after: x)" * 50, "all", "done", "AND OR NEAR(", '"', "yaml"]


def extremes(kind: Any) -> list[Any]:
    """What a field of this type may be given, and a little that it may not."""
    if isinstance(kind, msgspec.inspect.IntType):
        return [*WHOLE, 0.5, None]
    if isinstance(kind, msgspec.inspect.FloatType):
        return [*NUMBERS, None]
    if isinstance(kind, msgspec.inspect.StrType):
        return [*TEXTS, 1]
    if isinstance(kind, msgspec.inspect.BoolType):
        return [True, False]
    if isinstance(kind, msgspec.inspect.LiteralType):
        return [*kind.values, "other"]
    if isinstance(kind, msgspec.inspect.UnionType):
        return [value for one in kind.types for value in extremes(one)]
    if isinstance(kind, msgspec.inspect.NoneType):
        return [None]
    if isinstance(kind, msgspec.inspect.ListType):
        some = extremes(kind.item_type)
        return [[], *([one] for one in some), some[:3] * 2, [some[0]] * 2_000]
    if isinstance(kind, msgspec.inspect.StructType):
        return [dict(usual(kind), **{field.name: value})
                for field in kind.fields for value in extremes(field.type)]
    if isinstance(kind, msgspec.inspect.DictType):
        return [{}, {"a": 1}, {"\0": None}]
    if isinstance(kind, msgspec.inspect.RawType):
        return [None, 0, 2**70, "\0", [], {"a": [1, {"b": None}]}, "x" * 70_000]
    raise AssertionError(f"{kind} is not known to this test")


def usual(kind: msgspec.inspect.StructType) -> dict[str, Any]:
    """A request that is quite possible."""
    known: dict[str, Any] = {"agent": "ann", "resources": ["a.py"], "paths": [], "changes": [], "task": "T-1",
                             "review": "R-1", "request": "U-1", "verdict": "keep"}
    out = {}
    for field in kind.fields:
        if field.required:
            out[field.name] = known.get(field.encode_name, _plain(field.type))
    return out


def _plain(kind: Any) -> Any:
    if isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType):
        return 1
    return [] if isinstance(kind, msgspec.inspect.ListType) else "x"


def fields(operation: str) -> msgspec.inspect.StructType:
    found = msgspec.inspect.type_info(OPERATIONS[operation].request)
    assert isinstance(found, msgspec.inspect.StructType)
    return found


class Asker:
    """One connection; each answer is looked at."""

    def __init__(self, repo: Repo) -> None:
        with repo.client() as client:  # something is there
            client.call(rq.Health())
            client.call(rq.Acquire(agent="ann", resources=["a.py"]))
            client.call(rq.TaskAdd(title="x", resources=["b.py"]))
            client.call(rq.TaskClaim(agent="ann"))
        sock = connect(repo.state)
        assert sock is not None
        sock.settimeout(60)
        self._sock, self._file = sock, sock.makefile("rb")

    def ask(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        line = json.dumps({"id": 1, "op": operation, "params": params}).encode() + b"\n"
        self._sock.sendall(line)
        answer: dict[str, Any] = json.loads(self._file.readline())
        code = answer.get("error", {}).get("code")
        assert code not in ("INTERNAL", "STORE_DOWN", "STORAGE"), (operation, str(params)[:300], answer["error"])
        return answer

    def close(self) -> None:
        self._file.close()
        self._sock.close()


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    root = tmp_path_factory.mktemp("extremes") / "repo"
    root.mkdir()
    repo = Repo(root)
    made = Asker(repo)
    yield made
    made.close()
    repo.down()


def waits_for_nothing(shape: Any, params: dict[str, Any]) -> dict[str, Any]:
    """The same, without a wait that would be granted."""
    if "wait_s" in {field.encode_name for field in shape.fields}:
        params.setdefault("wait_s", 0)  # `state_watch` waits half a minute unless told otherwise
    if isinstance(params.get("wait_s"), int | float) and 0 < params["wait_s"] < 1e9:
        params["wait_s"] = 0
    return params


@pytest.mark.parametrize("operation", ASKED)
def test_each_field_at_its_worst(asker: Asker, operation: str) -> None:
    shape = fields(operation)
    step = 1 if EFFORT > 1 else 3  # (of each field every third, beginning with another one: of all fields each)
    for at, field in enumerate(shape.fields, ASKED.index(operation)):
        for value in extremes(field.type)[at % step::step]:
            asker.ask(operation, waits_for_nothing(shape, {**usual(shape), field.encode_name: value}))


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_all_fields_at_their_worst(asker: Asker, data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(ASKED))
    shape = fields(operation)
    params = usual(shape)
    for field in shape.fields:
        if data.draw(st.booleans()):
            params[field.encode_name] = data.draw(st.sampled_from(extremes(field.type)))
    asker.ask(operation, waits_for_nothing(shape, params))


def walk(kind: Any, path: str, found: Callable[[str, Any], None]) -> None:
    found(path, kind)
    for name in ("types", "fields"):
        for at, one in enumerate(getattr(kind, name, ())):
            walk(getattr(one, "type", one), f"{path}.{getattr(one, 'name', at)}", found)
    for name in ("item_type", "value_type"):
        if hasattr(kind, name):
            walk(getattr(kind, name), f"{path}[]", found)


def test_every_number_and_text_has_its_bounds() -> None:
    """A field that is added without would be found here."""
    free: list[str] = []

    def look(path: str, kind: Any) -> None:
        if isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType) and (
            kind.le is None or kind.ge is kind.gt is None
        ):
            free.append(path)
        if isinstance(kind, msgspec.inspect.StrType) and kind.max_length is None:
            free.append(path)

    for operation in OPERATIONS:
        walk(fields(operation), operation, look)
        assert typing.get_type_hints(OPERATIONS[operation].request), operation  # what the documents are made from
    assert free == []
