"""The plan of a verdict: each file of a review as it is now, and as it is to become.

The plan is made in a worker before anything is decided. It reads files, merges, and keeps large
contents in `.coord/blobs`. It changes no file and no row. The conditions that must hold again when
the verdict begins (`may`, `free_to_write`) are here, too, so both sides ask the same.
"""

from __future__ import annotations

import secrets
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.files.beneath import Root
from coordinator.files.content import digest, is_executable, is_link
from coordinator.files.verdict_steps import fitting_mode
from coordinator.kernel import repository_files
from coordinator.kernel.core import Service, listed
from coordinator.kernel.leasing import free_windows
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.kernel.repository_files import Bytes
from coordinator.looking.facts import Lapsed, Unready
from coordinator.merging.act import merge_texts
from coordinator.merging.git_merge import GitFailed
from coordinator.regions import json_commas
from coordinator.regions.languages import language_of
from coordinator.rules import leases as lease_rule
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.slices.review import parts, reviews
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, ReviewFileRow, ReviewRow
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, short
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource, from_root, resource

#: Permission bits of a file whose own are not known.
PLAIN_MODE = 0o644
#: How long a merge may take (seconds).
MERGE_S = 30.0
#: Files that a refusal names.
NAMED_MAX = 10


@dataclass(slots=True)
class Plan:
    """What a verdict would do.

    Attributes:
        steps: files to be written, in order; none: it writes no file.
        keeps: contents that are overwritten, or were made: to be kept.
        inodes: which file each path is now, by path.
        parts: what it is about, where that is not the whole review.
        seen: the review's files, and from which content to which they went.
        beside: of files of which others hold parts, by path: the parts that are written.
    """

    review: str
    what: str
    steps: list[ev.VerdictStep] = field(default_factory=list)
    keeps: list[Bytes] = field(default_factory=list)
    inodes: dict[str, str | None] = field(default_factory=dict)
    parts: list[ev.ReviewPart] = field(default_factory=list)
    seen: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    beside: dict[str, list[Resource]] = field(default_factory=dict)


def plan(svc: Service, view: View, request: rq.ReviewDecide | rq.ReviewUndo,
         row: ReviewRow) -> Plan:
    """Look at the files, and work out what each is to become.

    Raises:
        Refusal: why the verdict is not possible; nothing was changed.
    """
    may(view, request, row)
    verdict = None if isinstance(request, rq.ReviewUndo) else request.verdict
    undo = verdict is None
    edits = isinstance(request, rq.ReviewDecide) and request.edited is not None
    result = Plan(row.review_id, "undo" if undo else "keep" if edits else "revert")
    files = view.each(ReviewFileRow, "review_files_of", row.review_id)
    result.seen = [reviews.sides(file) for file in files]
    made: dict[str, Bytes] = {}
    if isinstance(request, rq.ReviewDecide):
        chosen = parts.choose(svc, view, request, row, files)
        files, result.parts, made = chosen.files, chosen.parts, chosen.made
        result.keeps += made.values()
    if verdict != "revert" and not edits and not (undo and row.state in ("reverted", "kept")):
        return result  # it writes no file
    with ExitStack() as stack:
        look = _Look(svc, view, row, stack, files, made)
        wanted = look.undo(files, result) if undo else look.take_out(files, result)
        look.write_down(wanted, result)
    return result


def may(view: View, request: rq.ReviewDecide | rq.ReviewUndo, row: ReviewRow) -> None:
    """Whether this review allows this verdict now.

    Raises:
        Refusal: BAD_TRANSITION.
    """
    if isinstance(request, rq.ReviewUndo):
        reviews.may_undo(view, row)
    else:
        reviews.may_decide(view, row, request.verdict)


def free_to_write(svc: Service, tx: Tx, row: ReviewRow, made: Plan) -> None:
    """Check that nobody holds the files of a plan, or in files of which others hold parts what it
    writes, and that nobody is writing one of these.

    Raises:
        Refusal: LOCKED; with `window` where that is over in a moment.
        Unready: what has lapsed there has to be closed before.
    """
    lapsed: dict[Lapsed, None] = {}
    for step in made.steps:
        parts = made.beside.get(step.path)
        rivals = _rivals(tx, step.path, step.scope)
        for lease in rivals:
            if lease.expires_at <= tx.now:
                lapsed[Lapsed(lease.locked_by, lease.task_id)] = None
            elif parts is None or not _is_beside(lease, parts):
                raise _held(lease, step.path, made.what)
    if lapsed:
        raise Unready(lapsed=lapsed)
    free_windows.check(svc, tx, [step.path for step in made.steps if step.path in made.beside],
                       undone=_done(made.what), again="Repeat it.")


