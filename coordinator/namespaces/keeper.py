"""The process that keeps the namespaces of a user's sessions: `python -P -m …keeper SOCKET TELL`.

Each user has one, started outside of all sessions. For an ordinary user it lives in a user
namespace of its own, in which it has the power over mounts that its sessions lack. It mounts what
the plan says, again when a file is replaced, and tells the daemons when a session's first process
has ended. It decides nothing: each root's daemon says who holds what. It stays while there is a
session. If a daemon goes away, its files stay mounted until the next daemon says otherwise.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from coordinator.namespaces import kernel
from coordinator.namespaces.mounts import ABSENT, Session, gap
from coordinator.namespaces.orders import LEFT_MAX, LINE_BYTES_MAX
from coordinator.namespaces.plan import Plan
from coordinator.namespaces.watches import Watches

log = logging.getLogger("coord.namespaces")
#: How long it stays without a session, and how often it looks for remaining processes (seconds).
STAYS_S, LOOKS_S = 30.0, 2.0
#: How long an unused session is kept (seconds).
UNENTERED_S = 60.0
#: Asks for the namespace around one (ioctl_nsfs(2)).
_NS_GET_PARENT = 0xB702


@dataclass(eq=False)
class Link:
    """One connection. `root`: of the daemon at its other end."""

    socket: socket.socket
    #: Whether the process at the other end is in a session: its own mounts are not its business.
    inside: bool
    root: str | None = None
    data: bytes = b""
    #: What the orders before the last of several hold.
    held: dict[str, Any] = field(default_factory=dict)


@dataclass
class Kept:
    """A session, and the facts about its processes."""

    session: Session
    root: str
    #: Whether its agent ends with it.
    ends: bool
    #: Of its first process; None before that has entered, and after it has ended.
    process: int | None = None
    entered: bool = False
    #: Processes that have entered, whose user namespace was not seen yet; and those that were.
    came: set[int] = field(default_factory=set)
    users: set[int] = field(default_factory=set)
    #: Whether git asks in it before it changes more than the files that it names.
    asks: bool = False
    #: Whether an agent's commands enter it one by one: then it has no first process.
    joins: bool = False
    made_at: float = field(default_factory=time.monotonic)

    @property
    def lives(self) -> bool:
        """Whether its agent may still come, or is there."""
        return self.joins or not self.entered or self.process is not None


class Keeper:
    """Runs everything in one thread, because the whole process enters a namespace."""

    def __init__(self, door: socket.socket, outside: int, origin: int) -> None:
        self._door = door
        #: The user namespace that the keeper was started in; each process in a session is in
        #: another.
        self._origin = origin
        self._outside = outside
        self._selector = selectors.DefaultSelector()
        self._plan = Plan()
        self._watches = Watches()
        self._sessions: dict[str, Kept] = {}
        self._links: set[Link] = set()
        self._own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self._around = (os.open("/proc/self/ns/user", os.O_RDONLY | os.O_CLOEXEC)
                        if kernel.namespace_of(os.getpid(), "user") != origin else -1)
        self._needed_at = time.monotonic()
        self._looked_at = 0.0
        self._ways: dict[str, Callable[[Link, dict[str, Any]], dict[str, Any]]] = {
            "hold": self._hold, "session": self._session, "sessions": self._list,
            "start": self._start,
        }

    def run(self) -> None:
        """Serve until there has been no session for a while."""
        self._selector.register(self._door, selectors.EVENT_READ, self._accept)
        self._selector.register(self._watches.descriptor, selectors.EVENT_READ, self._replaced)
        while self._is_needed():
            for key, _ in self._selector.select(LOOKS_S):
                try:
                    key.data()
                except Exception:  # one of them must not end the sessions of the others
                    log.exception("an order failed")
            if time.monotonic() - self._looked_at >= LOOKS_S:
                self._looked_at = time.monotonic()
                self._note_users()
                self._forget_empty()

    def _is_needed(self) -> bool:
        now = time.monotonic()
        if self._sessions:
            self._needed_at = now
        return now - self._needed_at < STAYS_S

    # ------------------------------------------------------------ orders

    def _accept(self) -> None:
        made, _ = self._door.accept()
        made.settimeout(5)
        pid, uid = _peer(made)
        if uid != os.getuid():
            made.close()
            return
        link = Link(made, self._is_inside(pid))
        self._links.add(link)
        if not link.inside:
            self._needed_at = time.monotonic()  # it is about to ask for a session
        self._selector.register(made, selectors.EVENT_READ, lambda: self._read(link))

    def _read(self, link: Link) -> None:
        try:
            piece = link.socket.recv(1 << 16)
        except OSError:
            piece = b""
        link.data += piece
        if not piece or len(link.data) > LINE_BYTES_MAX:
            self._hang_up(link)
            return
        while b"\n" in link.data:
            line, _, link.data = link.data.partition(b"\n")
            self._serve(link, line)

    def _serve(self, link: Link, line: bytes) -> None:
        order: dict[str, Any] = {}
        descriptors: list[int] = []
        try:
            order = json.loads(line)
            if link.inside and order["do"] != "start":
                answer = {"error": "its keeper serves nobody who is in a session already",
                          "inside": True}
            elif order["do"] == "enter":
                answer, descriptors = self._enter(link, order)
            else:
                answer = self._ways[order["do"]](link, order)
        except OSError as bad:
            answer = {"error": bad.strerror or str(bad)}
        except (KeyError, TypeError, ValueError) as bad:
            answer = {"error": f"an order that is not understood ({type(bad).__name__})"}
        self._tell(link, {"n": order.get("n"), **answer}, descriptors)

    def _tell(self, link: Link, fields: dict[str, Any],
              descriptors: list[int] | None = None) -> None:
        try:
            line = json.dumps(fields).encode() + b"\n"
            if descriptors:
                socket.send_fds(link.socket, [line], descriptors)
            else:
                link.socket.sendall(line)
        except OSError:
            self._hang_up(link)

    def _hang_up(self, link: Link) -> None:
        if link in self._links:
            self._links.discard(link)
            self._selector.unregister(link.socket)
            link.socket.close()

    def _hold(self, link: Link, order: dict[str, Any]) -> dict[str, Any]:
        root = link.root = str(order["root"])
        link.held |= order["held"]
        if order.get("more"):
            return {"left": {}}
        fields, link.held = link.held, {}
        held, wide = {}, set()
        for path, writers in fields.items():
            name = path.rstrip("/")
            if name != path:
                wide.add(name)
            held[name] = None if writers is None else frozenset(writers)
        if order.get("all"):
            changed = self._plan.replace(
                root, {path: who for path, who in held.items() if who is not None})
            wide = changed
        else:
            changed = self._plan.change(root, held)
        if not self._sessions:
            return {"left": {}}
        left = self._apply(self._plan.below(wide) | changed if wide else changed)
        return {"left": self._list_uncovered(root, left)}

    def _session(self, link: Link, order: dict[str, Any]) -> dict[str, Any]:
        key, root, agent = str(order["key"]), str(order["root"]), str(order["agent"])
        link.root = root
        if key not in self._sessions:
            made = Session(key, {root: agent}, tuple(order.get("own", ())))
            made.make()
            kept = Kept(made, root, bool(order["ends"]), joins=bool(order.get("joins")))
            kept.asks = self._cover(made, order.get("programs", []))
            self._sessions[key] = kept
            self._watches.add(self._plan.paths())
            left = self._apply(set(self._plan.paths()), [self._sessions[key]])
            return {"left": self._list_uncovered(root, left)}
        return {"left": {}}

    def _list_uncovered(self, root: str, left: dict[str, str]) -> dict[str, str]:
        """What a root's daemon is told is not covered: its own existing paths, some of them if
        there are very many."""
        own = ((path, why) for path, why in left.items()
               if why != ABSENT and self._plan.is_held(root, path))
        return dict(islice(own, LEFT_MAX))

    def _cover(self, session: Session, programs: list[list[str]]) -> bool:
        """Put what asks before it in the place of each of these programs; whether that was done."""
        if not programs:
            return False
        try:
            kernel.enter(session.namespace, kernel.CLONE_NEWNS)
            for program, folder in programs:
                session.cover(program, folder)
            return True
        except OSError as bad:
            log.warning("git does not ask in a session: %s", bad)
            return False
        finally:
            kernel.enter(self._own, kernel.CLONE_NEWNS)

    def _start(self, link: Link, order: dict[str, Any]) -> dict[str, Any]:
        """A coordinator for a root, outside of all sessions: one that an agent's hook starts would
        be in its session, without power over the others."""
        root = str(order["root"])
        if "\n" in root or not os.path.isdir(f"{root}/.coord"):
            raise OSError(0, "it is not the root of a coordinator")
        os.write(self._outside, os.fsencode(root) + b"\n")
        return {}

    def _list(self, link: Link, order: dict[str, Any]) -> dict[str, Any]:
        root = str(order["root"])
        link.root = root or link.root
        return {"sessions": {
            key: [kept.session.agents[root], kept.lives, kept.session.number, kept.ends, kept.asks,
                  kept.joins]
            for key, kept in self._sessions.items() if kept.root == root}}

    def _enter(self, link: Link, order: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """The descriptors of a session, for the asking process, which becomes its first; or one of
        many, if commands enter it one by one."""
        kept = self._sessions[str(order["key"])]
        pid, _ = _peer(link.socket)
        if kept.entered:
            raise OSError(0, "this session has been entered already")
        kept.came.add(pid)
        if kept.joins:
            kept.made_at = time.monotonic()
        else:
            kept.process = os.pidfd_open(pid)
            kept.entered = True
            key = kept.session.key
            self._selector.register(kept.process, selectors.EVENT_READ, lambda: self._ended(key))
            self._tell_daemon(kept, {"entered": key, "pid": pid})
        around = [self._around] if self._around >= 0 else []
        return {"around": bool(around)}, [*around, kept.session.namespace]

    # ------------------------------------------------------------ mounts

    def _apply(self, paths: set[str], only: list[Kept] | None = None) -> dict[str, str]:
        """Make it so in every session; which paths are not covered, or not wholly, and why."""
        left: dict[str, str] = {}
        covered: dict[str, set[int]] = {}  # path -> the namespaces in which it is read-only
        if not paths:
            return left
        held = set(self._plan.paths())
        self._watches.add(paths & held)
        self._watches.forget(paths - held)
        try:
            for kept in only if only is not None else list(self._sessions.values()):
                session = kept.session
                wanted = {path: self._plan.is_read_only(path, session.agents, session.own)
                          for path in paths}
                todo = [(path, read_only) for path, read_only in sorted(wanted.items())
                        if read_only or path in session.mounted]
                if not todo:
                    continue
                kernel.enter(session.namespace, kernel.CLONE_NEWNS)
                for path, read_only in todo:
                    why = session.keep(path, read_only)
                    if why:
                        left[path] = why
                    elif read_only:
                        covered.setdefault(path, set()).add(session.number)
        finally:
            kernel.enter(self._own, kernel.CLONE_NEWNS)
        for path in covered.keys() - left.keys():
            if why := gap(path, covered[path]):
                left[path] = why
        return left

    def _replaced(self) -> None:
        self._apply(self._watches.changed())

    # ------------------------------------------------------------ ends

    def _ended(self, key: str) -> None:
        """Note that the first process of a session has ended; others may continue in it."""
        kept = self._sessions[key]
        assert kept.process is not None, "it is what was registered"
        self._selector.unregister(kept.process)
        os.close(kept.process)
        kept.process = None
        self._tell_end(key)
        self._forget_empty()

    def _tell_end(self, key: str) -> None:
        kept = self._sessions[key]
        self._tell_daemon(kept, {"ended": key, "agent": kept.session.agents[kept.root]})

    def _tell_daemon(self, kept: Kept, fields: dict[str, Any]) -> None:
        for link in list(self._links):
            if link.root == kept.root:
                self._tell(link, fields)

    def _forget_empty(self) -> None:
        """Forget sessions without a process, and those that nobody entered for a while."""
        late = time.monotonic() - UNENTERED_S
        over = {kept.session.number: key for key, kept in self._sessions.items()
                if (kept.made_at < late if kept.joins or not kept.entered
                    else kept.process is None)}
        if not over:
            return
        for pid in kernel.processes():
            over.pop(kernel.namespace_of(pid), None)
        for key in over.values():
            if self._sessions[key].lives:
                self._tell_end(key)
            self._forget(key)

    def _forget(self, key: str) -> None:
        kept = self._sessions.pop(key)
        kept.session.close()
        self._tell_daemon(kept, {"gone": key})

    def _is_inside(self, pid: int) -> bool:
        """Whether a process is in a session, or in a namespace that was made in one. An ordinary
        user's keeper has no right to ask about processes outside. Root's has, and there are
        containers."""
        if kernel.namespace_of(pid, "user") in (0, self._origin):
            return False
        if self._around >= 0:
            return True
        self._note_users()
        users = {number for kept in self._sessions.values() for number in kept.users}
        return not users.isdisjoint(_users_above(pid))

    def _note_users(self) -> None:
        """Note the user namespaces of new processes, which make them after they enter. A namespace
        without processes is forgotten, because its number will be another's."""
        for kept in self._sessions.values():
            for pid in list(kept.came):
                number = kernel.namespace_of(pid, "user")
                if number != self._origin:
                    kept.came.discard(pid)
                    kept.users |= {number} - {0}
        several = [kept for kept in self._sessions.values() if kept.joins and kept.users]
        if several:
            alive = {number for pid in kernel.processes()
                     if kernel.namespace_of(pid, "user") not in (0, self._origin)
                     for number in _users_above(pid)}
            for kept in several:
                kept.users &= alive


