"""Shell commands: which must not run, what is read-only for them, and what they changed
nevertheless.

A command cannot be understood by reading it. Where it plainly names its targets, their leases are
taken. What others hold is protected while it runs (daemon/agent_hooks.py). A change that happens
nevertheless is a violation: the bytes are kept, a review is opened, and both agents are told.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

from coordinator.dialects.decode import HookCall
from coordinator.files.content import DIRECTORY, SPECIAL
from coordinator.kernel import branches
from coordinator.kernel.core import Service, family, listed, owner
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing import agreements, changed_parts, partial_work
from coordinator.kernel.leasing.overlapping import holders_of_regions, leases_near
from coordinator.looking.facts import AnyNeed, Bytes, Content, Ignored, Place, Whole
from coordinator.rules import commands
from coordinator.rules.git_folders import Folder
from coordinator.rules.globs import overlaps
from coordinator.rules.landing import STATE_DIR
from coordinator.rules.leases import as_resource
from coordinator.slices.guard import git_turns, read_versions
from coordinator.slices.guard.events import UnleasedWrite
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, VersionRow
from coordinator.words import purposes
from coordinator.words.clock import from_iso, short
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located, path_of, path_scope, resource
from coordinator.words.texts import quoted

#: Files of others that one command is protected from.
PROTECTED_MAX = 2_000
#: Words of one command that are looked up as files which it may have printed.
NAMED_MAX = 12
#: Words of one command of which git is asked whether they are files.
ASKED_MAX = 5
#: Files and directories of its own that are looked at after a command.
OWN_MAX = 50
#: How long (seconds) a call waits until the watcher has recorded what its command has done.
WATCHER_WAIT_S = 0.5
#: The name of a content that nobody has read.
UNKNOWN = "unknown"
#: What has no bytes of its own.
NO_FILE = frozenset({DIRECTORY, SPECIAL})


class Held(NamedTuple):
    """A file or directory that another agent holds: its place, its holder, its kind. For a glob:
    the working tree, because of files that are not there yet."""

    path: str
    name: str
    holder: str
    kind: Literal["file", "directory", "absent", "glob"]
    token: int = 0
    """The lease's fencing token, and when it was granted."""
    since: str = ""
    scope: str = ""
    worktree: str | None = None
    is_part: bool = False
    """It is held in parts."""


class Broken(NamedTuple):
    """A file that a command changed though another holds it."""

    name: str
    holder: str
    before: str | None
    """The name of its former content, or `directory` and the like; None if nothing was there."""
    worktree: str | None = None
    now: str | None = None
    """What is there now, if it is no file: `directory`, `special`."""
    since: str = ""
    """When it was as before for certain (UTC), if that is known."""
    also: tuple[str, ...] = ()
    """Agents of whom a command ran, too, when it changed: it may have been theirs."""
    holders: tuple[str, ...] = ()
    """The holders of what was changed of it, if known."""


def checked_out(tx: Tx, command: str, cwd: str | None) -> list[commands.Either]:
    """The words of its `git checkout`s without a `--` that git takes for files of this repository.

    Raises:
        Unready: git was not asked yet.
    """
    eithers = []
    for either in commands.either(command)[:ASKED_MAX] if cwd else ():
        where = posixpath.join(cwd or "", either.folder)
        try:
            place = tx.looked.place(where, literal=True).path
        except Refusal:
            continue  # outside of this repository
        if place is not None and tx.looked.after(
            f"a file to check out: {place} {either.word}",
            partial(branches.is_file, place, either.word)
        ):
            eithers.append(either)
    return eithers


def git_wide(
    svc: Service, tx: Tx, agent: str, command: str, cwd: str | None,
    files: Sequence[commands.Either] = (),
) -> Refusal | None:
    """Why a command that changes the whole working tree may not run; None if it may. Then it has
    git's turn (git_turns.py) until it ends. `files`: what it checks out (`checked_out`)."""
    trees: dict[str | None, str] = {}
    for wide in commands.git_wide(command, files):
        trees.setdefault(_tree_of(svc, tx, cwd, wide.folder), wide.said)
    if not trees:
        return None
    return git_turns.take(svc, tx, agent, [(text, tree) for tree, text in trees.items()])