def _rivals(view: View, path: str, scope: str) -> list[LeaseRow]:
    asked = as_resource(path, "file", scope)
    leases = leases_near(view, asked)
    return [lease for lease in leases if lease_rule.conflicts(asked, "exclusive", "", lease)]


def _is_beside(lease: LeaseRow, parts: Sequence[Resource]) -> bool:
    """Whether a lease is on a part of the file, and on none of these."""
    held = as_resource(lease.file_path, lease.kind, lease.scope)
    return lease.kind == "region" and not any(overlaps(held, part) for part in parts)


def _done(what: str) -> str:
    return {"revert": "reverted", "keep": "written", "undo": "undone"}[what]


def _held(lease: LeaseRow, path: str, what: str) -> Refusal:
    name = lease.file_path if lease.kind == "region" else path
    return Refusal(
        Code.LOCKED,
        f"{file_names.shown(name)} is leased by {lease.locked_by} until "
        f"{short(from_iso(lease.expires_at))}; nothing was {_done(what)}.",
        next="Repeat when it is free, or `coord unlock "
        f"{shlex.quote(from_root(lease.file_path))} --agent {lease.locked_by} --force`.",
        conflicts=[{"resource": lease.file_path, "holder": lease.locked_by}],
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One file: what is there, and what is to be. `mode`: permission bits, if they are known."""

    file: ReviewFileRow
    now: Bytes
    new: str | None
    mode: int | None = None


class _Look:
    """At the files of one review."""

    def __init__(self, svc: Service, view: View, row: ReviewRow, stack: ExitStack,
                 files: list[ReviewFileRow], made: dict[str, Bytes]) -> None:
        self._made = made
        self._svc, self._view, self._row, self._stack = svc, view, row, stack
        #: Links that belong to the work itself; what is below them is not there now.
        self._own_links = {file.path for file in files
                           if is_link(file.flagged_hash or "") or is_link(file.baseline_hash or "")}
        self._roots: dict[str | None, Root | None] = {}

    def take_out(self, files: list[ReviewFileRow], plan: Plan) -> list[_Wanted]:
        """Each to its baseline; where somebody changed it since, only the partial work goes out."""
        wanted = []
        for file in files:
            held = self._held_parts(file, plan.what)
            now = self._now(file)
            if now.hash == file.baseline_hash:
                continue
            if file.baseline_hash not in (None, *self._made) and (
                    self._view.source(file.baseline_hash) is None):
                raise Refusal(
                    Code.INVALID,
                    f"The earlier bytes of {file_names.shown(file.path)} were not kept "
                    f"({reviews.why_not_kept(self._view, file)}), so coord cannot write them. "
                    "Nothing was reverted.",
                    next=f"If git or a backup has them ({file.baseline_hash}), restore it from "
                    f"there; then `coord review keep {self._row.review_id}`.",
                )
            new = file.baseline_hash
            if now.hash != file.flagged_hash:
                new = self._merged(file, now, plan)
            self._beside(held, file, now, new, plan)
            wanted.append(_Wanted(file, now, new))
        return wanted

    def undo(self, files: list[ReviewFileRow], plan: Plan) -> list[_Wanted]:
        """Each that the verdict wrote to what was there before."""
        wanted, changed = [], []
        written = _done("revert" if self._row.state == "reverted" else "keep")
        for file in files:
            if not file.is_written:
                continue
            held = self._held_parts(file, "undo")
            now = self._now(file)
            if now.hash == file.verdict_hash:
                continue
            if file.verdict_hash is not None and self._view.source(file.verdict_hash) is None:
                raise Refusal(
                    Code.INVALID,
                    f"The bytes of {file_names.shown(file.path)} before the verdict are "
                    "not kept any more. Nothing was undone.",
                    next="Take them from git or from a backup, if they are there; what the "
                    "verdict wrote stays.",
                )
            new, mode = file.verdict_hash, file.verdict_mode
            if now.hash != file.written_hash:  # what the revert took out is put back beside it
                new, mode = self._merge(file.path, now, file.verdict_hash, file.written_hash,
                                        plan), None
                if new is None:
                    changed.append(file.path)
                    continue
            self._beside(held, file, now, new, plan)
            wanted.append(_Wanted(file, now, new, mode))
        if changed:
            names = listed([file_names.shown(path) for path in changed], NAMED_MAX)
            raise Refusal(
                Code.VERSION_CHANGED,
                f"{names} {'was' if len(changed) == 1 else 'were'} changed since "
                f"{'it was' if len(changed) == 1 else 'they were'} {written}, so that what was "
                "there before does not fit in any more; nothing was undone.",
                next="If another verdict did that, undo it first (`coord explain "
                f"{shlex.quote(from_root(changed[0]))}`). `coord review show "
                f"{self._row.review_id} --json` has the partial work.",
                path=changed[0], paths=changed,
            )
        return wanted

    def write_down(self, wanted: list[_Wanted], plan: Plan) -> None:
        """The steps: what goes first, so that its place is free for what comes."""
        wanted.sort(key=lambda wanted: wanted.new is not None)
        for n, other_wanted in enumerate(wanted):
            file, now = other_wanted.file, other_wanted.now
            if not now.kept:
                raise Refusal(
                    Code.LIMIT,
                    f"What is at {file_names.shown(file.path)} now could not be kept (more than "
                    "review.kept_bytes_max is, or the disk is full), so the verdict could not be "
                    f"undone. Nothing was {_done(plan.what)}.",
                    next="`coord compact` removes what nothing needs; or raise the limit.",
                )
            root = self._roots[file.worktree]
            plan.inodes[file.path] = here = root.identity(file.path) if root is not None else None
            plan.keeps.append(now)
            plan.steps.append(ev.VerdictStep(
                path=file.path, scope=file.scope, worktree=file.worktree, old=now.hash,
                old_mode=now.mode, new=other_wanted.new, new_mode=self._mode(other_wanted),
                aside=f".coord-{self._row.review_id}-{n}-{secrets.token_hex(4)}.tmp",
                in_place=now.links > 1 and here is not None and here == file.inode,
            ))

    # ------------------------------------------------------------ one file

    def _now(self, file: ReviewFileRow) -> Bytes:
        root = self._root(file.worktree)
        if root is None:
            raise Refusal(
                Code.VERSION_CHANGED,
                f"The working tree {file.worktree or self._svc.tree.root}, in which "
                f"{file_names.shown(file.path)} lay, is gone. Nothing was changed.",
                next=f"`coord review show {self._row.review_id}` has both sides; "
                f"{self._otherwise()}.",
            )
        now = repository_files.look(
            self._svc, file.worktree, file.path, keep=True, root=root, strict=True
        )
        if now.hash == repository_files.BEHIND:
            link = root.link_above(file.path)
            if link not in self._own_links:
                raise self._behind(file, link or "a directory above")
            now = repository_files.NOTHING
        if now.hash == repository_files.UNREADABLE:
            raise Refusal(
                Code.STORAGE, f"{file_names.shown(file.path)} cannot be read. Nothing was changed.",
                next="Restore access to it, then repeat.", path=file.path,
            )
        return now

    def _behind(self, file: ReviewFileRow, link: str) -> Refusal:
        return Refusal(
            Code.VERSION_CHANGED,
            f"{file_names.shown(link)} is a symlink now, and was a directory when "
            f"{file_names.shown(file.path)} was leased. coord does not follow it. Nothing was "
            "changed.",
            next=f"Put the directory back, then repeat; {self._otherwise()}.", path=file.path,
        )

    def _otherwise(self) -> str:
        """What is left to do where the bytes cannot be put back."""
        review = self._row.review_id
        return (f"`coord review keep {review}` closes it" if self._row.state == "open" else
                f"{review} stays {self._row.state}")

    def _root(self, worktree: str | None) -> Root | None:
        if worktree not in self._roots:
            try:
                opened: Root | None = self._stack.enter_context(
                    repository_files.root_of(self._svc, worktree)
                )
            except OSError:
                opened = None
            self._roots[worktree] = opened
        return self._roots[worktree]

    def _held_parts(self, file: ReviewFileRow, what: str) -> list[LeaseRow]:
        """The leases of others on a file. If they hold more than parts, the file is not written."""
        held = [lease for lease in _rivals(self._view, file.path, file.scope)
                if lease.expires_at > self._view.now]
        for lease in held:
            if not _is_beside(lease, ()):
                raise _held(lease, file.path, what)
        return held

    def _list_changed(self, path: str, now: Bytes, after: bytes | None) -> Sequence[str] | None:
        """The regions that would change; None if nobody can tell."""
        if now.data is None or after is None or is_link(now.hash or ""):
            return None
        names, broken = self._svc.regions.changed(path, now.data, after)
        return None if broken else names

    def _beside(self, held: Sequence[LeaseRow], file: ReviewFileRow, now: Bytes, new: str | None,
                plan: Plan) -> None:
        """A file of which others hold parts is written beside these, as a commit of regions is.

        Raises:
            Refusal: LOCKED: it would change what one of them holds, or nobody can tell.
        """
        if not held:
            return
        after = None if new is None else (
            next((keep.data for keep in plan.keeps if keep.hash == new), None) or self._blob(new))
        names = self._list_changed(file.path, now, after)
        parts = [resource(f"{file.path}::{name}", "region", fold_case=self._svc.fold_case)
                 for name in names or ()]
        for lease in held:
            if not parts or not _is_beside(lease, parts):
                raise _held(lease, file.path, plan.what)
        plan.beside[file.path] = parts

    def _mode(self, wanted: _Wanted) -> int:
        """Permission bits of the new file: those of the one that is there, as far as they fit."""
        if wanted.new is None or is_link(wanted.new):
            return 0
        if wanted.mode is not None:
            return fitting_mode(wanted.mode, wanted.new) if not _fits(wanted.mode,
                                                                      wanted.new) else wanted.mode
        now = wanted.now
        if now.hash is not None and not is_link(now.hash) and _fits(now.mode, wanted.new):
            return now.mode
        mode = self._view.blob_mode(wanted.new)
        if mode is not None and _fits(mode, wanted.new):
            return mode
        there = now.hash is not None and not is_link(now.hash)
        return fitting_mode(now.mode if there else PLAIN_MODE, wanted.new)

    def _merged(self, file: ReviewFileRow, now: Bytes, plan: Plan) -> str:
        """The present content without the partial work; its name.

        Raises:
            Refusal: VERSION_CHANGED: that is not possible without destroying later work.
        """
        name = self._merge(file.path, now, file.baseline_hash,
                           file.flagged_hash or file.last_hash, plan)
        if name is None:
            raise Refusal(
                Code.VERSION_CHANGED,
                f"{file_names.shown(file.path)} was changed after it was flagged, in the same "
                f"lines: {'reverting' if plan.what == 'revert' else 'overwriting'} it would "
                f"destroy that. Nothing was {_done(plan.what)}.",
                next=f"`coord review show {self._row.review_id}`, settle "
                f"{file_names.shown(file.path)} by hand, then "
                f"`coord review keep {self._row.review_id}`.",
                path=file.path,
            )
        return name

    def _merge(self, path: str, now: Bytes, to: str | None, from_: str | None,
               plan: Plan) -> str | None:
        """The present content with the change from one content to another; its name. None if that
        would destroy later work."""
        wanted, left = (self._blob(name) if repository_files.can_merge(name) else None
                        for name in (to, from_))
        current = now.data if repository_files.can_merge(now.hash) else None
        data = _merge(wanted, left, current, path)
        if data is None:
            return None
        assert now.hash is not None and from_ and to
        here, theirs = is_executable(now.hash), is_executable(from_)
        name = digest(data, executable=here if here != theirs else is_executable(to))
        plan.keeps.append(repository_files.stow(self._svc, name, data))
        return name

    def _blob(self, name: str | None) -> bytes | None:
        if name in self._made:
            return self._made[name].data
        return self._view.blob(name, self._svc.settings.review.file_bytes_max)


def _fits(mode: int, name: str) -> bool:
    return bool(mode & 0o100) == is_executable(name)


def _merge(before: bytes | None, flagged: bytes | None, current: bytes | None,
           path: str) -> bytes | None:
    """Take the partial work (before -> flagged) out of `current`; None if that conflicts.

    It is a three-way merge with the flagged bytes as the common ancestor, by `git merge-file`. If
    that fails, as for two adjacent functions of which one was removed before, it merges by regions.
    """
    if before is None or flagged is None or current is None:
        return None
    texts = before, flagged, current
    with_commas = language_of(path, current) == "json" and all(
        json_commas.mended(text) == text for text in texts)
    if with_commas:  # a comma is no difference between two members
        before, flagged, current = (json_commas.ended(text) for text in texts)
    merged = _merge_lines(before, flagged, current)
    if merged is None:
        merged = _merge_regions(before, flagged, current, path)
    return json_commas.mended(merged) if merged is not None and with_commas else merged


def _merge_regions(before: bytes, flagged: bytes, current: bytes, path: str) -> bytes | None:
    try:
        merged = merge_texts(flagged, current, before, path)
    except GitFailed:
        return None
    return merged.data if merged.by != "conflict" else None


def _merge_lines(before: bytes, flagged: bytes, current: bytes) -> bytes | None:
    with tempfile.TemporaryDirectory(prefix="coord-merge-") as folder:
        names = []
        for name, data in (("current", current), ("flagged", flagged), ("before", before)):
            (Path(folder) / name).write_bytes(data)
            names.append(str(Path(folder) / name))
        try:
            done = subprocess.run(
                ["git", "merge-file", "-p", "-q", *names], capture_output=True, timeout=MERGE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    return done.stdout if done.returncode == 0 else None


