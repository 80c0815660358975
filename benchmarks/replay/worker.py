"""The program that stands in for a coding agent: it reads, thinks, and writes whole files back.

    python -P -m benchmarks.replay.worker PLAN.json TASK_ID      (in the repository)

Owns how one task is carried out, in the way agents do it: every file is read before the thinking
and written whole after it, so whatever somebody else wrote meanwhile is lost, unless somebody
prevents it. Coordination comes from outside, through the callables that `carry` takes; without them
this is the uncoordinated baseline. Imports the standard library and the plan only.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from benchmarks.replay.changes import Change, Entry, Kind
from benchmarks.replay.edits import Torn, with_hunks
from benchmarks.replay.plan import Plan, Task, path_of

#: Times to make a directory anew that another agent removes because it is empty.
_TRIES = 1000

T = TypeVar("T")


def carry(
    task: Task,
    plan: Plan,
    root: Path,
    *,
    before_files: Callable[[list[str]], object] = lambda files: None,
    think: Callable[[float], None] = time.sleep,
    say: Callable[[str], None] = lambda line: None,
    baseline: Callable[[str], bytes | None] = lambda path: None,
    halfway: Callable[[str], None] = lambda path: None,
    write_regions: Callable[[Change, tuple[int, ...]], bool] = lambda change, hunks: False,
) -> None:
    """Carry out one task below `root`. Doing it again, after it was cut short anywhere, is safe.

    `before_files` gets the discovered files before they are read, halfway through the thinking; it
    may raise, and then nothing was written. If what it returns is true, the agent did other work
    meanwhile, perhaps in the very files it holds, and reads all of them again. `think` gets
    seconds. `baseline` gives the bytes that a path had before a writer that died tore it; None:
    unknown, and the content of OLD is taken. `halfway` is called with the path when half of a file
    is on disk and the rest is not. `write_regions` carries hunks of a file into what it is by then,
    if only regions of it are leased; false: it is written whole.

    Raises:
        OSError: a file cannot be read or written.
    """
    discovered = set(map(path_of, task.discovered))
    late = [p for p in task.edits if discovered & set(plan.changes[p].paths)]
    held = {path: _read(plan.changes[path], root, say) for path in task.edits if path not in late}
    say(f"thinking {task.think_s:.3f}s")
    if task.discovered:
        think(task.think_s / 2)
        again = task.edits if before_files(list(task.discovered)) else late
        held.update((path, _read(plan.changes[path], root, say)) for path in again)
        think(task.think_s / 2)
    else:
        think(task.think_s)

    # What removes comes first: a directory may stand where a file was, and the reverse.
    order = sorted(task.edits, key=lambda p: (plan.changes[p].kind is not Kind.DELETE, p))
    for path in order:
        change = plan.changes[path]
        if change.kind is Kind.DELETE or change.new is None:
            say(f"deleting {path}")
            _remove(root, path)
            continue
        if change.kind is Kind.EDIT and write_regions(change, task.edits[path]):
            say(f"committed regions of {path}")
            continue
        data = _intended(change, task.edits[path], held[path], baseline, say)
        say(f"writing {path}")
        if change.kind is Kind.RENAME and path.startswith(f"{change.source}/"):
            _remove(root, change.source)  # a file becomes the directory that it moves into
        _write(root, path, change.new._replace(data=data), halfway)
        if change.kind is Kind.RENAME:
            say(f"deleting {change.source}")
            _remove(root, change.source)


def _read(change: Change, root: Path, say: Callable[[str], None]) -> bytes | None:
    """The file as it is now; None: it is not there, or is a link."""
    for path in change.paths:
        if not (root / path).is_symlink():
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                data = (root / path).read_bytes()
                say(f"reading {path}")
                return data
    return None


def _intended(
    change: Change,
    hunks: tuple[int, ...],
    current: bytes | None,
    baseline: Callable[[str], bytes | None],
    say: Callable[[str], None],
) -> bytes:
    """What the file is to contain; a torn file is first put back to what it was."""
    if change.new is None or change.kind in (Kind.CREATE, Kind.REPLACE):
        return change.new.data if change.new else b""
    wanted = hunks or tuple(range(len(change.hunks)))
    if current is not None:
        with suppress(Torn):
            return with_hunks(current, change, wanted)
    say(f"repairing {change.source}")
    kept = baseline(change.source)
    if kept is not None:
        with suppress(Torn):
            return with_hunks(kept, change, wanted)
    return with_hunks(change.old.data if change.old else b"", change, wanted)


def _write(root: Path, path: str, entry: Entry, halfway: Callable[[str], None]) -> None:
    """Open, truncate, write: as an agent's tool does it, and so neither atomic nor durable."""
    file = root / path
    if entry.link:
        with suppress(FileNotFoundError):
            file.unlink()
        _in_folder(file, lambda: file.symlink_to(os.fsdecode(entry.data)))
        return
    if file.is_symlink():
        file.unlink()
    middle = len(entry.data) // 2
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    descriptor = _in_folder(file, lambda: os.open(file, flags, 0o666))
    with os.fdopen(descriptor, "wb", buffering=0) as out:
        out.write(entry.data[:middle])
        halfway(path)
        out.write(entry.data[middle:])
        mode = os.fstat(out.fileno()).st_mode & 0o777
        wanted = mode | 0o111 if entry.executable else mode & ~0o111
        if wanted != mode:
            os.fchmod(out.fileno(), wanted)


def _in_folder(file: Path, act: Callable[[], T]) -> T:
    """Do `act`, making the directory for it as often as somebody removes it as empty."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError, FileExistsError):
            file.parent.mkdir(parents=True, exist_ok=True)
            return act()
    file.parent.mkdir(parents=True, exist_ok=True)
    return act()


def _remove(root: Path, path: str) -> None:
    """Delete the file, and the directories above it that are empty then.

    A directory of that name is what already took the file's place: it stays.
    """
    if (root / path).is_dir() and not (root / path).is_symlink():
        return
    with suppress(FileNotFoundError, NotADirectoryError):
        (root / path).unlink()
    for folder in (root / path).parents:
        if folder == root:
            break
        try:
            folder.rmdir()
        except OSError:
            break  # not empty, or gone already


def main(arguments: list[str]) -> int:
    """Carry out one task, uncoordinated. 0: done; 2: no such plan or task."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -P -m benchmarks.replay.worker PLAN.json TASK_ID\n")
        return 2
    try:
        plan = Plan.load(Path(arguments[0]))
        task = plan.task(arguments[1])
    except (OSError, ValueError, KeyError) as e:
        sys.stderr.write(f"no such plan or task: {e}\n")
        return 2

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    carry(task, plan, Path.cwd(), say=say)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
