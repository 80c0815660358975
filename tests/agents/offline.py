"""Keeping real agents on loopback: they are given keys that no provider knows, and no way out.

Where this process may, it moves into a network namespace that has only `lo`; its children are born
there. Unix sockets work across namespaces, so a daemon started elsewhere can still be reached.
Elsewhere the agents get proxies that lead to a closed port, which those that heed proxies obey.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
DEAD = "http://127.0.0.1:9"  # "discard": nothing listens there
LOOPBACK = "127.0.0.1,localhost,::1"


def cut_off() -> bool:
    """Leave all networks but loopback, for this process and its later children. False: may not."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    if is_cut_off():
        return True
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        request = struct.pack("16sh14x", b"lo", IFF_UP)
        fcntl.ioctl(anything, SIOCSIFFLAGS, request)
    return is_cut_off()


def is_cut_off() -> bool:
    """Whether loopback is all there is."""
    return [name for _, name in socket.if_nameindex()] == ["lo"]


def environment() -> dict[str, str]:
    """What an agent needs in its environment to stay on loopback."""
    if is_cut_off():
        return {}
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    return {**dict.fromkeys(names, DEAD), "NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}
