"""The frames between a worker process and its asker: a frame is its length (four bytes, big-endian)
and its body. Both ends import this."""

from __future__ import annotations

import struct

HEAD = struct.Struct(">I")


def frame(body: bytes) -> bytes:
    """Return a body with its head."""
    return HEAD.pack(len(body)) + body
