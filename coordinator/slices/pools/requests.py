"""Asking for values of the environment: ports, databases, devices."""

from __future__ import annotations

from coordinator.words.requests.base import Count, Number, Reply, Request
from coordinator.words.requests.leases import Lease
from coordinator.words.texts import Name


class Environment(Reply):
    """What an agent has of the pools, as its programs are told it."""

    agent: str
    environment: dict[str, str]  # variable -> its text, like PORT -> 5171
    leases: list[Lease]
    new: list[str]  # the pools of which it was given a value just now
    warnings: list[str] = []


class EnvironmentTake(Request[Environment]):
    """Give the agent a value of each named pool, all or none: the one that it has, or a free one.
    Without names: what it has. A value ends with the agent's one task, or its session."""

    op = "env_take"
    http = ("POST", "/v1/environment")
    agent: Name
    pools: list[Name] = []  # names of pools
    ttl_s: Number | None = None


class EnvironmentRelease(Request[Environment]):
    """Give values back: of these pools, or of all. The reply tells what they were."""

    op = "env_release"
    http = ("POST", "/v1/environment/release")
    agent: Name
    pools: list[Name] = []  # names of pools


class PoolValue(Reply):
    pool: str  # the pool's name
    value: str
    text: str  # what a program finds in the variable
    is_port: bool  # it is a port of this machine
    locked_by: str | None = None  # who has it; null: it is free
    locked_at: str | None = None
    expires_at: str | None = None
    task: str | None = None
    description: str = ""
    listened: bool = False  # somebody listens on this port
    pid: int | None = None  # who does; null: nobody, or that cannot be told
    program: str = ""  # the name of that process


class PoolValueList(Reply):
    items: list[PoolValue]
    variables: dict[str, str]  # pool -> its environment variable


class PoolValues(Request[PoolValueList]):
    """The values of pools: who has which, and which ports somebody listens on."""

    op = "pools"
    http = ("GET", "/v1/pools")
    writes = False
    pool: Name | None = None  # only of this one
    limit: Count = 10_000