def _users_above(pid: int) -> set[int]:
    """The user namespaces of a process: its own, and those that this was made in."""
    result = set[int]()
    try:
        descriptor = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return result
    while True:
        result.add(os.fstat(descriptor).st_ino)
        try:
            up = fcntl.ioctl(descriptor, _NS_GET_PARENT)
        except OSError:
            return result
        finally:
            os.close(descriptor)
        descriptor = up


def _peer(link: socket.socket) -> tuple[int, int]:
    raw = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return (int.from_bytes(raw[:4], sys.byteorder), int.from_bytes(raw[4:8], sys.byteorder))


def _take_power() -> None:
    """As an ordinary user: make a user namespace in which this process may mount, and mounts of its
    own, to which it can return."""
    uid, gid = os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny", "ascii")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1", "ascii")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1", "ascii")
    kernel.make_tree_shared()


def _start_outside() -> int:
    """A child that stays who it is, with the mounts that are there, and starts coordinators; where
    their roots are written to."""
    reading, writing = os.pipe()
    if os.fork():
        os.close(reading)
        return writing
    os.close(writing)
    starts: dict[bytes, int] = {}
    with os.fdopen(reading, "rb") as roots:
        for root in roots:
            with contextlib.suppress(OSError):
                # After a crash many ask at once: one start at a time is enough for a root.
                starts = {data: pid for data, pid in starts.items()
                          if os.waitpid(pid, os.WNOHANG) == (0, 0)}
                if root not in starts:
                    starts[root] = os.posix_spawn(
                        sys.executable, [sys.executable, "-P", "-m", "coordinator.cli.main", "up"],
                        {**os.environb, b"COORD_ROOT": root.removesuffix(b"\n")}, setsid=True)
    os._exit(0)


def main() -> int:
    """Exit code of the process; why it could not begin is written to the descriptor TELL."""
    path, tell = Path(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # another one was faster
    os.ftruncate(lock, 0)
    os.write(lock, b"%d" % os.getpid())
    outside, origin = _start_outside(), kernel.namespace_of(os.getpid(), "user")
    try:
        if os.getuid() != 0:
            _take_power()
        probe = Session("", {})
        probe.make()  # it is known before anybody waits for it whether this can be had
        probe.close()
    except OSError as bad:
        with contextlib.suppress(OSError):
            os.write(tell, f"this user may not make one ({bad.strerror or bad})".encode())
        return 1
    with contextlib.suppress(OSError):
        logging.basicConfig(filename=path.with_suffix(".log"), level=logging.INFO,
                            format="%(asctime)s %(levelname)s %(message)s")
    with socket.socket(socket.AF_UNIX) as door:
        try:
            path.unlink(missing_ok=True)
            before = os.umask(0o177)
            door.bind(str(path))
            os.umask(before)
        except OSError as bad:
            os.write(tell, f"{path}: {bad.strerror or bad}".encode())
            return 1
        door.listen(128)
        os.close(tell)
        Keeper(door, outside, origin).run()
        path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
