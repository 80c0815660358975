"""Runs a program in a sandbox such as coding agents bring along: no Unix sockets, no namespaces of others.

    python sandbox.py PROGRAM [ARGUMENT…]

A seccomp filter, as Claude Code's own sandbox has it, which every kernel lets every user put on. Standard library only: it runs as any user.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

#: Machine -> how the kernel calls it, and its numbers of `socket` and `setns`.
NUMBERS = {"x86_64": (0xC000003E, 41, 308), "aarch64": (0xC00000B7, 198, 268)}
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def confine() -> None:
    """From now on, and in all that comes of this process."""
    machine, new_socket, setns = NUMBERS[platform.machine()]
    steps = b"".join(struct.pack("=HBBI", *step) for step in (
        (LOAD, 0, 0, 4), (IF_EQUAL, 1, 0, machine), (RETURN, 0, 0, ALLOW),
        (LOAD, 0, 0, 0), (IF_EQUAL, 4, 0, setns), (IF_EQUAL, 0, 2, new_socket),
        (LOAD, 0, 0, 16), (IF_EQUAL, 1, 0, socket.AF_UNIX), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    program = Program(len(steps) // 8, steps)
    assert libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0, os.strerror(ctypes.get_errno())


if __name__ == "__main__":
    confine()
    os.execvp(sys.argv[1], sys.argv[1:])
