"""What goes between a worker process and who asks it: a frame is its length (four bytes,
big-endian) and its body. Both ends import this."""

from __future__ import annotations

import struct

HEAD = struct.Struct(">I")


def frame(body: bytes) -> bytes:
    """A body with its head."""
    return HEAD.pack(len(body)) + body
