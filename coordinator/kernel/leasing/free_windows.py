"""Whether somebody writes a file just now. The coordinator asks before it writes a file of which
others hold parts.

`slices/guard/write_windows.py` opens and closes the windows.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.kernel.core import Service
from coordinator.looking.facts import Lapsed, Unready
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import WINDOW, Resource, write_window


def check(svc: Service, tx: Tx, paths: Iterable[str], *, undone: str = "written",
          again: str = "Commit it again.") -> list[Resource]:
    """The write windows of these files, which are free. `undone`: what nothing was;
    `again`: what to do.

    Raises:
        Refusal: LOCKED: one of the files is being written just now.
        Unready: whoever wrote one of them has not said that it has ended, in time.
    """
    windows = {made.scope: made for made in (write_window(path, svc.fold_case) for path in paths)}
    rows = [lease for scope in windows for lease in tx.each(LeaseRow, "leases_at_scope", scope)]
    for row in rows:
        if row.expires_at > tx.now:
            path = file_names.shown(row.file_path.removeprefix(WINDOW))
            raise Refusal(
                Code.LOCKED, f"{row.locked_by} writes {path} just now, and goes on doing so. "
                f"Nothing was {undone}.", next=again, retry_after_s=1, window=True,
            )
    if rows:
        raise Unready(lapsed=[Lapsed(row.locked_by, row.task_id) for row in rows])
    return list(windows.values())


def is_busy(answer: object) -> bool:
    """Whether somebody writes one of the files just now, or did a moment ago: to be tried again."""
    return isinstance(answer, Refusal) and bool(answer.facts.get("window"))
