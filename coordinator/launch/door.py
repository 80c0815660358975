"""The door of a launch, where a person asks for the conversation of one of its agents.

The door is a Unix socket in the coordinator's state directory, for its user alone. One line of JSON
asks, naming the person and the agent. One line answers how to become that agent, or why not. The
answer holds the agent's token, so it is never written to disk. The process of the asker identifies
the request from its first word to its end. take_over.py decides what is done with an agent.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from coordinator.client.locating import peer
from coordinator.files import ownership
from coordinator.files.state import SOCKET_PATH_MAX, check_socket
from coordinator.launch.at_terminal import AtTerminal
from coordinator.words.refusals import Code, Refusal

#: How long a new connection may take to send its wish (seconds).
ASK_S = 2.0
#: The longest line, in bytes; an answer carries an environment.
LINE_BYTES_MAX = 4 << 20
#: The variables of a person's terminal. All else in the environment is the agent's own, from the
#: launch: no other shell of that person may have it.
TERMINAL = frozenset({
    "TERM", "COLORTERM", "COLORFGBG", "TERMINFO", "TERMINFO_DIRS", "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "VTE_VERSION", "WINDOWID", "TMUX", "TMUX_PANE",
    "STY", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "LANG", "LANGUAGE", "EDITOR", "VISUAL",
    "PAGER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SSH_TTY", "SSH_CONNECTION", "SSH_CLIENT",
    "SSH_AUTH_SOCK",
})


class Wish(msgspec.Struct, forbid_unknown_fields=True):
    """The wish to be this agent, by the process with this number."""

    agent: str
    pid: int


class Role(msgspec.Struct, kw_only=True):
    """How to become an agent: its command, its place, and its environment (except `TERMINAL`).
    `lands`: its work lands from a worktree when it ends by itself."""

    argv: list[str]
    env: dict[str, str]
    place: str
    task: str
    title: str
    lands: bool


class Answer(msgspec.Struct, kw_only=True):
    """One of the two."""

    role: Role | None = None
    refusal: dict[str, Any] | None = None


class Visitor:
    """A person's process that has asked for an agent, and waits for the answer."""

    def __init__(self, link: socket.socket, process: AtTerminal) -> None:
        self._link = link
        self.process = process

    def waits(self) -> bool:
        """Whether it is still there to be answered."""
        return self.process.lives()

    def refuse(self, refusal: Refusal) -> None:
        """Say why not; the visitor continues without the agent."""
        self._answer(Answer(refusal=refusal.body()))

    def welcome(self, role: Role) -> None:
        """Let it become the agent. Whether it got the answer shows in whether it lives on."""
        self._answer(Answer(role=role))

    def _answer(self, answer: Answer) -> None:
        with self._link, contextlib.suppress(OSError):
            self._link.sendall(msgspec.json.encode(answer) + b"\n")


class Door:
    """The door of one launch. `ask` gets the visitor and the wanted agent, in a thread of its own.
    It answers by the visitor, at once or later, or raises the refusal."""

    def __init__(self, state: Path, coordinator: str,
                 ask: Callable[[str, Visitor], None]) -> None:
        """Open it, in the folder `state`. `coordinator`: the socket that agents are started with.

        Raises:
            OSError: there can be none here.
            Refusal: FOREIGN: its folder is another user's.
        """
        self.path = _place(state)
        self._ask, self._coordinator = ask, coordinator
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self.path.unlink(missing_ok=True)  # of one that died, and had our number
            self._socket.bind(str(self.path))
            self.path.chmod(0o600)
            self._socket.listen(16)
        except OSError:
            self._socket.close()
            raise
        threading.Thread(target=self._serve, name="coord-door", daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return  # it was closed
            try:
                self._hear(link)
            except (OSError, ValueError):  # who says nothing that is understood
                link.close()

    def _hear(self, link: socket.socket) -> None:
        peer_id = peer(link)
        if peer_id is not None and peer_id[1] not in (ownership.user(), 0):
            raise OSError("another user")
        link.settimeout(ASK_S)
        wish = msgspec.json.decode(_line(link), type=Wish)
        visitor = Visitor(link, AtTerminal.found(wish.pid, wish.agent, self._coordinator))
        try:
            if not visitor.waits():
                raise Refusal(
                    Code.INVALID, f"The launch cannot see process {wish.pid}, so it could not "
                    "tell when you leave. The agent goes on.",
                    next="Ask from where the launch runs, not from a container beside it.",
                )
            self._ask(wish.agent, visitor)
        except Refusal as refusal:
            visitor.refuse(refusal)


def knock(path: Path, agent: str) -> socket.socket:
    """Ask a launch, at its door, that this process may become `agent`. The connection on which the
    answer comes (`heard`).

    Raises:
        Refusal: BAD_TRANSITION: it does not answer; FOREIGN.
    """
    link = socket.socket(socket.AF_UNIX)
    try:
        check_socket(path)
        link.connect(str(path))
        link.sendall(msgspec.json.encode(Wish(agent, os.getpid())) + b"\n")
    except OSError:
        link.close()
        raise _closed(agent) from None
    except Refusal:
        link.close()
        raise
    return link


def heard(link: socket.socket, agent: str) -> Role:
    """Wait for the answer.

    Raises:
        Refusal: the launch's; or BAD_TRANSITION: it ended before it answered.
    """
    try:
        answer = msgspec.json.decode(_line(link), type=Answer)
    except (OSError, ValueError):
        raise _closed(agent) from None
    if answer.role is None:
        raise Refusal.from_body(answer.refusal or {})
    return answer.role


def terminal_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the terminal in this environment."""
    return {name: value for name, value in environment.items() if _tells_of_it(name)}


def without_terminal(environment: Mapping[str, str]) -> dict[str, str]:
    """The rest of it."""
    return {name: value for name, value in environment.items() if not _tells_of_it(name)}


def _tells_of_it(name: str) -> bool:
    return name in TERMINAL or name.startswith("LC_")


def _closed(agent: str) -> Refusal:
    return Refusal(
        Code.BAD_TRANSITION, f"The launch of {agent} ended, or does not answer; nothing was taken "
        "over.", next="`coord agents` shows who is there.",
    )


def _line(link: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        piece = link.recv(65536)
        if not piece or len(data) > LINE_BYTES_MAX:
            raise OSError("no whole line")
        data += piece
    return data


def _place(state: Path) -> Path:
    """The place in the coordinator's state. If that path is too long for a socket, a folder of the
    user's own.

    Raises:
        OSError: all of them are too long, or cannot be made.
        Refusal: FOREIGN.
    """
    name = f"door-{os.getpid()}"
    inside = state / name
    if _fits(inside):
        return inside
    named = f"{hashlib.sha256(os.fsencode(state)).hexdigest()[:12]}.{name}"
    outside = [ownership.temporary_folder(), ownership.state_folder(), ownership.home_folder()]
    for folder in outside:
        if _fits(folder / named):
            ownership.make_folder(folder)
            return folder / named
    raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(inside))


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= SOCKET_PATH_MAX
