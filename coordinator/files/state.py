"""`.coord/`: where the coordinator keeps its state, and how clients find its socket.

The module owns the names of the files in it, and the proof that this user's coord has made it. The
secret in it is sealed with a key outside of every repository (ownership.py), and the database is
sealed with that secret. So a `.coord` out of a clone or an archive is refused, and one that was
moved or copied by its own user is taken as it is. The directory ignores itself in git.
"""

# ruff: noqa: PTH111

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from coordinator.files import ownership
from coordinator.files.roots import STATE_DIR, is_everybodys, prepared_above
from coordinator.words.refusals import Code, Refusal

SECRET_BYTES = 32
#: Longest path that a Unix socket address takes, with room for its final NUL.
SOCKET_PATH_MAX = 100

#: Files that earlier versions called `NAME.json`. A formatter that is run over the repository takes
#: a file with that ending for one of the project's own.
NAMED_JSON = ("wired", "guarded", "landing", "processes", "calls", "runs/*/run")


class StateDir(msgspec.Struct, frozen=True):
    """The files of one repository's coordinator."""

    root: Path

    @property
    def path(self) -> Path:
        """The directory itself."""
        return self.root / STATE_DIR

    @property
    def database(self) -> Path:
        """The one truth."""
        return self.path / "coord.sqlite3"

    @property
    def backup(self) -> Path:
        """The newest copy; older ones are `.1`, `.2`."""
        return self.path / "backup.sqlite3"

    @property
    def blobs(self) -> Path:
        """Large contents, one file each, named by the SHA-256 of their bytes."""
        return self.path / "blobs"

    @property
    def archive(self) -> Path:
        """The index of the context archive (derived, may be deleted)."""
        return self.path / "archive.sqlite3"

    @property
    def meaning(self) -> Path:
        """The index of what files define and use (derived, may be deleted)."""
        return self.path / "meaning.sqlite3"

    @property
    def lock(self) -> Path:
        """Held (flock) by the one daemon; contains its pid."""
        return self.path / "daemon.lock"

    @property
    def log(self) -> Path:
        """The daemon's log, rotated."""
        return self.path / "daemon.log"

    @property
    def failure(self) -> Path:
        """Why the last start failed, as a refusal's JSON; absent after a good one."""
        return self.path / "start-failed"

    @property
    def errors(self) -> Path:
        """The last daemon's standard output and error."""
        return self.path / "start.err"

    @property
    def secret(self) -> Path:
        """The key that lease tokens are made with, and its seal (0600)."""
        return self.path / "secret"

    @property
    def separate(self) -> Path:
        """Exists if a person has given this folder, inside another coordinator's, one of its own.
        It holds the root of the other."""
        return self.path / "separate"

    @property
    def apart(self) -> Path:
        """The roots below this one that persons have separated from it, a line each."""
        return self.path / "apart"

    @property
    def socket_path(self) -> Path:
        """The place of the socket, for hooks, and for clients with another environment."""
        return self.path / "socket.path"

    @property
    def bearer(self) -> Path:
        """The operator's bearer token for the HTTP door (0600)."""
        return self.path / "token"

    @property
    def webhook_secret(self) -> Path:
        """The secret by which receivers of webhooks know who calls (0600)."""
        return self.path / "webhook-secret"

    @property
    def http(self) -> Path:
        """The HTTP door's address while it is open."""
        return self.path / "http"

    @property
    def http_asked(self) -> Path:
        """The port of the HTTP door that was asked for, until `coord down`."""
        return self.path / "http-asked"

    @property
    def page_key(self) -> Path:
        """The key that pages' tokens are made with, while the HTTP door is open (0600)."""
        return self.path / "page-key"

    @property
    def log_format(self) -> Path:
        """The log form that the running coordinator was started with instead of the setting."""
        return self.path / "log.format"

    @property
    def steps(self) -> Path:
        """The runners of a resumable program's steps, with their tokens (0600)."""
        return self.path / "steps"

    @property
    def runs(self) -> Path:
        """Logs of launched agents."""
        return self.path / "runs"

    @property
    def landing(self) -> Path:
        """Tells of a landing from before the branch moves until its task is done."""
        return self.path / "landing"

    @property
    def processes(self) -> Path:
        """Tells which process each agent's session ends with."""
        return self.path / "processes"

    @property
    def commits(self) -> Path:
        """Tells which agent made which commit."""
        return self.path / "commits"

    @property
    def calls(self) -> Path:
        """Tells which calls of agents' tools run."""
        return self.path / "calls"

    @property
    def guarded(self) -> Path:
        """The git hooks that `coord init` has put its guard into."""
        return self.path / "guarded"

    @property
    def bin(self) -> Path:
        """Holds one program: `coord`, for agents' shells that have none."""
        return self.path / "bin"

    @property
    def worktrees(self) -> Path:
        """Linked worktrees of launched agents, one folder a run."""
        return self.path / "worktrees"

    def socket(self) -> Path:
        """The local door. A long repository path gets a short one in the user's runtime folder."""
        given = os.environ.get("COORD_SOCKET")
        if given:
            return Path(given)
        inside = self.path / "socket"
        if len(os.fsencode(inside)) <= SOCKET_PATH_MAX:
            return inside
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16] + ".sock"
        with suppress(OSError, Refusal):
            # The daemon's own place, which may be from another XDG_RUNTIME_DIR.
            pointer = os.fsdecode(ownership.read(self.socket_path) or b"")
            if pointer.endswith(f"/{name}"):
                return Path(pointer)
        return ownership.temporary_folder() / name

    def create(self, *, asked: bool = True, separate: Path | None = None) -> None:
        """Make the directory, ignoring itself; or see that the one there is this user's own.

        Args:
            asked: a person has named this folder; it is not just where a command was typed.
            separate: the root of the coordinator around, which this one is separated from.

        Raises:
            OSError: no permission, read-only disk, no room.
            Refusal: FOREIGN: it is not this user's own; INVALID: no place for a coordinator.
        """
        if self._made(asked):
            if separate is not None:
                ownership.write(self.separate, os.fsencode(separate))
            elif (above := prepared_above(self.root)) is not None:
                # Two first commands, here and above, at one moment: the later one sees it.
                self.path.rmdir()
                raise _within(self.root, above)
        self.check()
        self.secret_key()
        for name in NAMED_JSON:
            for old in self.path.glob(f"{name}.json"):
                new = old.with_name("record" if old.stem == "run" else old.stem)
                if not new.exists():
                    with suppress(OSError):
                        old.rename(new)
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            ownership.write(ignore, b"*\n")

    def _made(self, asked: bool) -> bool:
        """Whether the directory had to be made."""
        if self.path.exists():
            return False
        root = str(self.root)
        at_home = root == os.path.realpath(os.path.expanduser("~")) and not asked
        if root != "/" and not at_home and is_everybodys(root):
            raise Refusal(
                Code.INVALID, f"Everybody on this machine may write into {root}, as into /tmp, so "
                "it gets no coordinator; nothing was made.",
                next="Go to your repository; or, if this is it: `chmod o-w .`, and repeat.",
            )
        if root == "/" or at_home:
            raise Refusal(
                Code.INVALID, f"{root} holds more than one repository, so it gets no coordinator"
                f"{' by itself' if at_home else ''}; nothing was made.",
                next="Go to your repository" + (", or `coord init` here." if at_home else "."),
            )
        if (self.root / "HEAD").is_file() and (self.root / "objects").is_dir() and (
                self.root / "refs").is_dir():
            raise Refusal(
                Code.INVALID, f"{root} is a bare git repository: no files are worked on there, so "
                "it gets no coordinator; nothing was made.",
                next="Go to a working tree of it: `git worktree list` names them.",
            )
        with suppress(FileExistsError):
            self.path.mkdir(mode=0o700, parents=True)
            return True
        return False

    def secret_key(self) -> bytes:
        """The secret that lease tokens are made with; made in a directory that holds nothing yet.

        Raises:
            OSError.
            Refusal: FOREIGN: the directory was not made by this user's coord.
        """
        data = ownership.read(self.secret)
        if data is None:
            theirs = sorted(
                entry for entry in os.listdir(self.path)
                if entry != ".gitignore" and entry != self.separate.name
                and not entry.startswith(f".{self.secret.name}-")
            )
            data = ownership.read(self.secret)  # another first command may just have made it
            if data is None and theirs:
                raise _not_ours(self, f"holds {theirs[0]}, but no key of this user's")
        if data is None:
            ownership.make_once(self.secret, ownership.sealed(os.urandom(SECRET_BYTES)))
            data = ownership.read(self.secret) or b""
        key = ownership.unsealed(data)
        if key is None:
            raise _not_ours(self, "was not made by your coord (its key lacks your seal)")
        return key

    def next_secret(self) -> bytes:
        """Make the secret that is to come; `renew_secret` puts it in the place of the old one.

        Raises:
            OSError.
        """
        self._next_secret.unlink(missing_ok=True)
        key = os.urandom(SECRET_BYTES)
        ownership.make_once(self._next_secret, ownership.sealed(key))
        return key

    def renew_secret(self) -> None:
        """Make all earlier lease tokens invalid.

        Raises:
            OSError.
        """
        self._next_secret.replace(self.secret)

    @property
    def _next_secret(self) -> Path:
        return self.secret.with_name(f".{self.secret.name}-next")

    def check(self) -> None:
        """Check that everything in the directory is this user's own, and no link.

        Raises:
            OSError.
            Refusal: FOREIGN.
        """
        ownership.check_folder(self.path)
        ownership.check_all(self.path)

    def check_ours(self) -> None:
        """Check that the directory, if there is one, was made by this user's coord.

        Raises:
            OSError.
            Refusal: FOREIGN.
        """
        if os.path.lexists(self.path):
            self.check()
            if os.listdir(self.path):
                self.secret_key()

    def note_socket(self) -> None:
        """Make the folder of the socket, and write its place down.

        Raises:
            OSError.
            Refusal: FOREIGN: that folder is not this user's alone.
        """
        socket = self.socket()
        if socket.parent != self.path:
            ownership.make_folder(socket.parent, _bits(socket))
        ownership.write(self.socket_path, os.fsencode(socket))


def check_socket(path: Path) -> None:
    """Check that a socket and its folder are this user's alone, before a client sends anything.

    Raises:
        FileNotFoundError: there is none; other OSError.
        Refusal: FOREIGN.
    """
    ownership.check_folder(path.parent, _bits(path))
    ownership.check_entry(path, ownership.SOCKET)


def database_seal(secret: bytes) -> str:
    """The mark in the database of the state with this secret."""
    return ownership.seal(b"database", secret, 16).hex()


def _bits(socket: Path) -> int:
    """The rights that others must not have on a socket's folder. A folder named by a person may be
    open to them."""
    named = socket.parent.name != ownership.temporary_name()
    return ownership.OTHERS_WRITE if named else ownership.OTHERS


def _within(root: Path, above: Path) -> Refusal:
    return Refusal(
        Code.INVALID, f"{root} lies within {above}, which has been given a coordinator just now; "
        "nothing was made.", next="Repeat the command: that coordinator serves this folder, too.",
    )


def _not_ours(state: StateDir, why: str) -> Refusal:
    return ownership.foreign(
        state.path, f"{why}: it came with the files, from another machine, or from an older coord",
        next=f"`coord init --adopt` if it is your own; else remove {state.path}.",
    )
