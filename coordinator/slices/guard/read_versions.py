"""What each agent knows of each file's content, and whether the file still has that content.

Reads and writes that its hooks report are kept with their bytes. A write that is based on replaced
content is refused with the difference (VERSION_CHANGED).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.kernel.core import owner
from coordinator.kernel.leasing import kept_edits
from coordinator.kernel.leasing.changed_parts import REGIONS_TOLD, make_difference
from coordinator.kernel.leasing.kept_edits import KeptEdit
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.looking.facts import Between, Bytes, Content, Ignored, Overlaid, Parts
from coordinator.rules.versions import Known, carries, replaced, shown
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import ReadRow, VersionRow
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, Resource, copy_name, path_of

#: Files of more bytes than these, all together, are not looked for in what a command prints.
SHOWN_BYTES_MAX = 256 * 1024


@dataclass(frozen=True, slots=True)
class Edited:
    """A file of which the agent has written regions.

    Attributes:
        name, path: the file, and where it is.
        before: the content that its edit began with.
        parts: what has changed since.
    """

    name: str
    path: str
    before: str
    parts: Parts


def note(tx: Tx, agent: str, files: Sequence[Located], *, written: bool,
         but: Collection[str] = (), unread: Mapping[str, str | None] | None = None,
         edited: bool = False) -> None:
    """The agent has read (or written) these files, as they were looked at just now; `but` not
    those of these names. `unread`: of which it knows this content still, and no later one (by
    `copy_name`). `edited`: by an edit tool, and not by a command.

    Raises:
        Unready: they were not.
    """
    reads: list[tuple[str, str | None]] = []
    versions: list[tuple[str, str | None, str | None]] = []
    for located in _list_plain(tx, files, but):
        name = located.resource.name
        content = tx.looked.content(str(located.path))
        tx.keep_found(content)
        copy = copy_name(name, located.worktree)
        reading = _read_of(tx, agent, copy)
        if not (unread and copy in unread) and _is_news(reading, content.hash, written):
            reads.append((copy, content.hash))
        if edited:
            _note_edit(tx, agent, located, reading, content.hash)
        if written and located.worktree is None:
            last = tx.first(VersionRow, "version_get", name)
            if last is None or (last.hash, last.agent) != (content.hash, agent):
                versions.append((name, content.hash, agent))
    if reads:
        tx.record(ev.ContentRead(agent=agent, reads=reads, how="written" if written else "read"))
    if unread:
        _note_unread(tx, agent, unread)
    if versions:
        tx.record(ev.VersionsSeen(versions=versions))


def _is_news(reading: ReadRow | None, now: str | None, written: bool) -> bool:
    return (reading is None or reading.hash != now or (reading.base is not None and not written))


def _list_plain(tx: Tx, files: Sequence[Located], but: Collection[str]) -> list[Located]:
    """The files that were looked at, and that are not ignored."""
    files = [file for file in files if file.resource.kind == "file" and file.path is not None
             and file.resource.name not in but]
    tx.looked.require([*(Content(str(file.path)) for file in files),
                       *(Ignored(file.resource.name) for file in files)])
    return [file for file in files if not tx.looked.ignored(file.resource.name)]


def _note_edit(tx: Tx, agent: str, located: Located, reading: ReadRow | None,
               now: str | None) -> None:
    """Note what an edit tool has made of the content that the agent had read, or otherwise of the
    last seen content."""
    name = located.resource.name
    last: ReadRow | VersionRow | None = reading or tx.first(VersionRow, "version_get", name)
    before = last.hash if last is not None and last.hash != now else None
    kept_edits.note_edit(tx, agent, name, located.worktree, KeptEdit(before, now))


def _note_unread(tx: Tx, agent: str, unread: Mapping[str, str | None]) -> None:
    partly = [(name, content) for name, content in unread.items()
              if (row := _read_of(tx, agent, name)) is not None and not row.partial]
    if partly:
        tx.record(ev.ContentRead(agent=agent, reads=partly, partial=True))


def note_command(tx: Tx, agent: str, files: Sequence[Located],
                 before: Mapping[str, tuple[str | None, str]]) -> None:
    """A command of the agent has ended. `before`: the former contents of these files, which the
    agent holds, and since when it holds them (UTC), by path. What the command changed is the
    agent's own writing. Of the former contents the agent knows only what it has read.

    Raises:
        Unready: they were not looked at.
    """
    files = [located for located in files if located.path is not None]
    tx.looked.require(Content(str(located.path)) for located in files)
    for file in files:  # (what the watcher has seen already is not kept by that)
        tx.keep_found(tx.looked.content(str(file.path)))
    changed = [located for located in files
               if tx.looked.content(str(located.path)).hash != before[str(located.path)][0]]
    unread = {}
    for file in changed:
        copy = copy_name(file.resource.name, file.worktree)
        was, since = before[str(file.path)]
        read = _read_of(tx, agent, copy)
        if read is not None and (read.partial or (read.hash != was and read.at < since)):
            unread[copy] = read.hash
    note(tx, agent, changed, written=True, unread=unread)


def note_shown(tx: Tx, agent: str, files: Sequence[Located], output: str) -> None:
    """A command of the agent has printed this. The agent has read those of these files whose
    present content the output shows. Some agents read only by commands.

    Raises:
        Unready: they were not looked at.
    """
    read: list[Located] = []
    room = SHOWN_BYTES_MAX
    for file in files:
        row = _read_of(tx, agent, copy_name(file.resource.name, file.worktree))
        if row is None or file.path is None or file.resource.kind != "file":
            continue
        tx.looked.require([Content(file.path)])
        content = tx.looked.content(file.path)
        base = row.hash if row.base is None else row.base or None
        if base == content.hash or content.hash is None:
            continue
        before, now = tx.source(base), content.data or tx.source(content.hash)
        if not isinstance(now, bytes) or len(now) > room:
            continue
        room -= len(now)
        if shown(_text(before), _text(now), output):
            read.append(file)
    note(tx, agent, read, written=False)


def note_refused(tx: Tx, agent: str, files: Sequence[Located],
                 parents: Collection[str] = (), *, parts: bool = True) -> None:
    """The agent may not write all of these now, because others have them (or `parts` of them), or
    its parent writes them (`parents`). Of a file that it has never read it knows at most the
    content with which that work began. At its turn it is told what changed."""
    reads: list[tuple[str, str | None]] = []
    for file in files:
        name = file.resource.name
        if (file.resource.kind != "file" or file.worktree is not None
                or _read_of(tx, agent, name) is not None):
            continue
        began = sorted(_list_begun(tx, agent, file.resource, parents, parts),
                       key=lambda begin: begin[:2])
        reads += [(name, content) for *_, content in began[:1]]
    if reads:
        tx.record(ev.ContentRead(agent=agent, reads=reads))


def _list_begun(tx: Tx, agent: str, file: Resource, parents: Collection[str],
                parts: bool) -> Iterator[tuple[bool, str, str | None]]:
    """The content with which others' work on a file began, and when, and whether that is another
    copy of it."""
    name = file.name
    for row in leases_near(tx, file):
        elsewhere = row.worktree is not None
        if (row.mode != "exclusive" or row.expires_at <= tx.now or row.locked_by == agent
                or path_of(row.file_path, row.kind) != name
                or not (name in parents or owner(tx, row.locked_by) != owner(tx, agent))):
            continue
        if row.kind == "region" and parts:
            whole = tx.value("baseline_get", row.fencing_token, name)
            if whole is not None:
                yield elsewhere, row.locked_at, whole
        elif row.kind == "file":
            yield elsewhere, row.locked_at, row.content_hash


def _read_of(tx: Tx, agent: str, copy: str) -> ReadRow | None:
    return tx.first(ReadRow, "read_get", agent, copy)


def _text(source: object) -> str:
    return source.decode(errors="replace") if isinstance(source, bytes) else ""


def note_edits(tx: Tx, agent: str, edits: Sequence[Edited]) -> None:
    """The agent has written regions of these files, whose bytes are kept. Of the other regions it
    knows what it has read. It has not seen what others changed since.

    Raises:
        Unready: they were not looked at.
    """
    tx.looked.require([*(Ignored(edit.name) for edit in edits),
                       *(Content(edit.path) for edit in edits)])
    versions: list[tuple[str, str | None, str | None]] = []
    whole: list[tuple[str, str | None]] = []
    partly: list[tuple[str, str | None]] = []
    for edited in edits:
        now = edited.parts.hash
        if now == edited.before or tx.looked.ignored(edited.name):
            continue
        content = tx.looked.content(edited.path)
        if content.hash == now:
            tx.keep_found(content)
        # The watcher may have seen it while the edit ran; at the end of the edit it is still that.
        versions.append((edited.name, now, agent))
        kept_edits.note_edit(tx, agent, edited.name, None, KeptEdit(edited.before, now))
        read = _read_of(tx, agent, edited.name)
        if read is None or read.hash in (None, edited.before):
            whole.append((edited.name, now))
        else:
            partly.append((edited.name, _known_then(tx, edited, str(read.hash))))
    if versions:
        tx.record(ev.VersionsSeen(versions=versions))
    if whole:
        tx.record(ev.ContentRead(agent=agent, reads=whole))
    if partly:
        tx.record(ev.ContentRead(agent=agent, reads=partly, partial=True))


def _known_then(tx: Tx, edited: Edited, read: str) -> str:
    """What the agent had read, together with what it wrote. If that cannot be told, what it had
    read."""
    if not edited.parts.names:
        return read
    try:
        made = tx.looked.made(Overlaid(edited.path, read, tuple(edited.parts.names)))
    except Refusal:
        return read
    return made.hash if made.hash is not None and tx.keep_found(made) else read


@dataclass(frozen=True, slots=True)
class Write:
    """The write that an agent is about to make.

    Attributes:
        files: the files.
        locked_at: when the agent's leases on them were granted, by name.
        agreed: files that others write, too, so that a lease on them keeps nobody out.
        by_command: a shell command names them. What is not there any more it makes anew (`touch`,
            `mv`), and can overwrite nobody's work.
        regions: of which files it is about to write these regions only.
        whole: of which files the write replaces the whole content, and by what, None where that
            cannot be told. Until the agent has read such a file, its content has to carry what it
            was told of.
    """

    files: Sequence[Located]
    locked_at: Mapping[str, str]
    agreed: Collection[str] = ()
    by_command: bool = False
    regions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    whole: Mapping[str, str | None] = field(default_factory=dict)


def stale(tx: Tx, agent: str, write: Write, receipt: list[ev.Event],
          notes: list[str]) -> Refusal | None:
    """VERSION_CHANGED if one of these files is not what the agent read; None if all are.

    `receipt`: what to record once the agent has been told, so that its next try passes if it uses
    the new content. `notes`: other changes in files of which the agent writes only regions. They
    are no reason to refuse.

    Raises:
        Unready: a file was not looked at.
    """
    sentences: list[str] = []
    reads: list[tuple[str, str | None]] = []
    cut = False
    for located, row, content in _list_read(tx, agent, write):
        name, copy = located.resource.name, copy_name(located.resource.name, located.worktree)
        if name in write.whole and row.base is not None:
            if not _carries(tx, row, content, write.whole[name]):
                cut = True
                sentences.append(f"What you write of {name} still lacks what changed since you "
                                 "read it.")
                continue
            tx.record(ev.ContentRead(agent=agent, reads=[(copy, row.hash)], how="read"))
        version = _compare(tx, agent, write, located, row, content.hash)
        if name in write.regions:
            changed = _list_missed(tx, agent, located, write.regions[name], version)
            if changed is not None:
                notes += [_elsewhere(name, changed, version)] if changed else []
                continue
        if not replaced(version, agent):
            continue
        by = _say_by(version) if version.last_by != agent else ""
        text = make_difference(tx, name, row.hash, content)
        if text is None:
            cut = True
            sentences.append(f"{name} was replaced{by}: read it again before you write it.")
        else:
            sentences.append(f"{name} was changed since you read it{by}:\n{text}")
            tx.keep_found(content)
            reads.append((copy, content.hash))
    if not sentences:
        return None
    if reads:
        receipt.append(ev.ContentRead(agent=agent, reads=reads, how="told"))
    return Refusal(
        Code.VERSION_CHANGED,
        "Your environment changed while you were thinking. Re-evaluate your change against the "
        "current state. " + "\n".join(sentences),
        next="Read it again, then write." if cut else "Write again, on the content as it is now.",
    )


def _list_read(tx: Tx, agent: str, write: Write) -> Iterator[tuple[Located, ReadRow, Bytes]]:
    """The files that the agent has read before; with what it read, and what is there."""
    for located in write.files:
        row = _read_of(tx, agent, copy_name(located.resource.name, located.worktree))
        if row is None or located.path is None:
            continue
        content = tx.looked.content(located.path)
        if content.hash is not None or not write.by_command:
            yield located, row, content


def _list_missed(tx: Tx, agent: str, located: Located, own: Sequence[str],
                 version: Known) -> list[str] | None:
    """The regions that others have changed since, if the agent is about to write none of them;
    None: it may be."""
    foreign = version.last_by != agent
    if version.read == version.now or not (foreign or version.partial):
        return None
    changed = _changed(tx, str(located.path), version.read)
    if changed is None or _meet(changed, own):
        return None
    return changed if foreign else []


def _say_by(version: Known) -> str:
    is_last = version.last_by and version.last == version.now
    return f", last by {version.last_by}" if is_last else ""


def _compare(tx: Tx, agent: str, write: Write, located: Located, row: ReadRow,
             now: str | None) -> Known:
    """Compare what the agent has read of a file with what is there now."""
    name = located.resource.name
    last = tx.first(VersionRow, "version_get", copy_name(name, located.worktree))
    own = write.regions.get(name)
    names = [name] if own is None else [f"{name}::{region}" for region in own]
    return Known(
        read=row.hash, now=now, last=last.hash if last else None,
        last_by=last.agent if last else None, partial=bool(row.partial),
        held_since_read=name not in write.agreed and all(
            write.locked_at.get(text, tx.now) <= row.at for text in names),
        by_others=last is not None and last.hash == now and (
            last.agent is None or owner(tx, last.agent) != owner(tx, agent)),
    )


def _carries(tx: Tx, read: ReadRow, now: Bytes, text: str | None) -> bool:
    """Whether a new content of a file contains the change that the agent was told of and has not
    read."""
    if text is None:
        return False
    base, shown = (_text(tx.source(name or None)) for name in (read.base, read.told))
    return carries(base, shown, _text(now.data or tx.source(now.hash)), text)


def unread(tx: Tx, agent: str, files: Sequence[Located], agreed: Collection[str]) -> Refusal | None:
    """VERSION_CHANGED if somebody else wrote one of these files last, which the agent shares with
    others (`agreed`) and has never read.

    Raises:
        Unready: a file was not looked at.
    """
    for located in files:
        name = located.resource.name
        if name not in agreed:
            continue
        last = tx.first(VersionRow, "version_get", name)
        if (located.path is None or _read_of(tx, agent, name) is not None
                or last is None or last.agent in (None, agent)):
            continue
        if tx.looked.content(located.path).hash is not None:
            return Refusal(
                Code.VERSION_CHANGED, f"{last.agent} has written {name}, which you share and have "
                "not read. Nothing was written.", next="Read it, then write.", resource=name,
            )
    return None


def _changed(tx: Tx, path: str, before: str | None) -> list[str] | None:
    """The regions that differ from what the agent has read; None if that cannot be told."""
    try:
        return None if before is None else tx.looked.parts(Between(path, before)).names
    except Refusal:
        return None


def _meet(changed: Sequence[str], own: Sequence[str]) -> bool:
    return any(f"{text}.".startswith(f"{other}.") or f"{other}.".startswith(f"{text}.")
               for text in changed for other in own)


def _elsewhere(name: str, changed: Sequence[str], version: Known) -> str:
    is_last = version.last_by and version.last == version.now
    by = f" ({version.last_by} wrote last)" if is_last else ""
    more = f" and {len(changed) - REGIONS_TOLD} more" if len(changed) > REGIONS_TOLD else ""
    return (f"[coord] Since you read {name}, {', '.join(changed[:REGIONS_TOLD])}{more} "
            f"changed{by}; what you are about to write did not. If your tool asks for it, read the "
            "file once more and repeat the edit.")
