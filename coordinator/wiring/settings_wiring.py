"""Wiring an agent CLI to coord: plan the changes of its settings, write them, take them out again.

Nothing is written before all of it was planned: a file with a syntax error stops everything,
untouched. The additions are recorded in `.coord/wired`. So taking them out restores the file
or, if a person has changed it since, removes only what is coord's.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from coordinator.files.content import digest, write_atomic
from coordinator.files.state import StateDir
from coordinator.profiles import PLUGINS, Entry, Piece, Profile
from coordinator.wiring import command_prefix, jsonc, toml
from coordinator.wiring.command_prefix import HOOK
from coordinator.words.refusals import Code, Refusal
from coordinator.words.wrong_values import in_words

#: The marks of what coord has put in.
_PREFIX = "/coord/command-prefixes/"
_MARKS = ("/_hook.py", "coordinator.cli.main", "COORD_PLUGIN", _PREFIX)
#: The socket of a root, as a hook's command names it.
_SOCKET = re.compile(rf"{re.escape(HOOK.name)}['\"]? ['\"]?(/[^'\"]*?)/\.coord/socket\b")
_PLACE = re.compile(
    r"\{(guard|notice|begin|python|root|socket|profile|plugins|prefix)(?::([A-Za-z]+))?\}")


class Change(msgspec.Struct, frozen=True):
    """One file before and after (None: it does not exist)."""

    path: Path
    before: str | None
    after: str | None

    def shown(self) -> str:
        """The change as a unified diff."""
        old = (self.before or "").splitlines(keepends=True)
        new = (self.after or "").splitlines(keepends=True)
        name = str(self.path)
        lines = difflib.unified_diff(old, new, name if self.before is not None else "/dev/null",
                                     name if self.after is not None else "/dev/null")
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


class _Wired(msgspec.Struct):
    """What was put into one file. `path` is from the root if the file is in there, so that it stays
    valid in a moved or copied repository. `before`: None: there was no file. `folders`: made for
    it, named like the file; None: an earlier version did not note them."""

    path: str
    profile: str
    before: str | None
    digest: str
    folders: list[str] | None = None
    mcp: bool = True
    """Coord's MCP server was wanted, as earlier versions always did."""


