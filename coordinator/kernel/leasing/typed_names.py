"""Names as they are typed in a folder below the root, and as they are printed, which is from there.

By their letters alone: what lies on the disk is not looked at.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from functools import lru_cache

from coordinator.kernel.core import Service
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words import resource_names
from coordinator.words.resource_names import FROM_ROOT, WHOLE, Resource


def meant_from_root(svc: Service, tx: Tx, texts: Sequence[str], asked: Resource,
                     cwd: str | None) -> str | None:
    """What to type if a printed name, which starts at the root, was typed in a folder below it;
    None if nothing is held by that name either."""
    start = folder_below(svc, cwd)
    for text in texts if start else ():
        if joined(start, text) != asked.name:
            continue
        scope = scope_of(text, svc.tree.fold_case)
        if scope is not None and tx.has("leases_at_scope", scope):
            return ("Names that are printed begin at the root. Typed from here: "
                    f"`{FROM_ROOT}{text}`.")
    return None


def held_by_name(svc: Service, view: View, text: str, cwd: str | None) -> list[LeaseRow]:
    """Live leases on a name as it is typed, wherever it leads: the lease of a link itself, or of a
    name where a link was put later. A glob has the scope of its directory and is not meant."""
    scope = scope_of(joined(folder_below(svc, cwd), text), svc.tree.fold_case)
    rows = view.each(LeaseRow, "leases_at_scope", scope) if scope else []
    return [row for row in rows if row.expires_at > view.now and row.kind != "glob"]


def held_by_link(svc: Service, view: View, text: str, meant: Resource,
                 cwd: str | None) -> list[LeaseRow]:
    """Live leases on a typed name that now leads to something else."""
    if joined(folder_below(svc, cwd), text) == meant.name:
        return []
    return held_by_name(svc, view, text, cwd)


def lease_typed(svc: Service, row: LeaseRow, cwd: str | None) -> str:
    """The name of a lease as it is typed in this directory."""
    return typed(svc, row.file_path, row.kind, cwd)


def typed(svc: Service, name: str, kind: str, cwd: str | None) -> str:
    """A resource's name, which is from the root, as it is typed in this directory."""
    below = kind != "key" and bool(folder_below(svc, cwd))
    return shlex.quote((FROM_ROOT if below else "") + name)


def folder_below(svc: Service, cwd: str | None) -> str:
    """Where a working directory lies below the root of its working tree, by its letters, with a
    slash at its end; empty for the root, and for a directory outside."""
    if cwd is None:
        return ""
    base = posixpath.join(svc.tree.worktree_of(cwd) or svc.root, "")
    return posixpath.join(cwd[len(base):], "") if cwd.startswith(base) and cwd != base else ""


def joined(start: str, text: str) -> str:
    """A name typed in a directory below the root as one from the root, by its letters."""
    if text.startswith(FROM_ROOT):
        return text.removeprefix(FROM_ROOT) or WHOLE
    kind = resource_names.kind_of(text) if start and not text.startswith("/") else "key"
    if kind == "region":
        path, _, name = text.rpartition("::")
        return f"{posixpath.normpath(start + path)}::{name}"
    if kind not in ("file", "dir"):
        return text
    path = posixpath.normpath(start + text)
    return path + "/" if text.endswith("/") else path


@lru_cache(maxsize=4096)
def scope_of(text: str, fold_case: bool) -> str | None:
    """The scope of a path that is canonical as it is written; None if it is no path."""
    kind, _, _ = resource_names.parse(text)
    if kind not in ("file", "dir", "region"):
        return None
    return resource_names.resource(text, kind, fold_case=fold_case).scope
