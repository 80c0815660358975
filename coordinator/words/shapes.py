"""Reading JSON as the types of the words, by several threads at once.

msgspec works out what a type is made of when it is first read, and keeps that with the type. If two
threads read a type for the first time at the same moment, the process ends with a segmentation
fault (msgspec 0.22). So types are worked out here one after the other. A program that reads in one
thread alone does not need this.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
#: Held while a type is worked out; its own in a child that was forked in that moment.
_lock = threading.RLock()
_readers: dict[Any, Callable[[bytes], Any]] = {}


def _forked() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_forked)


def read(raw: bytes, shape: type[T]) -> T:
    """JSON as a value of this type.

    Raises:
        msgspec.ValidationError, msgspec.DecodeError: it is none.
    """
    reader = _readers.get(shape)
    if reader is None:
        with _lock:
            reader = _readers[shape] = msgspec.json.Decoder(shape).decode
    value: T = reader(raw)
    return value


def convert(value: Any, shape: type[T], *, strict: bool = True) -> T:
    """Built-in values (of a file of settings) as a value of this type.

    Raises:
        msgspec.ValidationError: they are none.
    """
    with _lock:
        return msgspec.convert(value, shape, strict=strict)
