"""One file, one key (invariant 10): from a typed name to the one name of what it means.

A `Tree` is one repository. `resolve` takes a path, glob, region or key as a person or an agent
wrote it and answers with the canonical `Resource`. So all spellings of one file get equal scopes:
relative and absolute, `.` and `..`, symlinks, another case on a disk that folds case, NFC and NFD,
the twin in a linked worktree. Hard links are two names for one thing, so each answer carries the
inode.

The answer holds for the instant of the call, because a symlink can be moved afterwards. No file is
opened, written or locked here. `..` is taken as the kernel takes it, after following links, or by
its letters where the path does not exist.
"""

# Paths are plain strings here: this runs before every write of an agent, and Path is slow.
# ruff: noqa: PTH115, PTH116, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from coordinator.files.identity import identity
from coordinator.files.plain_paths import (
    Plain,
    look_at,
    look_in_root,
    owner_of,
    parse_path,
    parse_typed_path,
)
from coordinator.files.real_paths import PART_BYTES_MAX, check_parts, printable, real_path, shown
from coordinator.files.roots import checkout, find_root, folds_case, is_prepared, linked_worktrees
from coordinator.files.separate_folders import check_ours, separate, separate_trees
from coordinator.rules import globs
from coordinator.words import file_names, resource_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Link, Located

__all__ = ["Located", "Tree", "find_root"]

#: Links one after the other that a path is followed through: as many as Linux follows.
LINKS_MAX = 40
_DIR = stat.S_IFDIR
_FILE = stat.S_IFREG


