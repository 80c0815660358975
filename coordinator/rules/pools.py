"""Pools of the environment's values: how they are set, named, leased and handed to programs.

A pool has a name and values. An agent that is given a value has an exclusive lease on the key
`key:pool:NAME:VALUE`. A task that needs any value of a pool has the resource `key:pool:NAME`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from coordinator.words.resource_names import Resource, resource
from coordinator.words.texts import counted

#: Begins the keys of pools.
KEY = "key:pool:"
#: Begins the scopes of those keys.
_SCOPE = "k/key/pool/"
#: The most values of a pool, and the most pools.
VALUES_MAX, POOLS_MAX = 1_000, 100
PORT_MAX = 65_535
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
#: Variables that name a port, a database or a device. By any other a program may be led to load
#: something, as by PATH or PYTHONPATH.
_HARMLESS = re.compile(r"(?:[A-Z0-9_]*_)?(?:PORT|SERIAL|(?:DATABASE|DB)(?:_NAME|_URL)?)")
#: The commands of a pool, in the order in which they run.
COMMANDS = ("create", "reset", "drop")


class Pool(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A pool, as a section `[pools.NAME]` of `coord.toml` sets it."""

    values: str | list[str | int]
    """A range of numbers ("5170-5199"), several with commas between them, or a list."""
    env: str
    """The environment variable that a program finds its value in."""
    template: str = "{value}"
    """The variable's text, with `{value}` for the value."""
    kind: Literal["port", "plain"] | None = None
    """`port`: a value that a program listens on is passed over. Default: of a range of numbers."""
    session: bool = False
    """Whether each session of `coord run` and of a shim is given a value."""
    create: str = ""
    """For `sh -c`, before a program begins that was given a value; it may be there already."""
    reset: str = ""
    """The same, after `create`."""
    drop: str = ""
    """The same, just before the value is given back."""

    @property
    def is_of_ports(self) -> bool:
        """Whether its values are ports of this machine."""
        if self.kind is not None:
            return self.kind == "port"
        return isinstance(self.values, str) and bool(_RANGE.search(self.values))

    def describe(self) -> str:
        """What it has and what it is for, in a sentence."""
        commands = ", ".join(name for name in COMMANDS if getattr(self, name))
        return (f"{counted(len(self.list_values()), 'value')} for {self.env}"
                f"{', one of them for each session' if self.session else ''}"
                f"{f', with commands to {commands} it' if commands else ''}")

    def list_values(self) -> list[str]:
        """Its values in their order, each once; at most one more than `VALUES_MAX`."""
        parts = self.values.split(",") if isinstance(self.values, str) else self.values
        values: dict[str, None] = {}
        for part in parts:
            text = str(part).strip()
            match = _RANGE.fullmatch(text) if isinstance(self.values, str) else None
            for value in _count(match) if match is not None else [text]:
                values[value] = None
                if len(values) > VALUES_MAX:
                    return list(values)
        return list(values)

    def fill_in(self, value: str) -> str:
        """The text of its variable for a value."""
        return self.template.replace("{value}", value)


def _count(match: re.Match[str]) -> Iterator[str]:
    return map(str, range(int(match[1]), int(match[2]) + 1))


def find_mistakes(pools: Mapping[str, Pool]) -> Iterator[str]:
    """Sentences, without their full stop, on what of these pools cannot be."""
    if len(pools) > POOLS_MAX:
        yield f"there are {len(pools)} pools; {POOLS_MAX} are the most"
    variables: dict[str, str] = {}
    for name, pool in pools.items():
        if not _NAME.fullmatch(name):
            yield (f"{name[:60]!r} cannot be a pool's name: 1 to 40 lower-case letters, digits, "
                   "`_` and `-`, a letter first")
        yield from _find_mistakes_of(name, pool)
        other = variables.setdefault(pool.env, name)
        if other != name:
            yield (f"`pools.{name}.env` is {pool.env!r}, as of the pool {other}: a program could "
                   "have one of both only")


