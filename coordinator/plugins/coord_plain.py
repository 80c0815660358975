"""COORD_PLUGIN: one question to the coordinator, for Python agents without hooks of their own.

Imported inside their interpreters, whatever those have installed: standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import uuid
from typing import Any

SESSION = uuid.uuid4().hex
#: How long to wait for an answer (seconds).
PATIENCE_S = 600.0


class Unanswered(OSError):
    """There is no answer: the next write is not guarded."""


def ask(profile: str, event: str, **fields: Any) -> dict[str, Any]:
    """The coordinator's answer: `deny` or `context`, if any.

    Raises:
        Unanswered.
    """
    body = json.dumps({"session_id": SESSION, "cwd": os.getcwd(), **fields}).encode()
    token = os.environ.get("COORD_AGENT_TOKEN") or "-"
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(PATIENCE_S)
            path = _socket()
            _check(path)
            link.connect(path)
            _check_peer(link)
            link.sendall(f"hook {profile}:{event} {token} {len(body)} confirm\n".encode() + body)
            with link.makefile("rb") as answer:
                code, out, err = (int(part) for part in answer.readline().split())
                text, words = answer.read(out), answer.read(err)
            link.sendall(b"told\n")
    except (OSError, ValueError) as bad:
        raise Unanswered(
            f"coord: no coordinator answers ({bad}), so this is stopped. `coord up` starts it."
        ) from None
    if code:
        return {"deny": words.decode("utf-8", "replace")}
    answer_fields = json.loads(text) if text else {}
    return answer_fields if isinstance(answer_fields, dict) else {}


def _check(path: str) -> None:
    """Accept only a socket of this user, in a folder that no one else can write to, because the
    answer may change what the agent does."""
    folder = os.lstat(os.path.dirname(path))
    if folder.st_mode & 0o170022 != 0o040000 or folder.st_uid != os.geteuid():
        raise PermissionError(f"the folder of {path} is not this user's alone")
    if os.lstat(path).st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user")


def _check_peer(link: socket.socket) -> None:
    if hasattr(socket, "SO_PEERCRED"):
        peer = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if int.from_bytes(peer[4:8], sys.byteorder) not in (os.geteuid(), 0):
            raise PermissionError("another user serves it")


def _is_originals(root: str, text: str) -> bool:
    """Whether this is the socket of another root, which this one is a copy of."""
    name = os.path.basename(text)
    if len(name) == 21 and name.endswith(".sock"):
        return name != hashlib.sha256(os.fsencode(root)).hexdigest()[:16] + ".sock"
    return text.endswith("/.coord/socket")


def _socket() -> str:
    given = os.environ.get("COORD_SOCKET")
    if given:
        return given
    folder = os.getcwd()
    while True:
        try:
            with open(os.path.join(folder, ".coord", "socket.path"), "rb") as file:
                text = os.fsdecode(file.read().strip())
            return os.path.join(folder, ".coord", "socket") if _is_originals(folder, text) else text
        except OSError:
            pass
        above = os.path.dirname(folder)
        if above == folder:
            raise FileNotFoundError("no .coord here or above")
        folder = above