class Tree:
    """One repository and its linked worktrees. Safe to use from several threads.

    Args:
        root: its root, as `find_root` gives it.
        fold_case: whether the disk folds case; found out if not given.

    Attributes:
        root: the root's real path.
        fold_case: whether scopes are casefolded.
        alone: whether no worktree is linked to this one, by the last look.
        apart: the folders that persons have separated from it, when the tree was made.
    """

    def __init__(self, root: Path, *, fold_case: bool | None = None) -> None:
        real = os.path.realpath(root)
        self.root = Path(real)
        self.fold_case = folds_case(real) if fold_case is None else fold_case
        self._root = real
        self._base = real.rstrip("/") + "/"
        found_checkout = checkout(real)
        self._common = found_checkout.common if found_checkout else None
        # The root may be below the top of its worktree; then it is so in every worktree.
        self._below = os.path.relpath(real, found_checkout.top) if found_checkout else "."
        self._worktrees_dir = os.path.join(found_checkout.common,
                                           "worktrees") if found_checkout else ""
        self._stamp: tuple[int, int, int] | None = None
        self._linked: tuple[str, ...] = ()
        self.alone = True
        self.apart = separate_trees(self.root)
        #: The possible bases of names, longest first, because a worktree may be inside another.
        self._bases: tuple[str, ...] = (self._base,)
        self._look_for_worktrees()

    def worktrees(self) -> list[str]:
        """The real paths of the linked worktrees' counterparts of the root; not the root itself."""
        self._look_for_worktrees()
        return [base.rstrip("/") for base in self._linked]

    def refresh(self) -> None:
        """Read the list of worktrees again, even if nothing seems to have changed."""
        self._stamp = None
        self._look_for_worktrees()

    def resolve(
        self, text: str, cwd: str | None = None, *, literal: bool = False,
        seen: set[str] | None = None, link: Link = "followed",
    ) -> Located:
        """Find the resource that `text` means.

        Args:
            text: a path, directory, glob, region or key, as typed. `~` is not expanded.
            cwd: where a relative path starts, if that is in a worktree of this repository (with
                `:/` before it: at the root of that); otherwise it starts at the root.
            literal: `text` is the path of one file or directory, whatever characters it has (from
                a hook or the watcher, say): `app/[id].tsx` is no glob, `a:b` no key.
            seen: directories found to be no links, at the same instant: added to, and not looked
                at again. Never longer-lived than a transaction.
            link: the meaning of a `literal` text that ends in a symlink.

        A text with wildcards, or with a word and a colon, that exists as it is written is taken as
        that file. What begins with `key:` is always a key.

        Raises:
            Refusal: INVALID (malformed, in `.git` or `.coord`, a loop of symlinks, a file where a
                directory must be), OUTSIDE_REPO, LIMIT (of globs), STORAGE (the disk refused).
        """
        if not seen and self._common is not None:
            self._look_for_worktrees()
        if not literal and text.startswith(resource_names.FROM_ROOT):
            text = text.removeprefix(resource_names.FROM_ROOT) or resource_names.WHOLE
            cwd = None if cwd is None else self.worktree_of(cwd)
        if cwd is None and not literal and not self.fold_case:  # nearly always
            plain = parse_typed_path(text, self._base, self._bases)
            located = self._resolve_plain(plain, seen) if plain is not None else None
            if located is not None:
                return located
        if literal:
            resource_names.check_text(text)
            return self._resolve_path(text, cwd, seen, link)
        return self._resolve_typed(text, cwd, seen)

    def _resolve_typed(self, text: str, cwd: str | None, seen: set[str] | None) -> Located:
        """A text that may be a glob, a key or a region."""
        kind, part, rest = resource_names.parse(text)
        if kind == "file" or kind == "dir":
            return self._resolve_path(part, cwd, seen)
        if kind == "key":
            if resource_names.may_be_file(rest) and self._exists_as_written(rest, cwd):
                return self._resolve_path(rest, cwd)
            return Located(resource_names.resource(rest, "key"), None, None)
        if kind == "region":
            return self._resolve_region(text, part, rest, cwd)
        if self._exists_as_written(part, cwd):
            return self._resolve_path(part, cwd)
        return self._resolve_glob(part, cwd)

    def relative(self, path: str) -> str | None:
        """The repo-relative name of a real path; None if it is outside.

        The root itself is `""`. Costs no look at the disk.
        """
        for base in self._bases:
            if path.startswith(base):
                return path[len(base) :]
            if len(path) == len(base) - 1 and base.startswith(path):
                return ""
        return None

    # --- paths ------------------------------------------------------------------------------

    def _resolve_path(
        self, text: str, cwd: str | None, seen: set[str] | None = None, link: Link = "followed",
    ) -> Located:
        start = self._base if cwd is None else self._start(cwd, text)
        if not start.isascii() and text[0] != "/":
            resource_names.check_bytes((self.relative(start) or "") + text)
        plain = None if self.fold_case else parse_path(text, start, self._bases, self._base)
        located = self._resolve_plain(plain, seen) if plain is not None else None
        return located or self._resolve_real(text if text[0] == "/" else start + text, text, link)

    def _resolve_plain(self, plain: Plain, seen: set[str] | None) -> Located | None:
        """Resolve the common case quickly: a path without `..`, links and oddities.

        Looks once at each part below the root that is not among the `seen`. None hands the case to
        `_resolve_real`.
        """
        path, above = plain.path, plain.above
        try:
            if seen is None or above not in seen:
                position, look = plain.start, look_at if plain.worktree else look_in_root
                while (position := path.find("/", position)) > 0:
                    status = look(path[:position])
                    if status is None:
                        break  # nor is anything below it
                    if status.st_mode & 0o170000 != _DIR:
                        return None
                    if is_prepared(path[:position]):
                        raise separate(path[:position], self._base, path)
                    position, look = position + 1, look_at
                else:
                    status = look_at(path)
                    if seen is not None:
                        seen.add(above)
            else:
                status = look_at(path)
        except OSError:
            return None
        as_file = plain.as_file
        if status is None and len(as_file.name) > PART_BYTES_MAX:
            check_parts(as_file.name)
        if path[: plain.start] != self._base:
            check_ours((self._base,), as_file.name, path)
        if status is None:
            return Located(as_file, None, path, plain.worktree, there=False)
        return self._take_plain(plain, status)

    def _take_plain(self, plain: Plain, status: os.stat_result) -> Located | None:
        """The resource at a plain path; None if it is neither a file nor a directory."""
        path, as_file = plain.path, plain.as_file
        mode = status.st_mode & 0o170000
        if mode == _FILE:
            return Located(as_file, identity(path, status), path, plain.worktree, status.st_nlink,
                           status.st_size)
        if mode == _DIR:
            if is_prepared(path):
                raise separate(path, self._base, path)
            return Located(resource_names.resource(as_file.name, "dir"), None, path, plain.worktree)
        return None

    def _resolve_real(self, path: str, text: str, link: Link) -> Located:
        """Resolve any path, by asking the kernel (or `realpath`) where it really leads."""
        real, status = real_path(path, text, link)
        name = self._inside(real, text)
        if self.fold_case or not name.isascii():
            base = real[: len(real) - len(name)]
            spelled = self._spell(base, name)
            if spelled != name:
                # Under its other spelling it may itself be a link.
                real, status = real_path(base + spelled, text, link)
                name = self._inside(real, text)
        check_parts(name)
        if not name.isascii():  # it may have led through a link
            resource_names.check_bytes(file_names.from_bytes(os.fsencode(name)))
        self._check_private(name)
        is_dir = status is not None and stat.S_ISDIR(status.st_mode)
        is_dir = is_dir or name == "" or path.endswith(("/", "/.", "/.."))
        kind: resource_names.Kind = "dir" if is_dir else "file"
        resource = resource_names.resource(name, kind, fold_case=self.fold_case)
        worktree = self.worktree_of(real)
        through = self._links_of(path, text) if link == "followed" and real != path else ()
        if status is not None and stat.S_ISREG(status.st_mode):
            return Located(resource, identity(real, status), real, worktree, status.st_nlink,
                           status.st_size, through=through)
        return Located(resource, None, real, worktree, there=status is not None,
                       is_link=status is not None and stat.S_ISLNK(status.st_mode), through=through)

    def _links_of(self, path: str, text: str) -> tuple[str, ...]:
        """The true name of the symlink that a path ends in, and of each link on its way, if they
        are in this repository."""
        try:
            first = self._resolve_real(path, text, "itself")
        except Refusal:
            return ()
        if not first.is_link or first.path is None:
            return ()
        result, folder = list[str](), os.path.dirname(first.path)
        rest = [os.path.basename(first.path)]
        with suppress(OSError):  # nothing is there: it leads through no further one
            while rest and len(result) < LINKS_MAX:
                part = rest.pop(0)
                if part in ("", "."):
                    continue
                below = os.path.dirname(folder) if part == ".." else os.path.join(folder,
                                                                                  part)
                if not stat.S_ISLNK(os.lstat(below).st_mode):
                    folder = below
                    continue
                if self.relative(below) is not None:
                    result.append(below)
                target = os.readlink(below)
                folder = "/" if target.startswith("/") else folder
                rest = [*target.split("/"), *rest]
        return tuple(dict.fromkeys(result))

    def worktree_of(self, path: str) -> str | None:
        """The linked worktree of a real path; None for the main one, and for a path outside. Costs
        no look at the disk."""
        for base in self._bases:
            if path.startswith(base) or path + "/" == base:
                return None if base == self._base else base.rstrip("/")
        return None

    def _start(self, cwd: str | None, text: str) -> str:
        """The base of a relative path, with a slash at its end: `cwd`. Most paths from a `cwd`
        outside of the repository lead nowhere in it, so their base is the root. So it is for a path
        that would lead in, if only the root has a file of that name."""
        if cwd is None or cwd + "/" == self._base:
            return self._base
        if not cwd.startswith("/"):
            raise Refusal(Code.INVALID, f"`cwd` is {shown(cwd)}: it has to be absolute. Nothing "
                          "was done.", next="Give the whole path of the directory, or no `cwd`.")
        start = cwd.rstrip("/") + "/"
        if start.startswith(self._bases):
            return start
        start = os.path.realpath(cwd).rstrip("/") + "/"
        meant = os.path.normpath(start + text)
        if self.relative(start.rstrip("/")) is None and (self.relative(meant) is None or (
                os.path.lexists(self._base + text) and not os.path.lexists(meant))):
            return self._base
        return start

    def _inside(self, real: str, text: str) -> str:
        name = self.relative(real)
        if name is None:
            # A worktree that was moved shows in no time stamp; look again before saying no.
            self.refresh()
            name = self.relative(real)
        if name is None:
            raise Refusal(
                Code.OUTSIDE_REPO,
                f"{shown(text)} is {shown(real)}, which is not inside this repository "
                f"({shown(self._root)}). Nothing was done.",
                resource=printable(text),
                root=self._root,
            )
        check_ours((real[: len(real) - len(name)], self._base), name, text)
        return name

    def _check_private(self, name: str) -> None:
        """Refuse what belongs to git or to coord."""
        owner = owner_of(name.casefold() if self.fold_case else name)
        if owner:
            raise Refusal(
                Code.INVALID,
                f"{shown(name)} is {owner}'s own data and cannot be leased. Nothing was done.",
                next=f"Change it by a command of {owner}, or name a file of the working tree.",
                resource=printable(name),
            )

    def _spell(self, base: str, name: str) -> str:
        """`name` as the disk spells it, as far as it exists."""
        result: list[str] = []
        place = base
        for part in name.split("/"):
            result.append(self._spell_part(place, part))
            place = f"{place}{result[-1]}/"
        return "/".join(result)

    def _spell_part(self, directory: str, part: str) -> str:
        if part.isascii() and not self.fold_case:
            return part
        try:
            names = os.listdir(directory)
        except OSError:
            return part
        if part in names:
            return part
        wanted = self._same(part)
        return min((name for name in names if self._same(name) == wanted), default=part)

    def _same(self, part: str) -> str:
        part = unicodedata.normalize("NFC", part)
        return unicodedata.normalize("NFC", part.casefold()) if self.fold_case else part

    # --- regions and globs ------------------------------------------------------------------

    def _resolve_region(self, text: str, part: str, region: str, cwd: str | None) -> Located:
        home = self._resolve_path(part, cwd)
        if home.resource.kind != "file":
            raise Refusal(
                Code.INVALID,
                f"{shown(text)} names a region of a directory; regions are parts of files. "
                "Nothing was done.",
                resource=printable(text),
            )
        name = f"{home.resource.name}::{region}"
        resource = resource_names.resource(name, "region", fold_case=self.fold_case)
        return Located(resource, home.inode, home.path, home.worktree, home.links, home.size)

    def _exists_as_written(self, text: str, cwd: str | None) -> bool:
        """Whether a text is the very name of a file."""
        return os.path.lexists(text if text[0] == "/" else self._start(cwd, text) + text)

    def _resolve_glob(self, text: str, cwd: str | None) -> Located:
        parts = [resource_names.as_typed(part) for part in text.split("/")]
        literal: list[str] = []
        for part in parts[:-1]:
            plain = resource_names.unescape(part)
            if plain is None:
                break
            literal.append(plain)
        rest = parts[len(literal) :]
        last = resource_names.unescape(rest[0])
        if len(rest) == 1 and last is not None:
            return self._resolve_path("/".join([*literal, last]), cwd)
        tail = _tidy(rest, text)
        start = "/".join([*literal, ""])
        if not start.startswith("/"):
            start = self._start(cwd, start) + start
        real, _ = real_path(start, text)
        below = self._inside(real, text)
        if self.fold_case or not below.isascii():
            below = self._spell(real[: len(real) - len(below)], below)
        self._check_private(below)
        name = "/".join([*([resource_names.escape(below)] if below else []), *tail])
        globs.check(name)
        resource = resource_names.resource(name, "glob", fold_case=self.fold_case)
        return Located(resource, None, None, self.worktree_of(real))

    # --- worktrees --------------------------------------------------------------------------

    def _look_for_worktrees(self) -> None:
        if self._common is None:
            return
        if not self._linked and not os.access(self._worktrees_dir, os.F_OK):
            self._stamp = None  # as a rule there are none
            return
        try:
            seen = os.stat(self._worktrees_dir)
        except OSError:
            self._stamp = None
            if self._linked:
                self._take_worktrees([])
            return
        # Two worktrees may be made within one tick of the clock: the count of links tells, too.
        stamp = (seen.st_mtime_ns, seen.st_nlink, seen.st_ino)
        if stamp == self._stamp:
            return
        roots, complete = linked_worktrees(self._common)
        self._take_worktrees(roots)
        self._stamp = stamp if complete else None

    def _take_worktrees(self, roots: Sequence[str]) -> None:
        below = (os.path.normpath(os.path.join(root, self._below)) for root in roots)
        linked = {root.rstrip("/") + "/" for root in below} - {self._base}
        self._bases = tuple(sorted({self._base, *linked}, key=lambda base: (-len(base), base)))
        self._linked = tuple(sorted(linked))
        self.alone = not self._linked


def _tidy(parts: list[str], text: str) -> list[str]:
    """The parts of a glob from its first wildcard on, without `.` and empty ones."""
    if ".." in parts:
        raise Refusal(
            Code.INVALID,
            f"{shown(text)} has `..` after a wildcard, which names no certain place. "
            "Nothing was done.",
            resource=printable(text),
        )
    result = [part for part in parts if part not in ("", ".")]
    if parts[-1] in ("", "."):
        result.append("**")
    return result
