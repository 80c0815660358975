"""Hooks for one session, where its agent would not read the repository's settings.

Some agents read a project's settings only in the folder in which they are started. A session in a
folder below gets files of coord's own, in `.coord/`, and no person's settings are touched. The
profile says what an agent takes (`[session]`, profiles/session.py). If the agent reads the
project's or the user's wiring by itself, nothing is added, because its hooks would run twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os.path import normpath
from pathlib import Path

import msgspec

from coordinator.files.content import write_atomic
from coordinator.files.state import StateDir
from coordinator.profiles import Profile, SessionFile
from coordinator.wiring.settings_wiring import Wirer, is_marked
from coordinator.words.refusals import Code, Refusal

_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class Brought(msgspec.Struct, frozen=True):
    """What the program is started with besides what a person typed."""

    arguments: list[str] = msgspec.field(default_factory=list)
    environment: dict[str, str] = msgspec.field(default_factory=dict)


def bring(
    profile: Profile, state: StateDir, home: Path, cwd: Path, words: Sequence[str],
    environment: Mapping[str, str],
) -> Brought:
    """Write the needs of this profile's sessions in `cwd`, if there are any.

    Args:
        words: what a person typed after the program's name.
        environment: theirs: it may name files that coord's replace.

    Raises:
        Refusal: INVALID: such a file cannot be read, or the agent would not take coord's; STORAGE.
            The session would have no hooks.
    """
    session = profile.session
    if session is None or not _needed(profile, state, home, cwd, words):
        return Brought()
    wirer = Wirer(state, home)
    folder = state.path / "sessions" / profile.name
    if session.only_roots and not _is_roots(folder):
        raise Refusal(
            Code.INVALID, f"{profile.name} reads the repository's settings only at its root, and "
            "takes others only from where nobody but root can write.",
            next=f"`coord init --agent {profile.name} --user` wires it for all folders.",
        )
    made = {session_file.file: _text(wirer, profile, session_file, environment) for session_file
            in session.files}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in made.items():
            write_atomic(folder / name, text.encode("utf-8", "surrogateescape"), 0o600)
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{folder} cannot be written: {bad.strerror}.") from None
    return Brought(
        [argument.replace("{folder}", str(folder)) for argument in session.arguments],
        {key: name.replace("{folder}", str(folder)) for key, name in session.env.items()},
    )


def describe_sessions(profile: Profile, state: StateDir, home: Path) -> str:
    """The note for a person about sessions that start in a folder below the root; empty if they are
    as guarded as others."""
    if not _reads_only_where_started(profile, state, home):
        return ""
    assert profile.session is not None
    whole = f"`coord init --agent {profile.name} --user` wires it for all folders"
    if profile.session.only_roots and not _is_roots(state.path):
        return (f"{profile.name} started in a folder below this one has no hooks, so its edits are "
                f"not leased: {whole}")
    return (f"{profile.name} started in a folder below this one has hooks only if `coord run "
            f"{profile.name}` or a shim (`coord shims install`) starts it; or {whole}")


def _reads_only_where_started(profile: Profile, state: StateDir, home: Path) -> bool:
    return profile.session is not None and not _is_planned(profile, Wirer(state, home, user=True))


def _needed(
    profile: Profile, state: StateDir, home: Path, cwd: Path, words: Sequence[str],
) -> bool:
    assert profile.session is not None
    if not _is_planned(profile, Wirer(state, home)):
        return False  # a person has not wired it here, or only for all repositories
    if not _reads_only_where_started(profile, state, home):
        return False
    # It may not work in the folder of its start: hooks twice are better than none.
    moves = any(word == option or word.startswith(option if len(option) == 2 else f"{option}=")
                for word in words for option in profile.session.elsewhere)
    return moves or not is_marked(cwd / profile.wire[0].file)


def _is_planned(profile: Profile, wirer: Wirer) -> bool:
    try:
        return bool(profile.wire) and not wirer.plan(profile)
    except Refusal:
        return False


def _text(
    wirer: Wirer, profile: Profile, wanted: SessionFile, environment: Mapping[str, str]
) -> str:
    if not wanted.like:
        return wanted.text
    (entry,) = [entry for entry in profile.wire if entry.file == wanted.like]
    for named in wanted.on_top_of:
        variables = _VARIABLE.findall(named)
        if all(environment.get(variable) for variable in variables):
            path = Path(normpath(_VARIABLE.sub(lambda match: environment[match[1]], named)))
            # One that the agent would not have taken must not come in by coord's hand.
            passed_over = (profile.session is not None and profile.session.only_roots
                           and not _is_roots(path))
            return wirer.text(profile, entry, None if passed_over else path)
    return wirer.text(profile, entry, None)


def _is_roots(path: Path) -> bool:
    """Whether only root can write to the existing part of a path, or to a folder above it."""
    real = path.resolve()
    for folder in (real, *real.parents):
        try:
            status = folder.stat()
        except FileNotFoundError:
            continue
        if status.st_uid != 0 or status.st_mode & 0o022:
            return False
    return True
