"""Exceptions that go from one process to another, as a pool's workers hand them on.

Pickle makes an exception anew by calling its class with its `args`, which fails where the class
takes other arguments than those, and then ends the whole pool.
"""

from __future__ import annotations

from typing import Any


class Pickled(BaseException):
    """Base of exceptions with arguments of their own: as they are, they arrive."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self.args, self.__dict__)


def _made(kind: type[BaseException], args: tuple[Any, ...],
          attributes: dict[str, Any]) -> BaseException:
    made = kind.__new__(kind, *args)
    builtin = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    builtin.__init__(made, *args)  # type: ignore[misc]  # (an `OSError` keeps more than its `args`)
    made.__dict__.update(attributes)
    return made
