"""The requests of the coordinator and their replies: one shape each, for every door.

A `Request[R]` names its operation, whether it writes, and its HTTP method and path. `R` is the
shape of its reply. The decoder refuses unknown fields and wrong types (INVALID). Durations are
seconds (`*_s`), instants UTC ISO-8601 text, sizes bytes. No rule is here.

The kernel's shapes are modules of this folder. A slice has its own in `slices/NAME/requests.py`. A
module is imported when one of its shapes is first used, because a command needs few of them and all
take a third of its time. The table says where each is (`make docs` writes it).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coordinator.words.requests.table import MODULES

if TYPE_CHECKING:
    from coordinator.words.requests.table import *  # noqa: F403 - each is named there

_MODULE_OF = {name: module for module, names in MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """A shape, at its first use (PEP 562)."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    shape = globals()[name] = getattr(import_module(module), name)
    return shape


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