def _tree_of(svc: Service, tx: Tx, cwd: str | None, folder: Folder | None) -> str | None:
    """The tree that git changes which runs there (`git_turns.tree_of`)."""
    if cwd is None:
        return None
    try:
        if folder is None:  # it may go anywhere by itself
            return tx.looked.place(cwd, literal=True).worktree
        made = posixpath.join(cwd, folder.made) if folder.made else ""
        return git_turns.tree_of(svc, tx, posixpath.join(cwd, folder.path), made)
    except Refusal:
        return None  # it may go into the repository by itself


def git_wide_needs(command: str, cwd: str | None) -> list[AnyNeed]:
    """What to look at before `git_wide` is decided."""
    return git_turns.needs(cwd) if cwd and commands.git_wide(command) else []


def target_needs(command: str, cwd: str | None) -> list[AnyNeed]:
    """What to look at to learn what a command writes."""
    return [Whole(other_target.path, cwd, True, link=other_target.link) for target
            in _targets(command)
            for other_target in (target, *(target.inside or ()))]


def places(
    tx: Tx, command: str, cwd: str | None, files: Sequence[commands.Either] = ()
) -> list[Place]:
    """The places of the files that the command plainly names as its targets, and of those that it
    checks out (`files`). For a directory into which it puts something, only the new entry.

    Raises:
        Unready: these have to be looked at.
    """
    def place(target: commands.Target) -> Place:
        return Place(target.path, cwd, True, target.link)

    named = [*_targets(command), *(commands.Target(either.path, "itself") for either in files)]
    tx.looked.require(place(target) for target in named)
    result: dict[Place, None] = {}
    for target in named:
        if target.inside is not None and _is_folder(tx, place(target),
                                                    of_several=len(target.inside) > 1):
            result.update((place(each), None) for each in target.inside)
        else:
            result[place(target)] = None
    return list(result)


def _targets(command: str) -> list[commands.Target]:
    return [target for target in commands.targets(command) if not target.path.startswith("/dev/")]


def _is_folder(tx: Tx, place: Place, *, of_several: bool) -> bool:
    """Whether what is put there is put into it; `of_several`: then it is about to be one, too."""
    try:
        there = tx.looked.located(place)
    except Refusal:
        return False
    return there.resource.kind == "dir" if there.there else of_several


def held_by_others(view: View, agent: str) -> list[LeaseRow]:
    """Leases of others, without those that the agent writes together with them. Its parent's leases
    count as its own."""
    mine = family(view, agent)
    rows = _live(view)
    agreed = agreements.names_of(rows, mine)
    return [row for row in rows if row.locked_by not in mine and row.kind != "key"
            and row.agreed_as not in agreed]


def _live(tx: View) -> list[LeaseRow]:
    return tx.each(LeaseRow, "leases_live", tx.now, 0, None, PROTECTED_MAX)


def _list_in(rows: Sequence[LeaseRow], words: Iterable[str]) -> list[LeaseRow]:
    """The leases that some of these words may be in."""
    texts = list(words)
    return [row for row in rows if any(_may_be_in(row, text) for text in texts)]


def explained(tx: Tx, agent: str, command: str, output: str) -> str:
    """The lease that stopped a command at a read-only file, in a sentence; empty if none did."""
    met = commands.not_writable(output)
    if met is None:
        return ""
    if any(STATE_DIR in word.split("/") for word in met):
        return (f"[coord] {STATE_DIR} is coord's own, and read-only for agents' commands. Nothing "
                "in it was changed. `coord status` tells what is held.")
    rows = held_by_others(tx, agent)
    named = _list_in(rows, met)
    if not rows or (met and not named):
        return ""  # it was another file, which something else keeps from it
    named = named or _list_in(rows, commands.words(command))
    text = "; ".join(dict.fromkeys(
        f"{row.file_path} is leased by {row.locked_by}"
        + (f" ({quoted(row.task_description)})" if row.task_description else "")
        + f" until {short(from_iso(row.expires_at))}"
        for row in (named or rows)[:5]
    ))
    return (
        f"[coord] Your command met files that others hold, which were read-only for it: {text}. "
        "Nothing in them was changed. Do not try to work around it; do other work and come back."
    )