def _find_mistakes_of(name: str, pool: Pool) -> Iterator[str]:
    values = pool.list_values()
    if not values or values == [""]:
        yield f"`pools.{name}.values` is empty"
    elif len(values) > VALUES_MAX:
        yield f"`pools.{name}.values` has more than {VALUES_MAX:,} values"
    else:
        yield from _find_bad_value(name, pool.is_of_ports, values)
    if not _VARIABLE.fullmatch(pool.env) or pool.env.startswith("COORD_"):
        yield f"`pools.{name}.env` is {pool.env[:60]!r}, which cannot be its variable"
    if "{value}" not in pool.template:
        yield f"`pools.{name}.template` has no {{value}} in it: all values would be one"
    elif not pool.template.isprintable():
        yield f"`pools.{name}.template` has characters that cannot be printed"


def _find_bad_value(name: str, are_ports: bool, values: Sequence[str]) -> Iterator[str]:
    bad = next((value for value in values if not _VALUE.fullmatch(value)), None)
    if bad is not None:
        yield (f"`pools.{name}.values` has {bad[:60]!r} in it: a value has 1 to 100 letters, "
               "digits, `.`, `_` and `-`, a letter or digit first")
    elif are_ports and not all(map(_is_port, values)):
        bad = next(value for value in values if not _is_port(value))
        yield f"`pools.{name}.values` has {bad[:60]!r} in it, which is no port (1-{PORT_MAX})"


def _is_port(value: str) -> bool:
    return value.isdecimal() and value == str(int(value)) and 1 <= int(value) <= PORT_MAX


def find_weakness(pool: Any) -> str:
    """What follows from a raw pool that counts only once a person has trusted it; empty: it may
    come from anybody."""
    if not isinstance(pool, dict):
        return ""
    if any(str(pool.get(command) or "").strip() for command in COMMANDS):
        return "coord runs its commands"
    env = pool.get("env")
    harmless = not isinstance(env, str) or _HARMLESS.fullmatch(env)
    return "" if harmless else f"programs of agents get the variable {env}"


# ------------------------------------------------------------ the names of its keys


def name_need(name: str) -> Resource:
    """The resource of a task that needs a value of this pool."""
    return resource(f"{KEY}{name}", "key")


def name_value(name: str, value: str) -> Resource:
    """The resource that the holder of a value has a lease on."""
    return resource(f"{KEY}{name}:{value}", "key")


def read_need(name: str, mode: str = "exclusive") -> str | None:
    """The pool of which a task with this resource needs any value; None if it is another one."""
    pool = name.removeprefix(KEY)
    return pool if pool != name and ":" not in pool and mode == "exclusive" else None


def read_value(name: str) -> tuple[str, str] | None:
    """The pool and the value that a resource's name means; None if it is another one."""
    pool, colon, value = name.removeprefix(KEY).partition(":")
    return (pool, value) if colon and name.startswith(KEY) and ":" not in value else None


def list_needs(resources: Iterable[tuple[str, str]]) -> list[str]:
    """The pools of which a task with these resources (name, mode) needs a value."""
    return [pool for name, mode in resources if (pool := read_need(name, mode)) is not None]


def list_freed(scope: str) -> tuple[str, ...]:
    """The scopes on which tasks may wait for the end of a lease on this one: itself, and the whole
    pool of a value."""
    pool = "/".join(scope.split("/", 4)[:4]) + "/"
    return (scope, pool) if scope.startswith(_SCOPE) and scope != pool else (scope,)


def find_barrier(scope: str, wanted: Sequence[Resource]) -> str:
    """The scope that a task is parked on which met this one held: the pool's, where it wants a
    value of that, for any other value would do."""
    pool = list_freed(scope)[-1]
    return pool if any(pool in list_freed(asked.scope) for asked in wanted) else scope
