"""How kept bytes stand in the database: as a zlib stream (RFC 1950). Reads and writes nothing."""

from __future__ import annotations

import zlib

#: Contents of more bytes are deflated.
DEFLATED_FROM = 200


def packed(data: bytes) -> bytes:
    """The stream of these bytes. A few of them stand in it as they are, in one stored block
    (RFC 1951, 3.2.4): to deflate them costs more than it saves."""
    size = len(data)
    if size > DEFLATED_FROM:
        return zlib.compress(data, 1)
    return b"".join((b"\x78\x01\x01", size.to_bytes(2, "little"),
                     (size ^ 0xFFFF).to_bytes(2, "little"), data,
                     zlib.adler32(data).to_bytes(4, "big")))
