"""Every exception of the package goes from one process to another: one that did not would end a whole pool."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import coordinator
from coordinator.frameworks.postponing import StepPostponed
from coordinator.words.refusals import Code, Refusal

REFUSAL = Refusal(Code.LOCKED, "a.py is leased by bob.", next="Wait.", holder="bob", conflicts=[{"holder": "bob"}])
#: A value of each type that a constructor asks for, by what its annotation begins with.
SAMPLES: dict[str, Any] = {"str": "a", "int": 1, "bytes": b"a", "Refusal": REFUSAL, "Sequence": ["a"], "Collection": ["a"], "list": ["a"], "dict": {"a": 1}, "Code": Code.LOCKED}


def exceptions() -> list[type[BaseException]]:
    found: set[type[BaseException]] = set()
    for module in pkgutil.walk_packages(coordinator.__path__, "coordinator."):
        if module.name.endswith("__main__") or ".plugins." in module.name:
            continue  # (a plugin runs in another program)
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:
            assert module.name.startswith("coordinator.frameworks."), module.name  # its SDK is not installed
            continue
        found |= {one for one in vars(loaded).values() if isinstance(one, type) and issubclass(one, BaseException)
                  and one.__module__ == module.name}
    return sorted(found, key=lambda one: f"{one.__module__}.{one.__qualname__}")


def sample(kind: type[BaseException]) -> BaseException:
    if kind.__init__ in (Exception.__init__, BaseException.__init__) or "__init__" not in {
            name for base in kind.__mro__ if base.__module__.startswith("coordinator") for name in vars(base)}:
        return kind("why", 3)
    given = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            given[name] = next(value for begins, value in SAMPLES.items() if str(parameter.annotation).startswith(begins))
    positional = [given.pop(name) for name, one in inspect.signature(kind).parameters.items()
                  if name in given and one.kind is not one.KEYWORD_ONLY]
    return kind(*positional, **given)


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__qualname__)
def test_it_arrives_as_it_was_raised(kind: type[BaseException]) -> None:
    raised = sample(kind)
    arrived = pickle.loads(pickle.dumps(raised))
    assert type(arrived) is kind and str(arrived) == str(raised) and arrived.args == raised.args
    assert repr(vars(arrived)) == repr(vars(raised))


def postpones() -> None:
    raise StepPostponed(REFUSAL, resources=["key:a"], step="book", arguments={"n": 1})


def test_a_blocked_step_ends_no_pool() -> None:
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(StepPostponed) as met:
            pool.submit(postpones).result(60)
        assert (met.value.holder, met.value.arguments, met.value.refusal.code) == ("bob", {"n": 1}, Code.LOCKED)
        assert pool.submit(abs, -1).result(60) == 1, "the pool goes on"
