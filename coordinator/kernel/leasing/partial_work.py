"""Partial work: what a holder changed under its leases and did not finish, as a review for a human.

The facts of a look tell what changed since the grant. The bytes are kept as they were looked at,
and nothing on disk is touched (invariant 6). `lapse` decides when leases end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from coordinator.kernel.core import Service, listed
from coordinator.kernel.leasing import earlier_content, meanwhile
from coordinator.kernel.repository_files import UNREADABLE
from coordinator.looking.facts import AnyNeed, Below, Bytes, Content, Place, Rewound
from coordinator.rules import leases as rule
from coordinator.rules.globs import overlaps
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import ContentRow, LeaseRow, VersionRow
from coordinator.words import resource_names
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import path_scope

#: Characters of an agent's last output that a review keeps.
LOG_TAIL_CHARS = 4_000
#: The hash of a content that could not be looked at.
UNSEEN = "unseen"
#: What has changed, by its path and its working tree.
Found = dict[tuple[str, str | None], ev.FlaggedFile]


class Flagged(NamedTuple):
    """A review that was opened. `whole`: the bytes of all its files are kept."""

    review: str
    whole: bool
    others: tuple[str, ...] = ()
    """Further ones, where copies of one file in several working trees were changed."""

    def told(self, what: str) -> str:
        """A sentence for those concerned. `what` was done: "Your changes are"."""
        reviews = listed([self.review, *self.others])
        if self.whole:
            return f" {what} kept for a human in {reviews}."
        return f" A human looks at what is there ({reviews}): not all of it could be kept."


class _Listing(NamedTuple):
    """Path -> content, below one lease. `left`: deleted, or now ignored."""

    before: dict[str, str]
    now: dict[str, str]
    left: dict[str, Content]
    unlisted: str
    """Why `now` could not be listed."""


class Occasion(NamedTuple):
    """The reason why a person is to look at somebody's work: see `reviews` in schema.sql."""

    reason: str
    why: str
    agent: str | None = None
    task: str | None = None
    leased_at: str | None = None
    log_tail: str = ""


def flag(tx: Tx, files: Sequence[ev.FlaggedFile], occasion: Occasion) -> Flagged:
    """Open a review over `files`; where copies of one in several working trees are among them, one
    for each of the trees."""
    names = {file.path for file in files}
    trees = list(dict.fromkeys(file.worktree for file in files))
    if len(names) < len(files) and len(trees) > 1:
        each = [flag(tx, [file for file in files if file.worktree == tree], occasion)
                for tree in trees]
        return Flagged(each[0].review, all(flagged.whole for flagged in each),
                       tuple(flagged.review for flagged in each[1:]))
    n = tx.number("review")
    review = f"R-{n}"
    task = occasion.task
    started = tx.value("task_first_event", task) if task is not None else None
    tx.record(ev.ReviewOpened(
        review=review, n=n, reason=occasion.reason, agent=occasion.agent, task=task,
        summary=occasion.why, log_tail=occasion.log_tail[-LOG_TAIL_CHARS:],
        leased_at=occasion.leased_at,
        events_from=started or max(1, tx.last_seq - 200), files=list(files),
    ))
    return Flagged(review, all(file.kept for file in files))


def changed_since(
    svc: Service, tx: Tx, rows: Sequence[LeaseRow], *, now_at: str | None = None,
    over: str | None = None, shared: bool = False,
) -> list[ev.FlaggedFile]:
    """Every file below these leases whose bytes differ from those at the grant. Keeps the bytes.
    `now_at`: the present name of the one lease; `over`: the content that was replaced there.
    `shared`: also what other parties of an agreement continue with; their work is included.

    Raises:
        Unready: the files have to be looked at.
    """
    rows = [row for row in rows if is_written(row) and (shared or not who_goes_on(tx, row))]
    seen = _look_at_work(svc, tx, rows, now_at)
    changed: Found = {}
    compare = _Comparison(svc, tx, changed, seen.further).compare
    for row, need in seen.needs:
        if isinstance(need, Content):
            _compare_file(svc, tx, compare, row, need.path, now_at, over)
        else:
            _compare_below(tx, compare, row, need, seen)
    if now_at is None:
        _compare_linked(svc, tx, compare, seen.needs, rows)
    for rewound, theirs in seen.regions.items():
        _compare_regions(svc, tx, compare, changed, rewound, theirs, now_at)
    return [changed[path, tree] for path, tree in sorted(
        changed, key=lambda place: (place[0], place[1] or ""))]


