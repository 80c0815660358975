"""The door of a launch, where a person asks for the conversation of one of its agents.

The door is a Unix socket in the coordinator's state directory, for its user alone. One line of JSON
asks, naming the person and the agent. One line answers how to become that agent, or why not. The
answer holds the agent's token, so it is never written to disk. The asker is identified by its
process id all the time: it becomes the agent. take_over.py decides what happens to the agent.
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

#: How long a new connection may take to send its request (seconds).
ASK_S = 2.0
#: The longest line, in bytes; an answer carries an environment.
LINE_BYTES_MAX = 4 << 20
#: The variables of a person's terminal. All others are the agent's own, from the launch: no other
#: shell of that person may have them.
TERMINAL = frozenset({
    "TERM", "COLORTERM", "COLORFGBG", "TERMINFO", "TERMINFO_DIRS", "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "VTE_VERSION", "WINDOWID", "TMUX", "TMUX_PANE",
    "STY", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "LANG", "LANGUAGE", "EDITOR", "VISUAL",
    "PAGER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SSH_TTY", "SSH_CONNECTION", "SSH_CLIENT",
    "SSH_AUTH_SOCK",
})


class Wish(msgspec.Struct, forbid_unknown_fields=True):
    """The request of the process `pid` to become this agent."""

    agent: str
    pid: int


class Role(msgspec.Struct, kw_only=True):
    """How to become an agent: its command, its place, and its environment (except `TERMINAL`).
    `lands`: whether its work lands from a worktree when it ends by itself."""

    argv: list[str]
    env: dict[str, str]
    place: str
    task: str
    title: str
    lands: bool


class Answer(msgspec.Struct, kw_only=True):
    """The answer to a request: the role, or the refusal."""

    role: Role | None = None
    refusal: dict[str, Any] | None = None


class Visitor:
    """A person's process that has asked for an agent, and waits for the answer."""

    def __init__(self, link: socket.socket, process: AtTerminal) -> None:
        self._link = link
        self.process = process

    def waits(self) -> bool:
        """Whether its process still runs."""
        return self.process.lives()

    def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal. The visitor continues without the agent."""
        self._answer(Answer(refusal=refusal.body()))

    def welcome(self, role: Role) -> None:
        """Answer with the role: the visitor becomes the agent, or ends if it missed the answer."""
        self._answer(Answer(role=role))

    def _answer(self, answer: Answer) -> None:
        with self._link, contextlib.suppress(OSError):
            self._link.sendall(msgspec.json.encode(answer) + b"\n")


class Door:
    """The door of one launch. `ask` gets the wanted agent and the visitor, in the door's thread. It
    answers the visitor, at once or later, or raises the refusal."""

    def __init__(self, state: Path, coordinator: str,
                 ask: Callable[[str, Visitor], None]) -> None:
        """Open it, in the folder `state`. `coordinator`: the socket that agents are started with.

        Raises:
            OSError: no door can be opened here.
            Refusal: FOREIGN: its folder is another user's.
        """
        self.path = _choose_place(state)
        self._ask, self._coordinator = ask, coordinator
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self.path.unlink(missing_ok=True)  # of an earlier launch with our process id
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
                self._answer_request(link)
            except (OSError, ValueError):  # no valid request
                link.close()

    def _answer_request(self, link: socket.socket) -> None:
        peer_id = peer(link)
        if peer_id is not None and peer_id[1] not in (ownership.user(), 0):
            raise OSError("another user")
        link.settimeout(ASK_S)
        wish = msgspec.json.decode(_read_line(link), type=Wish)
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


def send_request(path: Path, agent: str) -> socket.socket:
    """Ask a launch, at its door, that this process may become `agent`. Return the connection for
    the answer (`read_answer`).

    Raises:
        Refusal: BAD_TRANSITION: the launch does not answer; FOREIGN.
    """
    link = socket.socket(socket.AF_UNIX)
    try:
        check_socket(path)
        link.connect(str(path))
        link.sendall(msgspec.json.encode(Wish(agent, os.getpid())) + b"\n")
    except OSError:
        link.close()
        raise _no_launch(agent) from None
    except Refusal:
        link.close()
        raise
    return link


def read_answer(link: socket.socket, agent: str) -> Role:
    """Wait for the answer, and return the agent's role.

    Raises:
        Refusal: the launch's; or BAD_TRANSITION: the launch ended before it answered.
    """
    try:
        answer = msgspec.json.decode(_read_line(link), type=Answer)
    except (OSError, ValueError):
        raise _no_launch(agent) from None
    if answer.role is None:
        raise Refusal.from_body(answer.refusal or {})
    return answer.role


def terminal_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the terminal's variables of this environment."""
    return {name: value for name, value in environment.items() if _is_of_terminal(name)}


def without_terminal(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this environment that are not the terminal's."""
    return {name: value for name, value in environment.items() if not _is_of_terminal(name)}


def _is_of_terminal(name: str) -> bool:
    return name in TERMINAL or name.startswith("LC_")


def _no_launch(agent: str) -> Refusal:
    return Refusal(
        Code.BAD_TRANSITION, f"The launch of {agent} ended, or does not answer; nothing was taken "
        "over.", next="`coord agents` shows who is there.",
    )


def _read_line(link: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        piece = link.recv(65536)
        if not piece or len(data) > LINE_BYTES_MAX:
            raise OSError("no whole line")
        data += piece
    return data


def _choose_place(state: Path) -> Path:
    """Return the door's path in the coordinator's state, or in the user's own folder if too long.

    Raises:
        OSError: all paths are too long, or their folders cannot be made.
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
