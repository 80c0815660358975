"""Names typed in a folder below the root, and their form relative to the root, which is printed.

Owns the step between the two, by the letters alone: the disk is not looked at. `words` owns the
prefix `:/` itself (`resource_names.from_root`), for rooms without the kernel.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from functools import lru_cache

from coordinator.files import separate_folders
from coordinator.kernel.core import Service
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words import resource_names
from coordinator.words.resource_names import FROM_ROOT, WHOLE, Located, Resource, from_root


def hint_from_root(svc: Service, tx: Tx, texts: Sequence[str], asked: Resource,
                   cwd: str | None) -> str | None:
    """Return a hint if a printed name, which begins at the root, was typed in a folder below it;
    None if no lease has that name."""
    start = folder_below(svc, cwd)
    for text in texts if start else ():
        if to_root_relative(start, text) != asked.name:
            continue
        scope = scope_of(text, svc.tree.fold_case)
        if scope is not None and tx.has("leases_at_scope", scope):
            return ("Names that are printed begin at the root. Typed from here: "
                    f"`{from_root(text)}`.")
    return None


def held_by_name(svc: Service, view: View, text: str, cwd: str | None) -> list[LeaseRow]:
    """Return the live leases on a typed name, wherever it leads: the lease of a link itself, of a
    name where a link was put later, or of a key of whose name a file was made. A glob has the scope
    of its directory, and is left out."""
    scope = scope_of(to_root_relative(folder_below(svc, cwd), text), svc.tree.fold_case)
    rows = view.each(LeaseRow, "leases_at_scope", scope) if scope else []
    if ":" in text and resource_names.kind_of(text) == "key":
        key = resource_names.resource(text, "key").scope
        rows += view.each(LeaseRow, "leases_at_scope", key) if key != scope else []
    return [row for row in rows if row.expires_at > view.now and row.kind != "glob"]


def held_by_link(svc: Service, view: View, text: str, meant: Resource,
                 cwd: str | None) -> list[LeaseRow]:
    """Return the live leases on a typed name that now leads to another resource."""
    if to_root_relative(folder_below(svc, cwd), text) == meant.name:
        return []
    return held_by_name(svc, view, text, cwd)


def lease_typed(svc: Service, row: LeaseRow, cwd: str | None) -> str:
    """Return the name of a lease as it is typed in this directory."""
    return to_typed(svc, row.file_path, row.kind, cwd)


def to_typed(svc: Service, name: str, kind: str, cwd: str | None) -> str:
    """Return a resource's name, which begins at the root, as it is typed in this directory."""
    below = kind != "key" and bool(folder_below(svc, cwd))
    return shlex.quote(from_root(name) if below else name)


def folder_below(svc: Service, cwd: str | None) -> str:
    """Return a working directory relative to the root of its working tree, with a slash at its
    end; empty for the root, and for a directory outside."""
    if cwd is None:
        return ""
    base = posixpath.join(svc.tree.worktree_of(cwd) or svc.root, "")
    return posixpath.join(cwd[len(base):], "") if cwd.startswith(base) and cwd != base else ""


def to_root_relative(start: str, text: str) -> str:
    """Return a name typed in the directory `start` below the root, relative to the root."""
    if text.startswith(FROM_ROOT):
        return text.removeprefix(FROM_ROOT) or WHOLE
    if not start or text.startswith("/"):
        return text
    kind = resource_names.kind_of(text)
    if kind == "region":
        path, _, name = text.rpartition("::")
        return f"{posixpath.normpath(start + path)}::{name}"
    if kind not in ("file", "dir"):
        return text
    path = posixpath.normpath(start + text)
    return path + "/" if text.endswith("/") else path


@lru_cache(maxsize=4096)
def scope_of(text: str, fold_case: bool) -> str | None:
    """Return the scope of a path that is already canonical; None if it is no path."""
    kind, _, _ = resource_names.parse(text)
    if kind == "key" and resource_names.may_be_file(text):
        kind = "file"
    if kind not in ("file", "dir", "region"):
        return None
    return resource_names.resource(text, kind, fold_case=fold_case).scope


#: The forms of a character class and of a shell's braces.
_CLASS = re.compile(r"\[[!^]?(?:\w-\w)+\]")
_BRACES = re.compile(r"\{[^{}]*,[^{}]*\}")


def warn_of_name(svc: Service, located: Located) -> list[str]:
    """Warn of meanings that a leased name does not have, though it looks so."""
    name, warnings = located.resource.name, []
    if located.resource.kind == "file" and resource_names.kind_of(name) == "key":
        warnings.append(f"{name} is the file of that name. The key is `key:{name}`.")
    if "[" in name and not located.there and located.resource.kind in ("file", "dir") and (
            _CLASS.search(name)):
        warnings.append(
            f"In {name} the brackets stand for themselves; nothing was found that is called so. "
            "They are a class only beside `*` or `?` in the same part of a path.")
    if "{" in name and _is_braced(located):
        warnings.append(
            f"In {name} the braces stand for themselves; nothing was found that is called so. "
            "Name each file or pattern by itself.")
    if svc.tree.apart:
        warnings += [
            f"{name} does not cover {folder}: that folder has a coordinator of its own."
            for folder in separate_folders.not_covered(svc.tree.apart, located.resource)
        ]
    return warnings


def _is_braced(located: Located) -> bool:
    """Whether somebody who wrote this name may have meant several, as a shell's braces do."""
    resource = located.resource
    if resource.kind == "glob":
        return _BRACES.search(resource.name) is not None
    return (not located.there and resource.kind in ("file", "dir")
            and _BRACES.search(resource.name) is not None)