class _Work(NamedTuple):
    """What was looked at to compare leased resources with their former state.

    Attributes:
        needs: leases on more than a part of a file, and what each is compared by.
        regions: leases on parts, by what of their file was looked at.
        further: files whose beginning lies further back than their lease's.
        as_begun: see `_as_begun`.
        below: by the token of a lease on a directory or glob.
    """

    needs: list[tuple[LeaseRow, Content | Below]]
    regions: dict[Rewound, list[LeaseRow]]
    further: earlier_content.Further
    as_begun: list[tuple[str, str | None, tuple[str, int]]]
    below: dict[int, _Listing]


def _look_at_work(svc: Service, tx: Tx, rows: Sequence[LeaseRow], now_at: str | None) -> _Work:
    regions = _with_what_was(svc, tx, _by_file(svc, rows, now_at))
    needs = [(row, _needed(svc, row, now_at)) for row in rows if not earlier_content.is_part(row)]
    further = {} if now_at is not None else earlier_content.further_back(svc, tx, rows)
    tx.looked.require([*(need for _, need in needs), *_of_regions(regions), *further.values()])
    as_begun = _as_begun(tx, needs)
    below = {row.fencing_token: _below(svc, tx, row, need, now_at)
             for row, need in needs if isinstance(need, Below)}
    tx.looked.require(gone for listing in below.values() for gone in listing.left.values())
    if now_at is None and svc.wait_for_watcher is not None and _anything_changed(
            tx, needs, below.values(), regions):
        tx.looked.after("what was renamed", svc.wait_for_watcher)
    return _Work(needs, regions, further, as_begun, below)


def _compare_linked(svc: Service, tx: Tx, compare: Callable[..., None],
                    needs: Iterable[tuple[LeaseRow, Content | Below]],
                    rows: Sequence[LeaseRow]) -> None:
    """Other names that leased files have been given."""
    files = [(row, content(tx, need.path)) for row, need in needs if isinstance(need, Content)]
    contents = {row.fencing_token: now for row, now in files}
    for row, path, was in earlier_content.linked(
            svc, tx, [(row, now.hash) for row, now in files], rows):
        compare(row, path, was, contents[row.fencing_token])


def _compare_below(tx: Tx, compare: Callable[..., None], row: LeaseRow, need: Below,
                   work: _Work) -> None:
    """Compare what is below a leased directory or glob. Files that are unchanged since a later
    lease on them began are left out."""
    listing = work.below[row.fencing_token]
    settled = {path for path, tree, age in work.as_begun
               if tree == row.worktree and age < earlier_content.age(row)}
    begun_before = {path for token, path in work.further if token == row.fencing_token}
    if listing.unlisted:
        tx.record(ev.Noted(what="new files were not compared", facts={"why": listing.unlisted}))
    for path, digest in listing.now.items():
        if path not in settled and (listing.before.get(path) != digest or path in begun_before):
            compare(row, path, listing.before.get(path), Bytes(digest, kept=True))
    for path, gone in listing.left.items():
        if path not in settled:
            compare(row, path, listing.before[path], content(tx, gone.path))
    if _is_empty(tx, need):
        tx.looked.require([_stands_for(need)])
        compare(row, need.name.rstrip("/"), None, content(tx, _stands_for(need).path))


def _compare_regions(svc: Service, tx: Tx, compare: Callable[..., None], matches: Found,
                     rewound: Rewound, rows: Sequence[LeaseRow], now_at: str | None) -> None:
    """Compare only these regions of the file. A review shows and reverts them alone."""
    path = now_at or path_of(rows[0])
    before, now = _was(tx, rewound), content(tx, rewound.path)
    whole = _whole_before(svc, tx, rows)
    if whole is None and _is_together(tx, rewound):
        whole = rewound.first
    if whole is not None and now.hash is not None:
        compare(rows[0], path, whole, now)
        return
    compare(rows[0], path, before.hash, now, before)
    if now.hash is not None:
        return
    flagged = matches.get((path, rows[0].worktree))
    if flagged is not None:  # others may have changed what is not theirs
        flagged.last_hash = rewound.gone
    _compare_inside(svc, tx, compare, rows[0], rewound.path)


