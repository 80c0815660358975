"""Hashes of short texts: the same as `hashlib`'s, without OpenSSL, which takes ms to read in.

For what is hashed in great amounts `hashlib` is faster, by a few times.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["blake2b", "sha256"]

if TYPE_CHECKING:
    from hashlib import blake2b, sha256
else:
    try:  # CPython's own; another Python has the module of everybody
        from _blake2 import blake2b

        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:
        from hashlib import blake2b, sha256
