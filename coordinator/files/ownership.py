"""Files and folders that belong to this user and that nobody else can have put there.

The author of a repository, an archive or a commit can put a `.coord` there, with links to other
files or with a database and a secret of their own. So state is opened without following links, must
belong to this user, and is sealed with a key outside of every repository. The module owns that key
and the checks, and decides nothing about the contents.
"""

# Paths are plain strings here: a client asks this before each connection.
# ruff: noqa: PTH115

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from coordinator.words.file_names import blake2b
from coordinator.words.refusals import Code, Refusal

KEY_BYTES = 32
SOCKET = stat.S_IFSOCK
#: Bits that let others write; and bits that let others do anything at all.
OTHERS_WRITE, OTHERS = 0o022, 0o077


def foreign(path: Path | str, why: str, next: str | None = None) -> Refusal:  # noqa: A002
    """The refusal of a thing that is not this user's own. `why` ends the sentence that names it."""
    return Refusal(Code.FOREIGN, f"{path} {why}. It was left as it is, and nothing of it is used.",
                   next=next)


def user() -> int:
    """The user whose files are ours."""
    return os.geteuid()


def check_folder(path: Path | str, bits: int = OTHERS_WRITE) -> None:
    """Check that this is a folder (no link) of this user's, and that others lack these `bits`.

    Raises:
        FileNotFoundError; other OSError.
        Refusal: FOREIGN.
    """
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        raise foreign(path, f"is a link (to {_target(path)})", next=f"Remove the link {path}.")
    if not stat.S_ISDIR(status.st_mode):
        raise foreign(path, "is no folder", next=f"Move {path} away.")
    if status.st_uid != user():
        raise foreign(path, f"belongs to another user ({name_of(status.st_uid)})",
                      next=f"Run coord as {name_of(status.st_uid)}, or in a repository of your "
                      "own.")
    if status.st_mode & bits:
        raise foreign(path, f"may be changed by others (mode {status.st_mode & 0o777:o})",
                      next=f"chmod {'700' if bits == OTHERS else 'go-w'} {path}")


def check_entry(path: Path | str, *kinds: int) -> None:
    """Check that this belongs to this user and is of one of these kinds (`stat.S_IFREG` …), no
    link.

    Raises:
        FileNotFoundError; other OSError.
        Refusal: FOREIGN.
    """
    _check(path, os.lstat(path), kinds)


def closed(folder: Path | str) -> Refusal:
    """STORAGE: a folder of this user's own that may not be entered."""
    return Refusal(
        Code.STORAGE, f"{folder} is this user's, and may not be entered. Nothing was done.",
        next=f"`chmod 700 {folder}`")


def check_all(folder: Path) -> None:
    """Check everything directly in a folder: files, folders and sockets.

    Raises:
        OSError.
        Refusal: FOREIGN; STORAGE: it may not be entered.
    """
    try:
        for entry in os.scandir(folder):
            with suppress(FileNotFoundError):  # another program has just tidied it away
                check_entry(entry.path, stat.S_IFREG, stat.S_IFDIR, stat.S_IFSOCK)
    except PermissionError:
        raise closed(folder) from None


def open_own(path: Path | str, flags: int) -> int:
    """A descriptor of a regular file of this user's; made with mode 0600 under `O_CREAT`.

    No link is followed, and anything but a regular file is not waited for. Do not ask for
    `O_TRUNC`, which would empty a foreign file before the check.

    Raises:
        OSError.
        Refusal: FOREIGN.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as no:
        if no.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            _check(path, os.lstat(path), (stat.S_IFREG,))
        raise
    try:
        _check(path, os.fstat(descriptor), (stat.S_IFREG,))
    except Refusal:
        os.close(descriptor)
        raise
    return descriptor


def read(path: Path | str, most: int = 1 << 20) -> bytes | None:
    """The content of an own file, up to `most` bytes; None if there is none.

    Raises:
        OSError.
        Refusal: FOREIGN.
    """
    try:
        descriptor = open_own(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)


def write(path: Path | str, data: bytes) -> None:
    """Replace the content of an own file.

    Raises:
        OSError.
        Refusal: FOREIGN.
    """
    with os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate()
        file.write(data)


def make_once(path: Path, data: bytes) -> None:
    """Make an own file whole, with mode 0600 and on the disk, unless there is one already.

    Raises:
        OSError.
    """
    fresh = path.with_name(f".{path.name}-{os.urandom(6).hex()}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        with suppress(OSError):
            os.unlink(fresh)  # noqa: PTH108


def make_folder(path: Path, bits: int = OTHERS_WRITE) -> None:
    """Make a folder that only this user can use, or see that the one there is such a folder.

    Raises:
        OSError.
        Refusal: FOREIGN.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    check_folder(path, bits)


