"""The hunks of one file of a review, by parts: also of a file that is too large to be shown whole.

Runs git for large contents, in a thread of its own: reads, and decides nothing.
"""

from __future__ import annotations

from coordinator.files import hunks, large_hunks
from coordinator.files.content import is_link, unified
from coordinator.kernel.core import Actor, Service
from coordinator.slices.review import parts, reviews
from coordinator.store.ledger import View
from coordinator.store.rows import ReviewFileRow
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: How many hunks are returned at once.
LISTED_MAX = 100


def listing(svc: Service, view: View, actor: Actor, req: rq.ReviewHunks) -> rq.HunkList:
    """See `requests.ReviewHunks`.

    Raises:
        Refusal: INVALID: no such file, or its bytes are not kept; LIMIT: too large for that, too.
    """
    row = reviews.find(view, req.review)
    file = parts.named_file(svc, row, req.file, req.cwd,
                            view.each(ReviewFileRow, "review_files_of", row.review_id))
    limit = min(req.limit, LISTED_MAX)
    found_hunks, can_be_divided = _hunks(svc, view, file, req.skip, limit)
    return rq.HunkList(
        review=row.review_id, path=file.path, total=found_hunks.total, said=found_hunks.said,
        divided=can_be_divided,
        items=[rq.Hunk(number=hunk.number, text=hunk.text, cut=hunk.cut) for hunk
               in found_hunks.items],
        next=req.skip + limit if found_hunks.total > req.skip + limit else None,
    )


def _hunks(svc: Service, view: View, file: ReviewFileRow, skip: int,
           limit: int) -> tuple[large_hunks.Hunks, bool]:
    """Those of a file, and whether a verdict can be on some of them."""
    names = (file.baseline_hash, file.flagged_hash)
    sides = [b"" if name is None else view.source(name) for name in names]
    before, after = sides
    if not file.kept or before is None or after is None:
        raise Refusal(Code.INVALID, f"The bytes of {file_names.shown(file.path)} are not kept "
                      f"({reviews.why_not_kept(view, file)}).",
                      next="`coord review show` tells what is known of it.")
    if any(is_link(name or "") for name in names):
        return large_hunks.Hunks([], 0, "It is a symlink."), False
    small = [view.blob(name, svc.settings.review.file_bytes_max) for name in names]
    count = hunks.count(*small)
    if count:
        texts = ("\n" + unified("f", *small)).split("\n@@ ")[1:]
        items = [large_hunks.Hunk(number, f"@@ {text}" + "\n" * (number < count), False)
                 for number, text in enumerate(texts, 1)][skip:skip + limit]
        return large_hunks.Hunks(items, count), True
    try:
        return large_hunks.window(before, after, skip, limit), False
    except large_hunks.TooLarge:
        raise Refusal(
            Code.LIMIT, f"{file_names.shown(file.path)} is too large to be compared by lines.",
            next="`coord review show --json` names the files that have both contents.") from None
