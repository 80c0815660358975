"""Warning about a leased name that does not mean what it seems to mean."""

from __future__ import annotations

import re

from coordinator.files import separate_folders
from coordinator.kernel.core import Service
from coordinator.words.resource_names import Located

#: The forms of a character class and of a shell's braces.
_CLASS = re.compile(r"\[[!^]?(?:\w-\w)+\]")
_BRACES = re.compile(r"\{[^{}]*,[^{}]*\}")


def warn_of_name(svc: Service, located: Located) -> list[str]:
    """Warn of meanings that a leased name does not have, though it looks so."""
    name, warnings = located.resource.name, []
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
