"""Which paths are read-only in which session. Pure: it knows no disk and no process.

A path is read-only in a session unless the session's agent may write it. Everything below a
read-only directory is read-only, except what the session's agent holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

#: The agents that may write a path; all other sessions have it read-only.
Writers = frozenset[str]


class Plan:
    """What is held in each root, by absolute path."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Writers]] = {}

    def replace(self, root: str, held: Mapping[str, Writers]) -> set[str]:
        """Replace everything that is held in a root. Returns the paths that differ now."""
        before, now = self._held.get(root, {}), dict(held)
        self._held[root] = now
        return {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}

    def change(self, root: str, changed: Mapping[str, Writers | None]) -> set[str]:
        """Give some paths other writers; None: no writers any longer. Returns the paths to look at.
        """
        held = self._held.setdefault(root, {})
        for path, writers in changed.items():
            if writers is None:
                held.pop(path, None)
            else:
                held[path] = writers
        return set(changed)

    def is_held(self, root: str, path: str) -> bool:
        """Whether a path is held in this root."""
        return path in self._held.get(root, ())

    def paths(self) -> Iterator[str]:
        """All that is held, anywhere."""
        for held in self._held.values():
            yield from held

    def below(self, paths: set[str]) -> set[str]:
        """These paths and those held below them, which may have become covered or uncovered."""
        return paths | {path for path in self.paths() if any(up in paths for up in _above(path))}

    def is_read_only(self, path: str, agents: Mapping[str, str],
                     own: Collection[str] = ()) -> bool:
        """Whether a path has to be mounted, by itself, in the session of these agents (by root).
        `own`: directories that stay writable there, wherever they are."""
        if not self._keeps_out(path, agents):
            return False
        for up in () if path in own else _above(path):
            if self._keeps_out(up, agents):
                return False
            if up in own:
                break
        return True

    def _keeps_out(self, path: str, agents: Mapping[str, str]) -> bool:
        return any(
            path in held and agents.get(root) not in held[path] for root, held in self._held.items()
        )


def _above(path: str) -> Iterator[str]:
    """The directories above a path."""
    position = path.rfind("/")
    while position > 0:
        yield path[:position]
        position = path.rfind("/", 0, position)