def _as_begun(tx: Tx, needs: Iterable[tuple[LeaseRow, Content | Below]]
              ) -> list[tuple[str, str | None, tuple[str, int]]]:
    """Files leased by name that are as they were when the work on them began (with their trees, and
    how old these leases are): what a later lease around them began with was in the middle of it."""
    return [(path_of(row), row.worktree, earlier_content.age(row)) for row, need in needs
            if isinstance(need, Content) and row.kind == "file"
            and content(tx, need.path).hash == row.content_hash]


def _is_together(tx: Tx, regions: Rewound) -> bool:
    """Whether the work in these regions cannot be told apart from work beside them, while the
    former whole file is kept."""
    return (_was(tx, regions).hash in (UNSEEN, UNREADABLE) and regions.first is not None
            and content(tx, regions.path).hash not in (None, UNSEEN, UNREADABLE))


def together(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> list[str]:
    """Files that a review has as a whole, because the work in their parts cannot be told apart.

    Raises:
        Unready: the files have to be looked at.
    """
    matches = _with_what_was(svc, tx, _by_file(svc, [row for row in rows if is_written(row)]))
    return [path_of(theirs[0]) for rewound, theirs in matches.items() if _is_together(tx, rewound)]


def _whole_before(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> str | None:
    """The whole file when the work on these regions began; None if others may have changed its rest
    since. In a launch's worktree only one agent works, so everything is its work."""
    first = min(rows, key=earlier_content.age)
    alone = svc.is_launched_worktree(first.worktree)
    return earlier_content.whole_of(tx, first) if alone else None


def _as_directory(svc: Service, tx: Tx, row: LeaseRow, path: str) -> dict[str, str]:
    """What is below a leased name that has become a directory. All of it is new."""
    place = Place(path, None, True)
    tx.looked.require([place])
    try:
        located = tx.looked.located(place)
        if not located.there or located.resource.kind != "dir":
            return {}
        return tx.looked.below(Below(
            row.worktree or svc.root, located.resource.name, "dir", located.resource.scope,
            svc.settings.review.files_max * 2)).files
    except Refusal:
        return {}


def _is_empty(tx: Tx, need: Below) -> bool:
    """Whether there is nothing in a leased directory."""
    with contextlib.suppress(Refusal):
        return need.kind == "dir" and not tx.looked.below(need).files
    return False


def _stands_for(need: Below) -> Content:
    """A file or a link where a leased directory was."""
    return Content(f"{need.root}/{need.name.rstrip('/')}")


def _anything_changed(tx: Tx, needs: Iterable[tuple[LeaseRow, Content | Below]],
                      below: Iterable[_Listing], regions: Iterable[Rewound]) -> bool:
    """Whether anything has changed since the work began. A file may have been renamed a moment ago,
    and its new name will be leased soon. Something else may be at the old name."""
    return any(listing.before != listing.now for listing in below) or any(
        content(tx, need.path).hash != row.content_hash
        for row, need in needs if isinstance(need, Content)) or any(
        content(tx, rewound.path).hash != _was(tx, rewound).hash for rewound in regions)


def _compare_file(svc: Service, tx: Tx, compare: Callable[..., None], row: LeaseRow,
                  place: str, now_at: str | None, over: str | None) -> None:
    """A leased file, by its absolute path; where it is at another's place now, its own name, too;
    where it has become a directory, what is in that."""
    path, began, now = path_of(row), row.content_hash, content(tx, place)
    if now_at is not None and began is not None and _is_gone(svc, tx, row, [path]):
        compare(row, path, began, Bytes(None))
        began = None
    if now_at is not None and over is not None:
        began = over
    compare(row, now_at or path, began, now)
    if now.hash is None:
        _compare_inside(svc, tx, compare, row, place)


def _compare_inside(svc: Service, tx: Tx, compare: Callable[..., None], row: LeaseRow,
                    place: str) -> None:
    for path, digest in _as_directory(svc, tx, row, place).items():
        compare(row, path, None, Bytes(digest, kept=True))


def _below(svc: Service, tx: Tx, row: LeaseRow, need: Below, now_at: str | None) -> _Listing:
    """What was below a lease at its grant, what is there now, and which of the former is missing.
    """
    before = {
        file.path: str(file.hash)
        for file in tx.each(ContentRow, "baselines_of", row.fencing_token)}
    if now_at is not None and not _is_gone(svc, tx, row, list(before)):
        before = {now_at + path[len(row.file_path):]: h for path, h in before.items()}
    now, unlisted = {}, ""
    try:
        now = tx.looked.below(need).files
    except Refusal as refusal:
        # So many new files appeared that they are not listed: the leases end all the same.
        unlisted = refusal.message
    left = {path: Content(svc.where(row.worktree, path)) for path in sorted(set(before) - set(now))}
    return _Listing(before, now, left, unlisted)


def _is_gone(svc: Service, tx: Tx, row: LeaseRow, paths: Sequence[str]) -> bool:
    """Whether nothing is left at these paths. Then moving them was part of the work. If something
    is there, it is another's."""
    needs = [Content(svc.where(row.worktree, path)) for path in paths]
    tx.looked.require(needs)
    return all(content(tx, need.path).hash is None for need in needs)


def _by_file(svc: Service, rows: Sequence[LeaseRow],
             now_at: str | None = None) -> dict[Rewound, list[LeaseRow]]:
    """Leases on regions, by what has to be looked at for those of one file together."""
    files: dict[str, list[LeaseRow]] = {}
    for row in rows:
        if earlier_content.is_part(row):
            files.setdefault(svc.where(row.worktree, now_at or path_of(row)), []).append(row)
    return {Rewound(path, earlier_content.newest_first(theirs)): theirs
            for path, theirs in files.items()}


def _with_what_was(svc: Service, tx: Tx, files: dict[Rewound, list[LeaseRow]]
                   ) -> dict[Rewound, list[LeaseRow]]:
    """The needs, completed. Changed files get the content at the grant. Missing files get the last
    seen content, if it is kept. Files with a missing region get what others have leased."""
    tx.looked.require([*files, *(Content(file.path) for file in files)])
    result = {}
    for rewound, rows in files.items():
        now = content(tx, rewound.path).hash
        if now is None or _was(tx, rewound).hash != now:
            last = max(rows, key=lambda row: row.fencing_token)
            rewound = msgspec.structs.replace(
                rewound, wholes=earlier_content.wholes_of(tx, rows),
                others=meanwhile.leased_by_others(svc, tx, rows) if _is_one_gone(tx, rewound)
                else None)
            seen = (tx.first(VersionRow, "version_get", path_of(last))
                    if last.worktree is None else None)
            was = None if seen is None or seen.seen_at < last.began else seen.hash or seen.was
            if was is None or not tx.has("blob_has", was):
                was = rewound.last
            rewound = msgspec.structs.replace(rewound, gone=was if now is None else None)
        result[rewound] = rows
    return result


def _is_one_gone(tx: Tx, regions: Rewound) -> bool:
    """Whether one of these regions is not there by its name: it was removed or renamed."""
    there = tx.looked.names(regions.path)
    return any(was is not None and name not in there for name, was in regions.parts)


def _of_regions(regions: Iterable[Rewound]) -> list[AnyNeed]:
    return [need for rewound in regions for need in (rewound, Content(rewound.path))]


def _was(tx: Tx, need: Rewound) -> Bytes:
    try:
        return tx.looked.made(need)
    except Refusal:
        return Bytes(UNSEEN)


def _needed(svc: Service, row: LeaseRow, now_at: str | None = None) -> Content | Below:
    """What has to be looked at to compare a leased resource with its former state."""
    if row.kind in ("file", "region"):
        return Content(svc.where(row.worktree, now_at or path_of(row)))
    name, scope = row.file_path, row.scope
    if now_at is not None:
        name, scope = now_at, path_scope(now_at, svc.fold_case)
    return Below(row.worktree or svc.root, name, row.kind, scope, svc.settings.review.files_max * 2)


def needed(svc: Service, rows: Sequence[LeaseRow]) -> list[AnyNeed]:
    """What to look at before several leases are closed."""
    rows = [row for row in rows if is_written(row)]
    return [*(_needed(svc, row) for row in rows if not earlier_content.is_part(row)),
            *_of_regions(_by_file(svc, rows))]


def look_at(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> None:
    """Require all that closing these leases has to know, before anything is recorded.

    Raises:
        Unready: it was not.
    """
    rows = [row for row in rows if is_written(row)]
    tx.looked.require([*needed(svc, rows), *earlier_content.further_back(svc, tx, rows).values()])
    regions = _with_what_was(svc, tx, _by_file(svc, rows))
    tx.looked.require(regions)
    needs = [(row, _needed(svc, row)) for row in rows if not earlier_content.is_part(row)]
    files = [(row, need.path, content(tx, need.path).hash) for row, need in needs
             if isinstance(need, Content)]
    tx.looked.require([
        *(Place(path, None, True) for _, path, now in files if now is None),
        *(Place(rewound.path, None, True) for rewound in regions
          if content(tx, rewound.path).hash is None),
        *(_stands_for(need) for _, need in needs
          if isinstance(need, Below) and _is_empty(tx, need)),
    ])
    earlier_content.linked(svc, tx, [(row, now) for row, _, now in files], rows)


def is_written(row: LeaseRow) -> bool:
    """Whether its holder may have changed what is leased."""
    return row.kind != "key" and (row.mode != "shared" or row.agreed_as is not None)


def who_goes_on(tx: Tx, row: LeaseRow) -> list[str]:
    """The other parties of an agreement that continue to write the same. Their work cannot be told
    apart."""
    if row.agreed_as is None:
        return []
    mine = rule.as_resource(row.file_path, row.kind, row.scope)
    return sorted({
        other.locked_by for other in tx.each(LeaseRow, "leases_agreed", row.agreed_as, tx.now)
        if other.locked_by != row.locked_by
        and overlaps(mine, rule.as_resource(other.file_path, other.kind, other.scope))})


def path_of(row: LeaseRow) -> str:
    return resource_names.path_of(row.file_path, row.kind)


def content(tx: Tx, path: str) -> Bytes:
    """The content at an absolute path.

    Raises:
        Unready: it has to be looked at.
    """
    try:
        return tx.looked.content(path)
    except Refusal:
        return Bytes(UNSEEN)


class _Comparison(NamedTuple):
    """Files that are compared with what leases began with: those that differ are `found`."""

    svc: Service
    tx: Tx
    found: Found
    further: earlier_content.Further

    def compare(self, lease: LeaseRow, path: str, baseline: str | None, now: Bytes,
                was: Bytes | None = None) -> None:
        """Note a file of a lease, if it is not what it was."""
        tx = self.tx
        earlier = self.further.get((lease.fencing_token, path))
        if earlier is not None:
            was = _was(tx, earlier)
            baseline = was.hash
        if (path, lease.worktree) in self.found or now.hash == baseline:
            return
        if was is not None:
            tx.keep_found(was)
        have = now.hash is None or tx.keep_found(now)
        kept = have and (baseline is None or tx.has("blob_has", baseline))
        change = "created" if baseline is None else "deleted" if now.hash is None else "modified"
        self.found[path, lease.worktree] = ev.FlaggedFile(
            path=path, scope=path_scope(path, self.svc.fold_case), change=change, kept=kept,
            baseline_hash=baseline, flagged_hash=now.hash, worktree=lease.worktree,
            inode=lease.inode if lease.kind == "file" and not path.startswith(
                f"{lease.file_path}/") else None,
        )


def unseen(svc: Service, rows: Sequence[LeaseRow]) -> list[ev.FlaggedFile]:
    """Files that were leased by name and could not be looked at."""
    return [
        ev.FlaggedFile(
            path=path_of(row), scope=path_scope(path_of(row), svc.fold_case), change="modified",
            kept=False, baseline_hash=row.content_hash, flagged_hash=UNSEEN, worktree=row.worktree,
        )
        for row in rows if row.kind == "file" and is_written(row)
    ]
