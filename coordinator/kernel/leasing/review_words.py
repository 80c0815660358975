"""The sentences of a review of partial work: whose work is mixed in, and what cannot be told apart.

`partial_work` compares what the review contains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from coordinator.kernel.core import Service, listed, ms
from coordinator.kernel.leasing import meanwhile, partial_work
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, VersionRow

#: Later than any instant.
NEVER = "~"


def beside(svc: Service, tx: Tx, rows: Sequence[LeaseRow],
           files: Sequence[ev.FlaggedFile] = ()) -> str:
    """Sentences, each with a space before it; empty where nothing is to be said.

    Args:
        rows: the leases of one holder.
        files: what is flagged, where it is to be said who wrote it last.

    Raises:
        Unready: the files have to be looked at.
    """
    return (_of_others(svc, tx, rows) + _of_what_is_together(svc, tx, rows)
            + _of_others_writes(tx, rows, files))


def _of_others(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> str:
    """Name the others whose work is mixed into what is or was shared."""
    here: dict[str, list[str]] = {}
    gone: dict[str, list[str]] = {}
    for row in rows:
        go_on = partial_work.who_goes_on(tx, row)
        for name in go_on:
            here.setdefault(name, []).append(row.file_path)
        since = row.began or tx.later(-ms(svc.settings.leases.max_hold_s))
        parties = tx.values("unlocks_shared", row.scope, since, row.locked_by)
        for name in sorted(set(parties) - {row.locked_by, *go_on}):
            gone.setdefault(name, []).append(row.file_path)
    sentences = [f" {who} shares {listed(names)} with it and goes on: what {who} had written "
                 "there by "
            "then is among it." for who, names in here.items()]
    sentences += [f" {who} shared {listed(names)} with it and has ended: what {who} had written "
                  "there "
                  "is among it, and a revert takes it out, too." for who, names in gone.items()]
    return "".join(sentences)


def _of_what_is_together(svc: Service, tx: Tx, rows: Sequence[LeaseRow]) -> str:
    files = partial_work.together(svc, tx, rows)
    if not files:
        return ""
    return (f" What was done in {listed(files)} cannot be told from what else was done there "
            "since: the whole of it is here, as it was before and as it was left, and a revert "
            "puts all of it back.")


def _of_others_writes(tx: Tx, rows: Sequence[LeaseRow], files: Sequence[ev.FlaggedFile]) -> str:
    """Describe files that their holder did not write last, or not alone."""
    if not (rows and files):
        return ""
    holder = rows[0].locked_by
    agent = tx.agent(holder)
    if agent is None or agent.hooked_at is None:
        return ""  # nothing tells what writes it
    held = {file.path: _list_on(rows, file) for file in files if file.worktree is None}
    last = {file.path: version.seen_at for file in files if file.path in held
            if (version := _find_nobodys(tx, file)) is not None}
    held = {path: leases for path, leases in held.items() if leases}
    among = meanwhile.written_by_nobody(tx, {path: _find_begin(leases)
                                             for path, leases in held.items()})
    # Work from before it had the whole file is beside the parts that it had.
    in_parts = {path for path, leases in held.items()
                if max(last.get(path, ""), among.get(path, ""))
                < _find_begin(leases, whole=True)}
    return _describe_writes(holder, last, among, in_parts)


def _find_nobodys(tx: Tx, file: ev.FlaggedFile) -> VersionRow | None:
    """The flagged version, if it was the last seen one and nobody is known as its writer."""
    row = (tx.first(VersionRow, "version_get", file.path) if file.flagged_hash is not None
           else None)
    return row if row and (row.hash, row.agent) == (file.flagged_hash, None) else None


def _list_on(rows: Sequence[LeaseRow], file: ev.FlaggedFile) -> list[LeaseRow]:
    """The leases that contain this file, or that are on parts of it."""
    resource = as_resource(file.path, "file", file.scope)
    return [row for row in rows
            if overlaps(resource, as_resource(row.file_path, row.kind, row.scope))]


def _find_begin(leases: Iterable[LeaseRow], *, whole: bool = False) -> str:
    """When the work under the first of these began; `whole`: of those that are on no part."""
    return min((row.began or row.locked_at for row in leases
                if row.kind != "region" or not whole), default=NEVER)


def _describe_writes(holder: str, last: Collection[str], among: Collection[str],
                     in_parts: Collection[str]) -> str:
    """Sentences of files that others wrote `last`, or `among` the holder's writes; `in_parts`:
    where it had parts of them."""
    who = "person, or a program in the background,"
    text = ""
    if wholes := [path for path in last if path not in in_parts]:
        text += (f" As far as coord knows, {holder} did not write {listed(wholes)} last: a person "
                 "did, or a program in the background. A revert takes that out, too.")
    if wholes := [path for path in among if path not in (*last, *in_parts)]:
        text += (f" A {who} wrote in {listed(wholes)}, too, while {holder} held "
                 f"{'it' if len(wholes) == 1 else 'them'}: what is left of that here is among it, "
                 "and a revert takes it out, too.")
    if parts := sorted({*last, *among}.intersection(in_parts)):
        text += (f" A {who} wrote in {listed(parts)}, too, while {holder} held parts of "
                 f"{'it' if len(parts) == 1 else 'them'}: what of that is in these parts is among "
                 "it, and a revert takes it out, too; the rest it leaves.")
    return text
