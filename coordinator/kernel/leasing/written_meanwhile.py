"""Files that somebody without any lease wrote after their holder began to work there.

A person or an unknown program wrote them, and the text is mixed into the holder's work. The module
reads the log outside of the transaction. Where the log was cut, it reports nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.kernel.core import last_before
from coordinator.store.ledger import Tx, View
from coordinator.store.rebuild import apart
from coordinator.store.rows import Row


class WrittenRow(Row, frozen=True):
    """A file that somebody changed without a lease, and when last."""

    resource: str
    at: str


def by_nobody(tx: Tx, since: Mapping[str, str]) -> dict[str, str]:
    """Those of these files, and when that was last (UTC). `since`: by path, from which instant on.

    Raises:
        Unready: the log is read first.
    """
    if not since:
        return {}
    first = min(since.values())

    def written(view: View) -> dict[str, str]:
        result: dict[str, str] = {}
        for row in view.each(
                WrittenRow, "unleased_last_since", last_before(view, first), first):
            name = row.resource
            path = name if name in since else name.rpartition("::")[0]  # or of a part of it
            result[path] = max(result.get(path, ""), row.at)
        return result

    last = tx.looked.after(f"written without a lease since {first}", apart(tx, written))
    return {path: last[path] for path in sorted(since) if last.get(path, "") >= since[path]}