def _may_be_in(row: LeaseRow, word: str) -> bool:
    """Whether a word may name what is leased, or what is in it, from wherever it was said."""
    name, word = row.file_path.partition("::")[0].rstrip("/"), word.removeprefix("./").rstrip("/")
    if row.kind == "glob":
        return overlaps(as_resource(word, "file", path_scope(word)),
                        as_resource(row.file_path, "glob", row.scope))
    return f"/{word}".endswith(f"/{name}") or f"/{name}".endswith(f"/{word}") or (
        row.kind == "dir" and f"/{name}/" in f"/{word}")


def settle_own(svc: Service, tx: Tx, agent: str, heard: HookCall) -> None:
    """After a command: what it did to files that its agent holds is the agent's own writing, and
    what it printed of those and of others that it names is read.

    Raises:
        Unready: they were not looked at; or the watcher has not told yet of what the command has
        done: once it is answered, what it wrote and renamed is nobody else's.
    """
    own: list[Located] = []
    before: dict[str, tuple[str | None, str]] = {}
    for row in tx.each(LeaseRow, "leases_of_holder", agent):
        if row.kind == "file" and row.mode == "exclusive" and len(own) < OWN_MAX:
            own.append(Located(as_resource(row.file_path, row.kind, row.scope), row.inode,
                               svc.where(row.worktree, row.file_path), row.worktree))
            last = (tx.first(VersionRow, "version_get", row.file_path)
                    if row.worktree is None else None)
            path = svc.where(row.worktree, row.file_path)
            if last is not None and last.seen_at >= row.began:
                before[path] = last.hash, last.seen_at if row.lent_by else row.locked_at
            else:
                before[path] = row.content_hash, row.locked_at
    if svc.wait_for_watcher is not None:
        # If a file is missing from its name, wait for what the kernel has yet to report.
        sure = _is_gone(svc, tx, agent, before)
        tx.looked.after("what the command has done",
                        partial(svc.wait_for_watcher, WATCHER_WAIT_S, sure))
    read_versions.note_command(tx, agent, own, before)
    if heard.output:
        read_versions.note_shown(tx, agent, [*own, *_named(svc, tx, heard, own)], heard.output)


def of_the_command(tx: Tx, agent: str, tool: str) -> list[LeaseRow]:
    """Leases of ignored files that a command of this agent took. They end with the command, because
    they are logs and build products, which the next agent writes, too.

    Raises:
        Unready: the rules have to be looked at.
    """
    rows = [row for row in tx.each(LeaseRow, "leases_of_holder", agent)
            if row.kind in ("file", "dir") and row.worktree is None
            and row.purpose in (purposes.of_hook(tool),
                                purposes.of_hook(tool, everywhere=True))]
    names = [row.file_path.rstrip("/") for row in rows]
    tx.looked.require(Ignored(name, is_dir) for name in names for is_dir in (False, True))
    return [row for row, name in zip(rows, names, strict=True)
            if tx.looked.ignored(name, is_dir=True) or tx.looked.ignored(name)]


def _is_gone(svc: Service, tx: Tx, agent: str,
             before: Mapping[str, tuple[str | None, str]]) -> bool:
    """Whether something that this agent holds in the main working tree is missing from its name:
    one of the known files, a file held in parts, or a directory."""
    rows = [row for row in tx.each(LeaseRow, "leases_of_holder", agent)
            if row.kind in ("dir", "region") and row.worktree is None
            and row.mode == "exclusive"][:OWN_MAX]
    paths = [svc.where(None, path_of(row.file_path, row.kind).rstrip("/")) for row in rows]
    paths += [path for path, (was, _) in before.items() if was is not None]
    places = [Place(path, None, True, "itself") for path in dict.fromkeys(paths)]
    tx.looked.require(places)
    for place in places:
        with contextlib.suppress(Refusal):
            if not tx.looked.located(place).there:
                return True
    return False