# ------------------------------------------------------------ outside of every repository


def temporary_folder() -> Path:
    """This user's folder below the system's runtime or temporary one: gone after a restart."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if not base:
        import tempfile

        base = tempfile.gettempdir()
    return Path(base) / temporary_name()


def temporary_name() -> str:
    """The name of that folder, wherever it is."""
    return f"coord-{user()}"


def home_folder() -> Path:
    """The folder of what outlives repositories: in the user's own home, whatever `HOME` says.

    A daemon is started from shells, editors and hooks, whose environments differ.
    """
    import pwd

    try:
        home = pwd.getpwuid(user()).pw_dir
    except KeyError:  # a container's user without a name
        home = os.environ.get("HOME", "")
    return Path(home or "/nonexistent") / ".local" / "state" / "coord"


def state_folder() -> Path:
    """The folder of this user's notes: below XDG_STATE_HOME, or in the user's home."""
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base) / "coord" if base else home_folder()


def sealed(data: bytes) -> bytes:
    """`data` with a seal after it that only this user's key can make; the key is made at its first
    use.

    Raises:
        OSError: there is no place for the key.
        Refusal: FOREIGN: such a place is not the user's own.
    """
    return data + _seal(data, next(_keys(), None) or _new_key())


def unsealed(raw: bytes) -> bytes | None:
    """The data that this user has sealed; None if the seal is not this user's."""
    data, seal = raw[:-KEY_BYTES], raw[-KEY_BYTES:]
    return data if data and any(_seal(data, key) == seal for key in _keys()) else None


def seal(data: bytes, key: bytes, size: int) -> bytes:
    """A seal of `size` bytes (at most 64) that only the key's owner can make (BLAKE2b, keyed)."""
    return blake2b(data, key=key, digest_size=size, person=b"coord-state").digest()


def _seal(data: bytes, key: bytes) -> bytes:
    return seal(data, key, KEY_BYTES)


def _places() -> Iterator[tuple[Path, int]]:
    yield home_folder(), OTHERS_WRITE
    yield temporary_folder(), OTHERS


def _keys() -> Iterator[bytes]:
    """The keys that there are, the one to seal with first."""
    for folder, bits in _places():
        with suppress(OSError):
            check_folder(folder, bits)
            data = read(folder / "key")
            if data is not None and len(data) == KEY_BYTES:
                yield data


def _new_key() -> bytes:
    refused: OSError | None = None
    for folder, bits in _places():
        try:
            make_folder(folder, bits)
            make_once(folder / "key", os.urandom(KEY_BYTES))
        except OSError as no:
            refused = no
            continue
        if (key := next(_keys(), None)) is not None:
            return key
    raise refused or OSError(errno.EINVAL, "the key is damaged", str(home_folder() / "key"))


def name_of(uid: int) -> str:
    """A user's name, for sentences."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _check(path: Path | str, status: os.stat_result, kinds: tuple[int, ...]) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind not in kinds:
        if kind == stat.S_IFLNK:
            raise foreign(path, f"is a link (to {_target(path)})", next=f"Remove the link {path}.")
        raise foreign(path, "is not what coord has made there", next=f"Move {path} away.")
    if status.st_uid != user():
        raise foreign(path, f"belongs to another user ({name_of(status.st_uid)})",
                      next=f"Run coord as {name_of(status.st_uid)}, or move {path} away.")


def _target(path: Path | str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return "elsewhere"