class Wirer:
    """Plans for one repository.

    Args:
        home: the user's home, for `~/…`.
        user: write the user's settings (for every repository) instead of the project's.
        mcp: name coord's MCP server there, too; otherwise only if it was wanted before.
    """

    def __init__(self, state: StateDir, home: Path, *, user: bool = False,
                 mcp: bool = False) -> None:
        self._state, self._home, self._user, self._mcp = state, home, user, mcp
        self._record = state.path / "wired"

    def plan(self, profile: Profile) -> list[Change]:
        """The changes of wiring this profile; empty if it is wired already.

        Raises:
            Refusal: INVALID: nothing to wire, or a settings file with a syntax error.
        """
        if not profile.wire:
            raise Refusal(
                Code.INVALID, f"The profile {profile.name} has no settings to be wired. Nothing "
                "was written.",
                next=f"`coord launch --agent {profile.name}` runs it as it is; `coord agents "
                "profiles` shows which can be wired.",
            )
        return list(self._changes(profile, self._entries(profile)))

    def _entries(self, profile: Profile) -> list[Entry]:
        """What is wired of this profile: without coord's MCP server, unless it is wanted."""
        if self._wants_mcp(profile):
            return list(profile.wire)
        entries = [msgspec.structs.replace(entry, set=tuple(
            piece for piece in entry.set if not piece.is_mcp)) for entry in profile.wire]
        return [entry for entry in entries if entry.add or entry.set or entry.copy]

    def _wants_mcp(self, profile: Profile) -> bool:
        return self._mcp or any(wired.mcp for wired in self._wired().values()
                                if wired.profile == profile.name)

    def _changes(self, profile: Profile, wanted: Sequence[Entry]) -> Iterator[Change]:
        for entry in wanted:
            path = self._path(entry)
            before = _read(path)
            after = self._wired_text(profile, entry, path, before)
            if after != before:
                yield Change(path, before, after)

    def apply(self, profile: Profile, changes: Sequence[Change]) -> None:
        """Write the planned changes, and record them.

        Raises:
            Refusal: STORAGE; files written before stay wired, and are remembered.
        """
        wired, mcp = self._wired(), self._wants_mcp(profile)
        if any(_PREFIX in (change.after or "") for change in changes):
            self._make_prefix()
        for change in changes:
            assert change.after is not None
            key, known_wired = self._key(change.path), self._known(wired, change.path)
            made = [self._key(folder) for folder in _write(change.path, change.after)]
            if known_wired is not None:
                made = [*(known_wired.folders or []), *made]
            wired[key] = _Wired(
                key, profile.name,
                known_wired.before if known_wired is not None and known_wired.digest
                == _digest(change.before)
                else change.before, _digest(change.after),
                None if known_wired is not None and known_wired.folders is None else made, mcp,
            )
            self._save(wired)

    def unplan(self, profile: Profile) -> list[Change]:
        """The changes of taking the wiring out.

        Raises:
            Refusal: INVALID: a settings file with a syntax error.
        """
        changes = []
        wired = self._wired()
        for entry in profile.wire:
            path = self._path(entry)
            before = _read(path)
            if before is None:
                continue
            known_wired = self._known(wired, path)
            if known_wired is not None and known_wired.digest == _digest(before):
                after = known_wired.before
                if after is not None and _is_marked(after):
                    after = _stripped(path, after)
            elif not _is_marked(before):
                continue  # there is nothing of coord's in it
            elif entry.copy:
                after = None
            else:
                after = _stripped(path, before)
                if after is None and known_wired is not None and known_wired.before is not None:
                    after = "" if _is_toml(path) else "{}\n"  # it was there before
            if after != before:
                changes.append(Change(path, before, after))
        return changes

    def remove(self, changes: Sequence[Change]) -> None:
        """Write what `unplan` planned.

        Raises:
            Refusal: STORAGE.
        """
        wired = self._wired()
        for change in changes:
            known_wired = self._known(wired, change.path)
            wired = {key: other_wired for key,
                     other_wired in wired.items() if other_wired is not known_wired}
            if change.after is None:
                with suppress(OSError):
                    change.path.unlink(missing_ok=True)
                self._leave(change.path, known_wired, wired)
            else:
                _write(change.path, change.after)
            if _PREFIX in (change.before or ""):
                command_prefix.remove(self._everywhere)
            if self._state.path.is_dir():  # taking out makes nothing
                self._save(wired)

    def _leave(self, path: Path, wired: _Wired | None, others: dict[str, _Wired]) -> None:
        """Take away the folders that were made for a file, as far as nothing is in them; what
        another of coord's files is in goes with that one."""
        if wired is not None and wired.folders is not None:
            folders = [self._state.root / name for name in wired.folders]
        else:  # their maker is unknown
            folders = [other_path for other_path in (path.parent, path.parent.parent)
                       if other_path not in (self._home, self._state.root)]
        for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
            try:
                folder.rmdir()  # only if nothing else is in it
            except OSError:
                heir = next((other for other in others.values() if
                             (self._state.root / other.path).is_relative_to(folder)), None)
                if heir is not None and heir.folders is not None:
                    heir.folders.append(self._key(folder))

    def made(self) -> set[Path]:
        """The settings files that coord has made: there were none before."""
        return {self._state.root / wired.path for wired in self._wired().values()
                if wired.before is None}

    def is_wired(self, profile: Profile, *, here: bool = False) -> bool:
        """Whether every file has what this profile wants, in the project or (not only `here`) for
        the user."""
        both = (Wirer(self._state, self._home), Wirer(self._state, self._home, user=True))
        return any(wirer._has_needed(profile) for wirer in (both[:1] if here else both))

    def _has_needed(self, profile: Profile) -> bool:
        """Whether all is there that has to be; not what may stay out (`Piece.yields_to`)."""
        needed = [msgspec.structs.replace(
            entry, set=tuple(piece for piece in entry.set if not piece.yields_to))
            for entry in self._entries(profile)]
        try:
            if any(_read(self._path(entry)) is None for entry in needed):
                return False
            return bool(needed) and next(self._changes(profile, needed), None) is None
        except Refusal:
            return False

    def was_wired(self, profile: Profile) -> bool:
        """Whether coord put anything into its settings, and did not take it out again."""
        return any(wired.profile == profile.name for wired in self._wired().values())

    def wired_root(self, profile: Profile) -> str:
        """The root in its hooks here, if it is another than this: the folder was moved, or is a
        copy. Empty if it is not."""
        for entry in profile.wire:
            with suppress(Refusal):
                for root in _SOCKET.findall(_read(self._path(entry)) or ""):
                    if root != str(self._state.root):
                        return str(root)
        return ""

    def text(self, profile: Profile, entry: Entry, base: Path | None) -> str:
        """The content of a file of these settings: coord's, and that of `base`, if it exists.

        Raises:
            Refusal: INVALID: `base` cannot be read, or has a syntax error.
        """
        before = _read(base) if base is not None else None
        wanted = [wired for wired in self._entries(profile) if wired.file == entry.file]
        if not wanted:  # the agent is told of the file, so it is there
            return before or json.dumps({piece.at[0]: {} for piece in entry.set})
        return self._wired_text(profile, wanted[0], base or Path(entry.file), before)

    # ------------------------------------------------------------ inside

    @property
    def _everywhere(self) -> Path | None:
        """The repository; None: all of the user's."""
        return None if self._user else self._state.root

    def _make_prefix(self) -> None:
        try:
            command_prefix.make(self._everywhere, HOOK)
        except OSError as bad:
            raise Refusal(
                Code.STORAGE, f"{command_prefix.place(self._everywhere)} cannot be written: "
                f"{bad.strerror}. Nothing was changed.", next="Give write access to its folder.",
            ) from None

    def _path(self, entry: Entry) -> Path:
        return self._named(entry.user_file if self._user and entry.user_file else entry.file)

    def _named(self, name: str) -> Path:
        if name.startswith("~/"):
            return self._home / name[2:]
        return self._state.root / name

    def _goes_in(self, piece: Piece, path: Path, text: str) -> bool:
        """Whether the key has no value of a person's, and this one is of use. A value that coord
        has put there with another home is as good, while its target exists."""
        if not piece.yields_to:
            return True
        there = _read_at(path, text, piece.at)
        if isinstance(there, str) and _PREFIX in there and os.access(there, os.X_OK):
            return False
        if "{prefix}" in piece.value and not command_prefix.can_be(self._everywhere):
            return False
        matches = [os.environ.get(piece.at[-1]), _read_at(path, text, piece.at)]
        for other in map(self._named, piece.yields_to):
            with suppress(jsonc.BadJson, toml.BadToml, Refusal):
                matches.append(_read_at(other, _read(other) or "", piece.at))
        return all(item is None or any(mark in str(item) for mark in _MARKS) for item in matches)

    def _wired_text(self, profile: Profile, entry: Entry, path: Path, before: str | None) -> str:
        if entry.copy:
            return self._filled(profile, (PLUGINS / entry.copy).read_text("utf-8"), quoted=False)
        text = before if before is not None else ""
        try:
            # The wiring of an older coord, or of another interpreter, is replaced.
            add, put_in = self._values(profile, entry, path, text)
            if text.strip() and not _has_all(path, text, add, put_in):
                text = _stripped(path, text) or ""
                add, put_in = self._values(profile, entry, path, text)
            for piece, value in add.items():
                if value not in (_read_at(path, text, piece.at) or []):
                    text = jsonc.appended(text, piece.at, value)
            for piece, value in put_in.items():
                if _read_at(path, text, piece.at) != value:
                    put = toml.with_member if _is_toml(path) else jsonc.with_member
                    text = put(text, piece.at, value)
        except (jsonc.BadJson, toml.BadToml) as bad:
            raise _broken(path, bad) from None
        return text

    def _values(self, profile: Profile, entry: Entry, path: Path,
                text: str) -> tuple[dict[Piece, Any], dict[Piece, Any]]:
        """The values for a file's lists, and those under keys of their own."""
        add, put_in = ({piece: self._value(profile, piece) for piece in pieces
                        if self._goes_in(piece, path, text)}
                       for pieces in (entry.add, entry.set))
        return add, put_in

    def _value(self, profile: Profile, piece: Piece) -> Any:
        try:
            return json.loads(self._filled(profile, piece.value, quoted=True))
        except ValueError as bad:
            raise Refusal(Code.INVALID, f"{profile.source}: wire: {piece.at}: {bad}.") from None

    def _filled(self, profile: Profile, text: str, *, quoted: bool) -> str:
        patience = 30.0
        if profile.hooks is not None:
            patience = max(5.0, profile.hooks.timeout_s - 2.0)

        def fill(match: re.Match[str]) -> str:
            what, event = match[1], match[2] or ""
            dialect = profile.hooks.dialect if profile.hooks is not None else ""
            asked = "-" if self._user else str(self._state.socket())
            name = f"{profile.name}:{event}" if event else profile.name
            text = {
                "guard": lambda: command_prefix.guard(
                    asked, name, patience, "-" if self._user else str(self._state.path),
                    is_spoken=dialect == "copilot"),
                "notice": lambda: command_prefix.notice(asked, name, patience),
                "begin": lambda: command_prefix.begin(name),
                "python": lambda: sys.executable,
                "root": lambda: str(self._state.root),
                "socket": lambda: str(self._state.socket()),
                "profile": lambda: profile.name,
                "plugins": lambda: str(PLUGINS),
                "prefix": lambda: str(command_prefix.place(self._everywhere)),
            }[what]()
            return json.dumps(text, ensure_ascii=False)[1:-1] if quoted else text

        return _PLACE.sub(fill, text)

    def _wired(self) -> dict[str, _Wired]:
        try:
            matches = msgspec.json.decode(self._record.read_bytes(), type=list[_Wired])
        except (OSError, msgspec.DecodeError):
            return {}
        return {wired.path: wired for wired in matches}

    def _key(self, path: Path) -> str:
        """The recorded name of a file: from the root, if it is in there."""
        root = self._state.root
        return str(path.relative_to(root) if path.is_relative_to(root) else path)

    def _known(self, wired: dict[str, _Wired], path: Path) -> _Wired | None:
        """The record of a file; also if its name is a whole path, as in earlier versions, before
        the repository was moved or copied."""
        key = self._key(path)
        if key in wired or Path(key).is_absolute():
            return wired.get(key)
        return next((other_wired for name, other_wired in wired.items() if name.endswith(f"/{key}")
                     and name != str(self._home / key)), None)

    def _save(self, wired: dict[str, _Wired]) -> None:
        self._state.create()
        write_atomic(self._record, msgspec.json.encode(list(wired.values())), 0o600)