def _named(svc: Service, tx: Tx, heard: HookCall, but: Sequence[Located]) -> list[Located]:
    """Files in the repository that words of the command name, beside these. A word that plainly
    lies elsewhere is not looked at, because it may be on a disk that does not answer."""
    command = heard.call.command if heard.call is not None else ""
    places = [Place(word, heard.cwd, True) for word in dict.fromkeys(commands.words(command))
              if word[:1] not in "-~/" or word.startswith(f"{svc.root}/")][:NAMED_MAX]
    tx.looked.require(places)
    matches = {}
    for place in places:
        try:
            located = tx.looked.place(place.text, place.cwd, literal=True)
        except Refusal:
            continue
        matches[located.path] = located
    paths = {located.path for located in but}
    return [located for path, located in matches.items() if path not in paths]


def violation(svc: Service, tx: Tx, agent: str, broken: Sequence[Broken]) -> list[str]:
    """Record that a command of `agent` changed what others hold: keep the bytes, open a review,
    tell the holders. Returns what the agent is told. Where commands of others ran, too, all are
    named, and it is recorded once.

    Raises:
        Unready: the files have to be looked at.
    """
    broken = _of_others(svc, tx, agent, _without_what_is_around(broken))
    places = {breakage: svc.where(breakage.worktree, breakage.name.rstrip("/")) for breakage
              in broken}
    tx.looked.require(map(Content, places.values()))
    matches = {breakage: tx.looked.content(place) for breakage, place in places.items()}
    result: list[str] = []
    for also in dict.fromkeys(breakage.also for breakage in broken):
        some = [breakage for breakage in broken if breakage.also == also]
        new = [breakage for breakage in some
               if not _is_told(svc, tx, agent, breakage, matches[breakage])]
        review = _flag(svc, tx, agent, new, matches, also) if new else ""
        names = listed([breakage.name for breakage in (some if also else new)])
        held = _holders(svc, tx, agent, some)
        holders = listed(sorted(set[str]().union(*held)))
        look = f"A person will look at it{f' ({review})' if review else ''}."
        if also:
            result.append(
                f"[coord] {names}, held by {holders}, changed while commands of yours and of "
                f"{listed(also)} ran: it is not known whose it was. {look} Do not write there; do "
                "not undo it by yourself.")
        elif new:
            result.append(
                f"[coord] Your last command changed {names}, held by {holders}, without a lease. "
                f"{look} Do not write there; do not undo it by yourself.")
    return result


def _of_others(svc: Service, tx: Tx, agent: str, broken: Sequence[Broken]) -> list[Broken]:
    """The changes that concern what others hold. If others hold parts of a file, only changes of
    these parts count. Each is returned with its holders.

    Raises:
        Unready: the files have to be looked at.
    """
    parts = {other_breakage: _parts_of_others(svc, tx, agent, other_breakage) for other_breakage
             in broken}
    told_apart = [other_breakage for other_breakage in broken if parts[other_breakage]
                  and other_breakage.now not in NO_FILE]
    tx.looked.require(changed_parts.needs(
        svc, tx, [(other_breakage.name, other_breakage.before) for other_breakage in told_apart]))
    result = []
    for breakage in broken:
        changed = (changed_parts.since(svc, tx, breakage.name, breakage.before)
                   if breakage in told_apart else None)
        if changed is None:  # more than single parts, or unknown: all holders of parts
            result.append(breakage._replace(holders=tuple(sorted({
                row.locked_by for row in parts[breakage]}))))
            continue
        holders = {row.locked_by for row in parts[breakage] if any(overlaps(
            as_resource(row.file_path, row.kind, row.scope), part) for part in changed)}
        if holders:
            result.append(breakage._replace(holders=tuple(sorted(holders))))
    return result


def _parts_of_others(svc: Service, tx: Tx, agent: str, breakage: Broken) -> list[LeaseRow]:
    """The leases of others on this file, if they hold only parts of it."""
    if breakage.worktree is not None or breakage.name.endswith("/"):
        return []
    mine = family(tx, agent)
    rows = [row for row in leases_near(tx, resource(
        breakage.name, "file", fold_case=svc.fold_case)) if row.worktree is None
        and row.expires_at > tx.now and row.locked_by not in mine]
    is_holder = breakage.holder in {row.locked_by for row in rows}
    return rows if is_holder and all(row.kind == "region" for row in rows) else []


