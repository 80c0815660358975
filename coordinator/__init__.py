"""coord: run several AI coding agents in one repository at once.

`Client` is the Python door; the same operations are behind the `coord` command, the local socket
and HTTP. See `context_archive/` for how it is built.
"""

from coordinator.client.client import Client, Held, LeaseLost
from coordinator.words.refusals import Code, Refusal

__all__ = ["Client", "Code", "Held", "LeaseLost", "Refusal"]
