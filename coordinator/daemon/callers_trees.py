"""Translating the paths of a hook that sees the repository elsewhere, and finding other
repositories.

A hook may come from a container or see the tree through a bind mount. Its paths are resolved by its
own mounts and then looked up in this tree. Where that is impossible the write is refused; it never
passes as a write to some other tree.

A session may also write files of other repositories (`--add-dir`, absolute paths, links). This
coordinator does not judge those files. It names the other repositories to the hook, and the hook
asks their coordinators with the same words. So each of them sees the agent's own process, registers
the session under its own name, and ends it with that process.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from coordinator.daemon.request_router import RequestRouter
from coordinator.dialects.decode import HookCall
from coordinator.files import mount_views, ownership
from coordinator.files.roots import STATE_DIR, find_root, is_prepared
from coordinator.words.file_names import shown
from coordinator.words.refusals import Code, Refusal

#: The process id of a caller in another process namespace: the kernel tells no number of it.
UNSEEN = -1


class CallersTrees:
    """Translates paths of hooks. Used in the loop's thread; another thread looks at the disk."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    def seen_from_here(self, heard: HookCall, caller: int,
                       then: Callable[[HookCall], None]) -> None:
        """Call `then` with the hook's call, its paths as they are named here. `caller`: the hook's
        process; 0 over HTTP, which does not tell it, so the paths are taken as they are."""
        tree = self._router.service.tree
        bases = sorted({str(tree.root), *tree.worktrees()}, key=len, reverse=True)
        names = {} if not caller else {
            path: absolute for path, absolute in _list_paths(heard, str(tree.root)).items()
            if not _is_below(absolute, bases)}
        if not names:
            then(heard)
            return

        def continue_with(names_here: Any) -> None:
            then(_rename(heard, names, names_here) if isinstance(names_here, dict)
                 else _refuse_write(heard, names, bases))

        self._router.engine.task(self._router.engine.do(
            partial(_look, list(names.values()), caller, bases)), continue_with)


def _look(paths: list[str], caller: int, bases: list[str]) -> dict[str, str] | None:
    try:
        return mount_views.as_here(paths, caller, bases)
    except OSError:
        return None


def _list_paths(heard: HookCall, root: str) -> dict[str, str]:
    """The paths that the call names, and its folder, each with its absolute path."""
    cwd = heard.cwd or root
    paths = heard.call.paths if heard.call is not None else ()
    result = {path: posixpath.join(cwd, path) for path in paths}
    if heard.cwd is not None:
        result[heard.cwd] = heard.cwd
    return result


def _is_below(path: str, bases: list[str]) -> bool:
    plain = posixpath.normpath(path) + "/"
    return any(plain.startswith(base.rstrip("/") + "/") for base in bases)


def _rename(heard: HookCall, names: dict[str, str], here: dict[str, str]) -> HookCall:
    def translate(path: str) -> str:
        absolute = names.get(path)
        if absolute is None:
            # A relative path begins in the call's folder, which may be renamed, too.
            return posixpath.join(heard.cwd or "", path)
        return here.get(absolute, absolute)

    if not here:
        return heard
    call = heard.call
    if call is not None and call.paths:
        call = msgspec.structs.replace(call, paths=tuple(map(translate, call.paths)))
    return replace(heard, call=call, cwd=here.get(heard.cwd or "", heard.cwd))


def _refuse_write(heard: HookCall, names: dict[str, str], bases: list[str]) -> HookCall:
    """Stop a write, because nobody can tell which tree the agent would write in. An agent whose
    folder is in this tree, as it is named here, sees the disk as it is here, and may write."""
    call = heard.call
    if (heard.moment != "before" or call is None or call.kind != "write"
            or (heard.cwd is not None and _is_below(heard.cwd, bases))):
        return heard
    path = next((path for path in call.paths if path in names), heard.cwd or "")
    return replace(heard, stopped=Refusal(
        Code.OUTSIDE_REPO, f"{shown(path)} lies outside of {bases[-1]} as its coordinator sees the "
        "disk, and how this agent sees it cannot be looked at: nobody can say whether it is the "
        "same tree. It was not written.",
        next="Run the coordinator where the agent runs, or mount the repository at the same path."))


#: How many sessions have their other repositories remembered. Leases of the oldest end there with
#: their process.
SESSIONS_MAX = 1000

#: A profile, and the session as its hooks name it.
Session = tuple[str, str]


class OtherRepositories:
    """The other roots that each session has met. Used from the loop's thread, except `roots`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._met: dict[Session, list[str]] = {}

    def roots(self, paths: Sequence[str], cwd: str | None) -> list[str]:
        """This user's other roots that contain these paths. Looks at the disk."""
        result: list[str] = []
        for path in paths:
            try:
                root = find_root(Path(cwd or self._root, path))
                mine = (root / STATE_DIR).stat().st_uid == ownership.user()
            except (OSError, ValueError):
                continue
            if mine and root != self._root and is_prepared(str(root)) and str(root) not in result:
                result.append(str(root))
        return result

    def meet(self, session: Session, roots: Sequence[str]) -> None:
        """Note that these repositories know the session from now on."""
        if not roots:
            return
        met = self._met.setdefault(session, [])
        met += [root for root in roots if root not in met]
        if len(self._met) > SESSIONS_MAX:
            del self._met[next(iter(self._met))]

    def met(self, session: Session) -> list[str]:
        """The roots where a session is known."""
        return [root for root in self._met.get(session, ()) if os.access(root, os.F_OK)]

    def over(self, session: Session) -> list[str]:
        """Forget an ended session, and return the roots where it was known."""
        met = self.met(session)
        self._met.pop(session, None)
        return met
