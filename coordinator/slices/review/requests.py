"""Reviews: listing them, deciding them, and undoing a verdict."""

from __future__ import annotations

from typing import Literal

from coordinator.words.requests.base import Count, Place, Reply, Request, Verdict, Whole
from coordinator.words.requests.reviews import Review
from coordinator.words.texts import Document, Line, Name, Words


class ReviewList(Reply):
    items: list[Review]
    counts: dict[str, int] = {}  # state -> how many are in it, of those of `agent` and `task`
    next: int | None = None
    """Give this as `after` for the next page, or as `skip` where `state` is `decided`; null: there
    is no more."""


class Reviews(Request[ReviewList]):
    """Flagged work; without `state`, what is open. `decided`: whatever is not open, the last
    verdict first."""

    op = "reviews"
    http = ("GET", "/v1/reviews")
    writes = False
    state: Literal["open", "kept", "reverted", "reassigned", "decided", "all"] = "open"
    agent: Name | None = None  # only work that it left
    task: Name | None = None  # only work on this task
    after: Place = 0
    skip: Place = 0  # leave out so many of them at the beginning
    limit: Count = 200


class ReviewShow(Request[Review]):
    """One review with its diffs and timeline; `content` adds the bytes (base64)."""

    op = "review_show"
    http = ("GET", "/v1/reviews/{review}")
    writes = False
    review: Name
    content: bool = False


class Hunk(Reply):
    number: int  # from 1, as a verdict on hunks names it
    text: str  # its heading and lines, as in a unified difference
    cut: bool  # that is not all of it


class HunkList(Reply):
    review: str
    path: str
    items: list[Hunk]
    total: int  # how many the file's change has
    divided: bool  # a verdict can be on single ones; not in what is too large
    said: str  # why there are none
    next: int | None = None  # give this as `skip` for the next page; null: there is no more


class ReviewHunks(Request[HunkList]):
    """The hunks of one file of a review, by parts: also of a file that is too large for `show`."""

    op = "review_hunks"
    http = ("GET", "/v1/reviews/{review}/hunks")
    writes = False
    review: Name
    file: Name  # its path, as the review has it
    skip: Place = 0  # leave out so many of them at the beginning
    limit: Count = 20
    cwd: Name | None = None


class ReviewDecide(Request[Review]):
    """A human's verdict. `revert` restores the bytes at grant where nobody changed them since.

    With `files` it is about these alone. They become a review of their own, which is the answer
    (with `part_of`), and the rest stays open. With `hunks` (numbers from 1, as the difference of
    that one file shows them) it is about these alone. If that is everything, the result is as
    without. `keep` with `edited` writes that text to the one file before it is kept; `undo` takes
    it out.
    """

    op = "review_decide"
    http = ("POST", "/v1/reviews/{review}/decide")
    operator_only = True
    review: Name
    verdict: Verdict
    note: Words = ""
    by: Line = ""
    files: list[Name] = []  # only these of it, by path; empty: all
    hunks: list[Whole] = []  # only these changes of the one file, numbers from 1; empty: all
    seen: Line = ""  # `BEFORE..AFTER`, the hashes of the contents that the verdict is based on
    edited: Document | None = None  # the one file's text, as it is to be kept; null: as it was left
    cwd: Name | None = None

    def for_people(self) -> bool:
        return True


class ReviewUndo(Request[Review]):
    """Take a verdict back; files that a revert wrote get their bytes again."""

    op = "review_undo"
    http = ("POST", "/v1/reviews/{review}/undo")
    operator_only = True
    review: Name
    by: Line = ""

    def for_people(self) -> bool:
        return True
