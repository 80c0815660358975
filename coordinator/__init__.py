"""coord: run several AI coding agents in one repository at once.

`Client` and `AsyncClient` are the Python door; the same operations are behind the `coord` command,
the local socket and HTTP. See `context_archive/` for how it is built. The names below are imported
when they are first used: small programs of this package (a hook, a stand-in agent) start in a few
milliseconds.
"""

from __future__ import annotations

TYPE_CHECKING = False  # (`typing` takes longer to load than the `coord` command itself)
if TYPE_CHECKING:
    from typing import Any

    from coordinator.client.async_client import AsyncClient, AsyncHeld
    from coordinator.client.client import Client, Held, LeaseLost
    from coordinator.words.refusals import Code, Refusal

__all__ = ["AsyncClient", "AsyncHeld", "Client", "Code", "Held", "LeaseLost", "Refusal"]
_HOMES = {
    "AsyncClient": "coordinator.client.async_client",
    "AsyncHeld": "coordinator.client.async_client",
    "Client": "coordinator.client.client", "Held": "coordinator.client.client",
    "LeaseLost": "coordinator.client.client", "Code": "coordinator.words.refusals",
    "Refusal": "coordinator.words.refusals",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
