"""A verdict on a part of a review: which files and hunks are meant, and what leaves the review.

Owns how a file's change is divided in two. What is reverted is the last step of the change, so that
the rest ends where the file is after that; what is kept is its first step, so that the rest begins
there. Runs in a worker, before anything is decided; changes no file and no row.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from coordinator.files import hunks
from coordinator.files.content import digest, is_executable, is_link
from coordinator.kernel import repository_files
from coordinator.kernel.core import Service, listed
from coordinator.kernel.repository_files import Bytes
from coordinator.slices.review import reviews
from coordinator.store import events as ev
from coordinator.store.ledger import View
from coordinator.store.rows import ReviewFileRow, ReviewRow
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import FROM_ROOT

#: Files that a refusal names.
NAMED_MAX = 10


@dataclass(slots=True)
class Chosen:
    """What a verdict is about.

    Attributes:
        files: these, as far as they are meant: of a file of which only hunks are, from the content
            without them to the one with them.
        parts: what leaves the review; none: the verdict is about all of it.
        made: contents that were made for it, by name.
    """

    files: list[ReviewFileRow]
    parts: list[ev.ReviewPart] = field(default_factory=list)
    made: dict[str, Bytes] = field(default_factory=dict)


def choose(svc: Service, view: View, request: rq.ReviewDecide, row: ReviewRow,
           files: Sequence[ReviewFileRow]) -> Chosen:
    """The files and hunks that the request names.

    Raises:
        Refusal: INVALID: it has no such file or hunk, or a file cannot be divided or edited;
            BAD_TRANSITION: a part cannot be reassigned; VERSION_CHANGED: the verdict is based on
            other contents.
    """
    if not request.files and not request.hunks and request.edited is None:
        return Chosen(list(files))
    named = _named(svc, row, request, files)
    if request.seen and (request.hunks or request.edited is not None):
        _check_seen(row, request.seen, named[0])
    chosen = _divide_files(svc, view, request, row, named)
    if len(named) == len(files) and not any(part.hunks for part in chosen.parts):
        chosen = Chosen(list(files))  # it is all that there is
    if request.verdict == "reassign" and chosen.parts:
        raise Refusal(
            Code.BAD_TRANSITION,
            f"A part of {row.review_id} cannot be reassigned: its task goes on with all that is "
            "left of it. Nothing was changed.",
            next=f"`coord review reassign {row.review_id}` reassigns all of it; keep or revert "
            "before what shall not go on.",
        )
    if request.edited is not None:
        chosen.files = [_edit(svc, chosen, request.edited, file) for file in named]
    return chosen


def _divide_files(svc: Service, view: View, request: rq.ReviewDecide, row: ReviewRow,
                  named: Sequence[ReviewFileRow]) -> Chosen:
    """These files, or the hunks of them that are named."""
    chosen = Chosen([])
    for file in named:
        numbers = _numbers(svc, view, row, request.hunks, file) if request.hunks else []
        if numbers:
            chosen.files.append(_divide(svc, view, chosen, request.verdict, file, numbers))
        else:
            chosen.files.append(file)
            chosen.parts.append(ev.ReviewPart(path=file.path, part_before=file.baseline_hash,
                                              part_after=file.flagged_hash))
    return chosen


def edited_names(text: str) -> tuple[str, str]:
    """The names of an edited text: as a plain file, and as one that can be executed."""
    data = text.encode("utf-8", "surrogatepass")
    return digest(data, executable=False), digest(data, executable=True)


def _edit(svc: Service, chosen: Chosen, text: str, file: ReviewFileRow) -> ReviewFileRow:
    """The file, as if its edited text were what was there before the work: a text is written as
    the work is taken out, so that what was saved since stays or refuses it."""
    like = file.flagged_hash or file.baseline_hash or ""
    name = edited_names(text)[is_executable(like)]
    chosen.made[name] = repository_files.stow(svc, name, text.encode("utf-8", "surrogatepass"))
    return msgspec.structs.replace(file, baseline_hash=name)


def _named(svc: Service, row: ReviewRow, request: rq.ReviewDecide,
           files: Sequence[ReviewFileRow]) -> list[ReviewFileRow]:
    """The files that are meant, each once."""
    named: dict[str, ReviewFileRow] = {}
    for text in request.files:
        file = named_file(svc, row, text, request.cwd, files)
        named[file.path] = file
    if request.edited is not None:
        _check_editable(row, request, list(named.values()) or files)
    if not request.hunks and request.edited is None:
        return list(named.values())
    if len(named or files) != 1:
        raise Refusal(
            Code.INVALID, f"{'Hunks are counted in' if request.hunks else 'A text is that of'} one "
            f"file, and {'several files are named' if named else f'{row.review_id} has several'}. "
            "Nothing was changed.", next="Name the one file: `--file PATH`.",
        )
    return list(named.values()) or list(files)


def named_file(svc: Service, row: ReviewRow, text: str, cwd: str | None,
               files: Sequence[ReviewFileRow]) -> ReviewFileRow:
    """The one file of a review that a name means.

    Raises:
        Refusal: INVALID.
    """
    fit = _fitting(svc, text, cwd, files)
    if len(fit) == 1:
        return fit[0]
    has = listed([file_names.shown(review_file.path) for review_file in files], NAMED_MAX)
    which = "has no file" if not fit else "has several files"
    raise Refusal(
        Code.INVALID, f"{row.review_id} {which} {file_names.shown(text)!r}; it is about {has}. "
        "Nothing was changed.", next=f"`coord review show {row.review_id}`",
        files=[review_file.path for review_file in files],
    )


def _check_editable(row: ReviewRow, request: rq.ReviewDecide,
                    files: Sequence[ReviewFileRow]) -> None:
    """Check that an edited text can be kept.

    Raises:
        Refusal: INVALID.
    """
    if request.verdict != "keep" or request.hunks:
        raise Refusal(
            Code.INVALID, "An edited text is kept, and is the whole file's: it goes with `keep`, "
            "and without hunks. Nothing was changed.",
            next=f"`coord review keep {row.review_id} --file PATH --edited FILE`")
    for file in files:
        if is_link(file.flagged_hash or ""):
            raise Refusal(
                Code.INVALID, f"{file_names.shown(file.path)} is a symlink, which has no text. "
                "Nothing was changed.", next=f"`coord review keep {row.review_id}` keeps it, "
                f"`coord review revert {row.review_id}` takes it out.")


def _check_seen(row: ReviewRow, seen: str, file: ReviewFileRow) -> None:
    """Check that the verdict is based on the file's present contents.

    Raises:
        Refusal: VERSION_CHANGED.
    """
    if seen != f"{file.baseline_hash or ''}..{file.flagged_hash or ''}":
        raise Refusal(
            Code.VERSION_CHANGED, f"A verdict on a part of {row.review_id} came before this one: "
            f"{file_names.shown(file.path)} is shown with other contents, and its hunks have other "
            "numbers now. Nothing was changed.",
            next=f"`coord review show {row.review_id}` shows what is left.")


def _fitting(svc: Service, text: str, cwd: str | None,
             files: Sequence[ReviewFileRow]) -> list[ReviewFileRow]:
    """The files that a name may mean: seen from that directory; otherwise from the root, as it is
    printed; otherwise by its end. Names are compared by their letters, because the file may be
    gone."""
    if not text:
        return []
    from_root = text.startswith(FROM_ROOT)
    text = posixpath.normpath(text.removeprefix(FROM_ROOT) or "/")
    typed = posixpath.join("" if from_root else cwd or "", text)
    here = [review_file for review_file in files
            if svc.where(review_file.worktree, review_file.path) == posixpath.normpath(typed)]
    exact = here or [review_file for review_file in files if review_file.path == text]
    return exact if exact or from_root else [
        review_file for review_file in files if review_file.path.endswith(f"/{text}")]


def _numbers(svc: Service, view: View, row: ReviewRow, asked: Sequence[int],
             file: ReviewFileRow) -> list[int]:
    """The hunks that are meant; none: all that there are, and so the whole file."""
    before, after = _sides(svc, view, file)
    there = hunks.count(before, after)
    wrong = [n for n in asked if not 1 <= n <= max(there, 1)]
    if wrong:
        have = "cannot be divided" if there == 0 else (
            f"has {there} hunk{'s' if there > 1 else ''}")
        raise Refusal(
            Code.INVALID, f"The change of {file_names.shown(file.path)} {have}; there is no hunk "
            f"{wrong[0]}. Nothing was changed.",
            next=f"`coord review show {row.review_id}` numbers them." if there > 1 else
            "Leave `--hunk` out: the whole change of the file is meant then.", hunks=there,
        )
    meant = sorted(set(asked))
    return [] if len(meant) >= there else meant


def _divide(svc: Service, view: View, chosen: Chosen, verdict: str, file: ReviewFileRow,
            numbers: Sequence[int]) -> ReviewFileRow:
    """Divide the change of a file; what is meant of it, as if it were all."""
    before, after = _sides(svc, view, file)
    assert before is not None and after is not None  # else it has no hunks
    assert file.baseline_hash is not None and file.flagged_hash is not None
    count = hunks.count(before, after)
    if verdict == "revert":
        rest = [n for n in range(1, count + 1) if n not in numbers]
        data, like = hunks.with_hunks(before, after, rest), file.flagged_hash
    else:
        data, like = hunks.with_hunks(before, after, numbers), file.baseline_hash
    middle = digest(data, executable=is_executable(like))
    chosen.made[middle] = repository_files.stow(svc, middle, data)
    begin, end = file.baseline_hash, file.flagged_hash
    part, rest_of = ((middle, end), (begin, middle)) if verdict == "revert" else (
        (begin, middle), (middle, end))
    chosen.parts.append(ev.ReviewPart(
        path=file.path, hunks=list(numbers), part_before=part[0], part_after=part[1],
        rest_before=rest_of[0], rest_after=rest_of[1],
    ))
    return ReviewFileRow(
        file.path, file.scope, file.worktree, file.change, file.kept, part[0], part[1], None, None,
        None, file.inode, None,
    )


def _sides(svc: Service, view: View, file: ReviewFileRow) -> tuple[bytes | None, bytes | None]:
    """Both contents, of a file that can be divided."""
    names = (file.baseline_hash, file.flagged_hash)
    if not file.kept or any(name is None or is_link(name) for name in names):
        return None, None
    most = svc.settings.review.file_bytes_max
    before, after = (view.blob(name, most) for name in names)
    return before, after


def still_so(view: View, review: str, seen: Sequence[tuple[str, str | None, str | None]]) -> bool:
    """Whether a review has the files, with the contents, that a plan was made from."""
    now = view.each(ReviewFileRow, "review_files_of", review)
    return [reviews.sides(review_file) for review_file in now] == list(seen)
