"""`coord merge-file` and `coord merge-driver`: the merge by region, for a person and for git.

They ask no coordinator, and start none: the result of a merge follows from three texts.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from coordinator.cli.app import fail, print_json, say
from coordinator.commands.signatures import Argument, AsJson, Option, command, declare_group
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal

if TYPE_CHECKING:
    from coordinator.merging.model import Merged

declare_group("merge-driver", "Let plain git merge by region.")

#: The code of git's own `merge-file` if nothing was merged. Lower codes count conflicts.
FAILED = 255
ForUser = Annotated[
    bool, Option("For all of this user's repositories, not for this one.", "--global")
]
#: Larger files (bytes) are not read.
READ_BYTES_MAX = 256 << 20


@command("merge-file")
def merge_file(
    ours: Annotated[str, Argument("Our version; the result is written into it.")],
    base: Annotated[str, Argument("The version that both sides began with.")],
    theirs: Annotated[str, Argument("The other version.")],
    stdout: Annotated[bool, Option("Print the result; write nothing.", "-p")] = False,
    path: Annotated[str, Option("The file's name, which tells its language (default: OURS).")] = "",
    label: Annotated[list[str] | None, Option(
        "What stands behind the markers of ours, base and theirs: up to three times.",
        "-L")] = None,
    marker_size: Annotated[int, Option("How many signs a marker has.", least=1, most=100)] = 7,
    style: Annotated[str, Option("merge, diff3 or zdiff3 (default: as git is set up).")] = "",
    as_json: AsJson = False,
) -> int:
    """Merge three versions of a file by its regions, git's own merge first.

    The files come in the order of `git merge-file`.

    Exits with 0 if the result is clean, with the number of conflicts (127 at most) if it is not,
    and with 255 if nothing was merged.
    """
    try:
        done = _merged((base, ours, theirs), path or ours, label or [], marker_size, style)
        if not stdout:
            _write(ours, done.data)
    except Refusal as refusal:
        if as_json:
            print_json({"error": refusal.body()})
        fail(refusal)
        return FAILED
    if as_json:
        print_json(_describe_merge(done))
    elif stdout:
        sys.stdout.flush()
        sys.stdout.buffer.write(done.data)
        sys.stdout.buffer.flush()
    if not as_json:
        for note in done.notes:
            sys.stderr.write(f"coord: note: {_line(note)}\n")
        for clash in done.conflicts:
            sys.stderr.write(f"coord: conflict in {_line(clash.name)}: {_line(clash.why)}\n")
    return min(done.markers, 127)


def _line(text: str) -> str:
    from coordinator.words import texts

    return texts.harmless(" ".join(text.split()))


def _merged(
    files: tuple[str, str, str], path: str, labels: list[str], marker_size: int, style: str,
) -> Merged:
    from coordinator.merging.act import Manner, merge_texts  # each start of `coord` would pay
    from coordinator.merging.git_merge import STYLES, GitFailed
    from coordinator.merging.model import Side

    if style and style not in STYLES:
        raise Refusal(Code.INVALID, f"There is no style {style!r}: {', '.join(STYLES)}.")
    if len(labels) > 3:
        raise Refusal(Code.INVALID, "Three labels at most: of ours, base and theirs.")
    base, ours, theirs = (_bytes(file) for file in files)
    named = [*labels, *[(files[1], files[0], files[2])[n] for n in range(len(labels), 3)]]
    manner = Manner(Side(named[0]), named[1], Side(named[2]), marker_size, style or None)
    try:
        return merge_texts(base, ours, theirs, path, manner)
    except GitFailed as bad:
        raise Refusal(
            Code.INVALID, f"git would not merge them: {bad}. {files[1]} is as it was.",
            next="What is not text is taken from one side: copy the one you want.",
        ) from None


def _describe_merge(done: Merged) -> dict[str, Any]:
    return {
        "by": done.by, "markers": done.markers, "notes": list(done.notes),
        "conflicts": [{"region": clash.name, "why": clash.why} for clash in done.conflicts],
        "merged": done.data.decode("utf-8", "replace"),
    }


def _bytes(typed: str) -> bytes:
    """Return a file's bytes.

    Raises:
        Refusal: INVALID, LIMIT, STORAGE.
    """
    shown = file_names.shown(typed)
    try:
        with open(typed, "rb", opener=_opener) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refusal(Code.INVALID, f"{shown} is no file of bytes. Nothing was merged.",
                              next="Name three files: `coord merge-file OURS BASE THEIRS`.")
            if status.st_size > READ_BYTES_MAX:
                raise Refusal(
                    Code.LIMIT, f"{shown} has more than {READ_BYTES_MAX:,} bytes. Nothing was "
                    "merged.", next=f"`git merge-file {shlex.quote(typed)} BASE THEIRS` tries.")
            return file.read()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
        raise Refusal(Code.INVALID, f"There is no file {shown}. Nothing was merged.",
                      next="Name three files: `coord merge-file OURS BASE THEIRS`.") from None
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{shown} could not be read ({bad.strerror or bad}). Nothing "
                      "was merged.") from None


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _write(typed: str, data: bytes) -> None:
    """Replace a file's bytes, and keep its mode.

    Raises:
        Refusal: STORAGE.
    """
    from coordinator.files.content import write_atomic

    try:
        path = Path(typed).resolve()
        write_atomic(path, data, path.stat().st_mode & 0o7777)
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{file_names.shown(typed)} could not be written "
                      f"({bad.strerror or bad}). It is as it was.") from None



@command("merge-driver install")
def install(for_user: ForUser = False, as_json: AsJson = False) -> None:
    """Let `git merge`, `rebase`, `cherry-pick` and the like merge by region, git's own merge first.

    Writes into git's configuration and into the attributes of this clone (`info/attributes`), not
    into the project's `.gitattributes`, which count above it.
    """
    from coordinator.merging import installing

    _say(installing.install(Path.cwd(), for_user=for_user), "git merges by region here already.",
         "coord merge-driver remove takes it out again", as_json)


@command("merge-driver remove")
def remove(for_user: ForUser = False, as_json: AsJson = False) -> None:
    """Take out what `install` put in; nothing of it stays."""
    from coordinator.merging import installing

    _say(installing.remove(Path.cwd(), for_user=for_user),
         "There is nothing of coord's merge in git's settings here.", "", as_json)


def _say(sentences: list[str], otherwise: str, following: str, as_json: bool) -> None:
    if as_json:
        print_json({"items": sentences, "next": None})
        return
    for text in sentences or [otherwise]:
        say(text)
    if following:
        say(f"next: {following}")
