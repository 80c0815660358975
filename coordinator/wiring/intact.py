"""Whether what was wired into an agent's settings still asks before a write.

An agent CLI reads its settings again while it runs, and its own commands may write them. The module
looks for the hook before a tool, and for a switch that turns all hooks off. Other changes in these
files are the person's. It only reads, except in `put_back`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from coordinator.dialects.decode import moment_of
from coordinator.files.state import StateDir
from coordinator.profiles import Entry, Piece, Profile, load, profiles
from coordinator.wiring import jsonc, toml
from coordinator.wiring.settings_wiring import Wirer
from coordinator.words.refusals import Refusal

#: The mark of coord in each hook, and in each copied plugin.
_HOOK, _PLUGIN = "/_hook.py", "COORD_PLUGIN"


class _Wired(msgspec.Struct):
    path: str
    profile: str
    before: str | None = None


def wired(state: StateDir) -> list[_Wired]:
    """What coord has put in and not taken out (settings_wiring.py), also outside of the root."""
    try:
        return msgspec.json.decode((state.path / "wired").read_bytes(), type=list[_Wired])
    except (OSError, msgspec.DecodeError):
        return []


def protected(state: StateDir) -> list[str]:
    """The files in the repository, absolute, that hold coord's wiring and nothing else that a
    person or git has put there: coord has made them."""
    paths = [state.root / other_wired.path for other_wired in wired(state)
             if other_wired.before is None]
    return [str(path) for path in paths if path.is_relative_to(state.root) and path.is_file()]


def watched(state: StateDir, home: Path) -> list[Path]:
    """The files on which it depends whether its agents are guarded."""
    paths = [state.path / "wired",
             *(state.root / other_wired.path for other_wired in wired(state))]
    for profile in _wired_profiles(state):
        for switch in profile.off:
            paths += [_named(state, home, name) for name in switch.files]
    return list(dict.fromkeys(paths))


def unguarded(state: StateDir, home: Path) -> dict[str, str]:
    """The wired profiles that no longer ask -> why."""
    result = {}
    for profile in _wired_profiles(state):
        why = _why(profile, state, home)
        if why:
            result[profile.name] = why
    return result


def put_back(state: StateDir, home: Path, name: str) -> list[str]:
    """Write anew the files in the repository that coord has made for this profile and that are
    completely gone (`git clean -fdx`, a checkout). Returns their names. A person's own file stays
    as it is. So does their home, because another repository may have taken coord out there.

    Raises:
        Refusal: STORAGE.
    """
    made = {state.root / entry.path for entry in wired(state)
            if entry.profile == name and entry.before is None}
    gone = {path for path in made if path.is_relative_to(state.root) and not path.exists()}
    if not gone:
        return []
    profile, wirer = load(name, state.root), Wirer(state, home)
    changes = [change for change in wirer.plan(profile) if change.path in gone]
    wirer.apply(profile, changes)
    return [str(change.path) for change in changes]


def _wired_profiles(state: StateDir) -> list[Profile]:
    names = {other_wired.profile for other_wired in wired(state)}
    try:
        return [profile for profile in profiles(state.root, broken=False) if profile.name in names]
    except Refusal:
        return []


def _why(profile: Profile, state: StateDir, home: Path) -> str:
    for switch in profile.off:
        for name in switch.files:  # the first that has it is in force
            value = _read_at(_named(state, home, name), switch.at)
            if value is None:
                continue
            if value == json.loads(switch.value):
                return f"{name} switches its hooks off ({'.'.join(switch.at)})"
            break
    for entry in profile.wire:
        if not entry.copy and not _before_tools(profile, entry):
            continue
        places = [_named(state, home, name) for name in (entry.file, entry.user_file) if name]
        if any(_guards(profile, entry, place) for place in places):
            continue
        return (f"coord's hooks are gone from {entry.file}" if places[0].exists()
                else f"{entry.file} is gone, and coord's hooks with it")
    return ""


def _before_tools(profile: Profile, entry: Entry) -> list[Piece]:
    """The pieces that stop a tool. The wiring of an older coord may lack other guards."""
    dialect = profile.hooks.dialect if profile.hooks is not None else "plain"
    return [piece for piece in entry.add if "{guard" in piece.value
            and moment_of(dialect, piece.at[-1]) != "settings"]


def _guards(profile: Profile, entry: Entry, path: Path) -> bool:
    if entry.copy:
        return _PLUGIN in _read(path)
    return all(_HOOK in json.dumps(_read_at(path, piece.at))
               for piece in _before_tools(profile, entry))


def _named(state: StateDir, home: Path, name: str) -> Path:
    return home / name[2:] if name.startswith("~/") else state.root / name


def _read_at(path: Path, keys: Sequence[str]) -> Any:
    """A settings file's value at these keys; None if there is none, or if it cannot be read."""
    text = _read(path)
    if not text.strip():
        return None
    try:
        if path.suffix == ".toml":
            return toml.read_at(text, keys)
        value = jsonc.parse(text).value
    except (jsonc.BadJson, toml.BadToml):
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