def _keep(svc: Service, tx: Tx, breakage: Broken, content: Bytes) -> ev.FlaggedFile:
    """A file that was changed, with both of its contents kept."""
    before = None if breakage.before in NO_FILE else breakage.before
    kept = (content.hash is None or tx.keep_found(content)) and (
        before is None or tx.has("blob_has", before)
    )
    stands = content.hash is not None or breakage.now in NO_FILE
    change = "created" if breakage.before is None else "modified" if stands else "deleted"
    name = breakage.name.rstrip("/")
    return ev.FlaggedFile(
        path=name, scope=path_scope(name, svc.fold_case), change=change,
        kept=kept, worktree=breakage.worktree, baseline_hash=before,
        flagged_hash=content.hash,
    )


def _flag(svc: Service, tx: Tx, agent: str, broken: Sequence[Broken],
          contents: Mapping[Broken, Bytes],
          also: tuple[str, ...]) -> str:
    """Open the review of these, and tell their holders; its name."""
    files = []
    for breakage in broken:
        file = _keep(svc, tx, breakage, contents[breakage])
        files.append(file)
        tx.record(UnleasedWrite(resource=file.path, hash=file.flagged_hash, agent=agent))
    held = _holders(svc, tx, agent, broken)
    holders = sorted(set[str]().union(*held))
    names = listed([other_breakage.name for other_breakage in broken])
    flagged = partial_work.flag(
        tx, files,
        partial_work.Occasion(
            reason="unleased", agent=agent,
            why=f"{names}, held by {listed(holders)}, changed while commands of "
            f"{listed([agent, *also])} ran; it is not known whose it was."
            if also else f"{agent} ran a command that changed {names}, held by {listed(holders)}."))
    review = listed([flagged.review, *flagged.others])
    seen: list[tuple[str, str | None, str | None]] = [
        (f.path, f.flagged_hash, agent) for f in files if f.worktree is None
    ]
    if seen:
        tx.record(ev.VersionsSeen(versions=seen))
    for holder in holders:
        theirs = [(breakage.name, file.kept) for breakage, file, those
                  in zip(broken, files, held, strict=True) if holder in those]
        text = ("Both contents are kept in" if all(kept for _, kept in theirs)
                else "Not all contents could be kept for")
        what = listed([name for name, _ in theirs])
        happened = (
            f"{what}, which you hold, changed while commands of {listed([agent, *also])} ran; it "
            "is not known whose it was." if also else
            f"A command of {agent} changed {what}, which you hold.")
        notices.post(
            tx, holder, "violated",
            f"{happened} {text} {review}. Look at the file before you write it again.",
            review=flagged.review,
        )
    return review


def _holders(svc: Service, tx: Tx, agent: str, broken: Sequence[Broken]) -> list[set[str]]:
    """The holders of each of these: the named one, and all holders of its regions."""
    mine = family(tx, agent)
    return [set(breakage.holders) or {breakage.holder} | (
        holders_of_regions(tx, breakage.name, svc.fold_case) - mine
        if breakage.worktree is None and not breakage.name.endswith("/") else set()) for breakage
        in broken]


def _without_what_is_around(broken: Sequence[Broken]) -> list[Broken]:
    """Leave out directories whose entries are reported themselves."""
    return [breakage for breakage in broken if not (breakage.now == DIRECTORY and any(
        other.worktree == breakage.worktree
        and other.name.startswith(breakage.name.rstrip("/") + "/")
        for other in broken if other != breakage))]


def _is_told(svc: Service, tx: Tx, agent: str, breakage: Broken, now: Bytes) -> bool:
    """Whether this change is already recorded as that agent's, or as one that may be. The watcher
    and the hooks of commands all see it. The same content may have been there earlier and been
    removed."""
    version = tx.first(VersionRow, "version_get", breakage.name)
    if breakage.worktree is not None or version is None or version.seen_at < breakage.since:
        return False
    by = version.agent or ""
    if version.hash != now.hash or not (by == agent or owner(tx, by) in breakage.also):
        return False
    # A holder of a part counts as its writer, too, until somebody has found the writer.
    return not breakage.holders or tx.has(
        "review_of_unleased", path_scope(breakage.name, svc.fold_case), now.hash)
