"""What a program gives wrongly is refused before anything is acquired for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coordinator import AsyncClient
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo

WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((["a.py"],), {}, "`resources[0]` must be text, not list"), ((5,), {}, "not int"), ((None,), {}, "not NoneType"), (("x", b"a.py"), {}, "`resources[1]` must be text, not bytes"),
    (("a.py",), {"ttl": None}, "`ttl` must be a number of seconds, not NoneType"), (("a.py",), {"ttl": float("nan")}, "not nan"),
    (("a.py",), {"wait": "5"}, "`wait` must be a number of seconds, not str"), (("a.py",), {"stall": "5"}, "`stall` must be a number"), (("a.py",), {"ttl": True}, "not bool")]


@pytest.mark.parametrize(("names", "more", "said"), WRONG)
def test_a_body_begins_with_nothing_of_it(repo: Repo, names: tuple[Any, ...], more: dict[str, Any], said: str) -> None:
    with repo.client("ann") as client:
        with pytest.raises(Refusal) as refused, client.lease(*names, **more):
            pass
        assert refused.value.code is Code.INVALID and said in refused.value.message
        assert client.locks().items == []

    async def later() -> None:
        async with AsyncClient(repo.root, agent="bob") as client:
            with pytest.raises(Refusal) as refused:
                async with client.lease(*names, **more):
                    pass
            assert refused.value.code is Code.INVALID and said in refused.value.message
            assert (await client.locks()).items == []

    asyncio.run(later())


def test_what_is_awaited_is_looked_at_first(repo: Repo) -> None:
    async def later() -> None:
        async with AsyncClient(repo.root, agent="bob") as client:
            for asked in (client.acquire("z.py", wait="5"), client.claim(wait="5"), client.acquire(b"z.py"),  # type: ignore[arg-type]
                          client.call(rq.Acquire(agent="bob", resources=[["x"]]))):  # type: ignore[list-item]
                with pytest.raises(Refusal) as refused:
                    await asked
                assert refused.value.code is Code.INVALID
            assert (await client.locks()).items == []

    asyncio.run(later())


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(("value", "said"), [(nested(5_000), "it is nested too deeply"), ({"a": object()}, "object")])
def test_a_value_that_is_no_json_is_refused_in_words(repo: Repo, value: Any, said: str) -> None:
    with repo.client("ann") as client:
        for ask in (lambda: client.state_put("key:a", value, version=0), lambda: client.change_add("key:a", value)):
            with pytest.raises(Refusal) as refused:
                ask()
            assert refused.value.code is Code.INVALID and said in refused.value.message and "Nothing was done." in refused.value.message
        assert client.state_list().items == []
