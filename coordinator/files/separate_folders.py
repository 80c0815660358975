"""Folders below a root that have a coordinator of their own: nothing in them is this one's.

A folder with a `.coord` belongs to its own coordinator, whatever is around it (roots.py). The outer
coordinator treats it as outside. A person makes it so (`coord init --separate`); it is also so if
the folder had its `.coord` first. The list of such folders here serves for words; the look at the
path, at that instant, decides.
"""

from __future__ import annotations

import os
from pathlib import Path

from coordinator.files import ownership
from coordinator.files.real_paths import printable, shown
from coordinator.files.roots import foreign_root, is_prepared
from coordinator.files.state import StateDir
from coordinator.rules import globs
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource


def separate_trees(root: Path) -> list[str]:
    """The folders that persons have separated from this root, relative to it, sorted."""
    try:
        raw = ownership.read(StateDir(root).apart) or b""
    except (OSError, Refusal):
        return []
    names = {os.fsdecode(line) for line in raw.split(b"\n") if line}
    return sorted(name for name in names if is_prepared(f"{root}/{name}"))


def check_ours(bases: tuple[str, ...], name: str, text: str) -> None:
    """Check that the path `name` is in no such folder, seen from any of these bases (which end with
    a slash): the root, and the addressed linked worktree.

    Raises:
        Refusal: OUTSIDE_REPO.
    """
    for base in dict.fromkeys(bases):
        there = foreign_root(base, name)
        if there is not None:
            raise separate(there, base, text)


def separate(there: str, base: str, text: str) -> Refusal:
    """The refusal of a path in such a folder."""
    return Refusal(
        Code.OUTSIDE_REPO,
        f"{shown(text)} belongs to the coordinator of {shown(there)}, which is separate from that "
        f"of {shown(base.rstrip('/'))}. Nothing was done.",
        next=f"Repeat it in {there}. (To have one for both: `coord down` there, and remove its "
        "`.coord`.)",
        resource=printable(text), root=base.rstrip("/"), coordinator=there,
    )


def not_covered(known_names: list[str], resource: Resource) -> list[str]:
    """Those of these folders that a lease on this directory or glob seems to cover."""
    if resource.kind == "dir":
        start = resource.name.strip("/")
        inside = "" if start in ("", ".") else start + "/"
        return [name for name in known_names if f"{name}/".startswith(inside)]
    if resource.kind == "glob":
        return [name for name in known_names if globs.reaches(resource.name, name)]
    return []