def is_marked(path: Path) -> bool:
    """Whether a settings file holds something of coord's."""
    try:
        text = _read(path)
    except Refusal:
        return False
    return text is not None and any(mark in text for mark in _MARKS)


def _is_toml(file: Path) -> bool:
    return file.suffix == ".toml"


def _has_all(file: Path, text: str, add: dict[Piece, Any], put_in: dict[Piece, Any]) -> bool:
    return all(value in (_read_at(file, text, piece.at) or []) for piece,
               value in add.items()) and all(
        _read_at(file, text, piece.at) == value for piece, value in put_in.items())


def _read_at(file: Path, text: str, path: Sequence[str]) -> Any:
    if not text.strip():
        return None
    if _is_toml(file):
        return toml.read_at(text, path)
    value = jsonc.parse(text).value
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _stripped(path: Path, text: str) -> str | None:
    """The text without what is coord's, and without the lists and objects that leaves empty. None
    if nothing else is left."""
    try:
        if _is_toml(path):
            return toml.stripped(text, _MARKS)
        while (entry := _doomed(jsonc.parse(text))) is not None:
            text = jsonc.without(text, *entry)
        return text if jsonc.parse(text).value != {} or "/" in text else None
    except (jsonc.BadJson, toml.BadToml) as bad:
        raise _broken(path, bad) from None


