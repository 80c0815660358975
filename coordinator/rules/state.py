"""Versioned values of keys. Pure.

A value is JSON text. A merge patch is RFC 7396's: an object changes the fields that it names, null
removes one, and anything that is no object takes the place of the whole.
"""

from __future__ import annotations

from typing import Any

#: Versions of a key that are kept, the newest.
VERSIONS_KEPT = 100
#: How many old versions are removed at a time, because a look for each write costs as much.
TRIM_EVERY = 16


def merged(value: Any, patch: Any) -> Any:
    """The value with a merge patch (RFC 7396) applied; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), part)
    return result


def depth(value: Any, most: int) -> bool:
    """Whether JSON is nested no deeper than `most`. A loop, not a recursion."""
    level = [value]
    for _ in range(most):
        level = [inner for fields in level for inner in (
            fields.values() if isinstance(fields, dict) else fields if isinstance(fields, list)
            else ())]
        if not level:
            return True
    return False