def _doomed(around: jsonc.Span) -> tuple[jsonc.Span, jsonc.Span] | None:
    """The outermost item or member that holds only coord's own, and its container."""
    for child in (*around.members.values(), *around.items):
        if _ours(child):
            return child, around
        deeper = _doomed(child)
        if deeper is not None:
            return deeper
    return None


def _ours(span: jsonc.Span) -> bool:
    """Whether coord has put this in: a hook entry or server whose command is coord's."""
    if span.items:
        return all(_ours(item) for item in span.items)
    if not span.members:
        return isinstance(span.value, str) and _is_marked(span.value)
    command = span.value.get("command") if isinstance(span.value, dict) else None
    if isinstance(command, list):
        command = " ".join(map(str, command))
    if _is_marked(f"{command} {span.value.get('args')} {span.value.get('bash')}"):
        return True
    inner = span.members.get("hooks")
    if inner is not None and inner.items:
        return _ours(inner)
    return all(map(_ours, span.members.values()))


def _is_marked(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as bad:
        raise Refusal(
            Code.INVALID, f"{path} cannot be read ({in_words(bad)}). Nothing was changed.",
            next=f"Look at {path}.",
        ) from None


def _write(path: Path, text: str) -> list[Path]:
    """Write it; the folders that were made for it."""
    target = Path(os.path.realpath(path))  # a link in a person's dot files stays one
    try:
        made = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        write_atomic(target, text.encode(), mode)
    except OSError as bad:
        raise Refusal(
            Code.STORAGE, f"{path} cannot be written: {bad.strerror}. It is as it was.",
            next=f"Give write access to {path.parent}.",
        ) from None
    return made


def _digest(text: str | None) -> str:
    return "absent" if text is None else digest(text.encode())


def _broken(path: Path, bad: Exception) -> Refusal:
    return Refusal(
        Code.INVALID, f"{path} has a syntax error ({bad}). It was left as it is, and no settings "
        "were changed.", next=f"Correct {path}, then repeat.",
    )
