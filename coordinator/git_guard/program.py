"""`Program` runs the real git for the guard, with the options that stood before the subcommand."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from coordinator.files.git import ANSWERS
from coordinator.wiring import git_repository
from coordinator.words.refusals import Code, Refusal


class Program:
    """The real git, the options for each of its calls, and the environment that it runs in."""

    def __init__(self, path: str, options: Sequence[str],
                 environment: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.options = options
        self._environment = environment

    def with_environment(self, environment: Mapping[str, str]) -> Program:
        """Return the same git and options with another environment."""
        return Program(self.path, self.options, environment)

    def says(self, *words: str, ended: tuple[int, ...] = (0,), data: bytes = b"") -> bytes | None:
        """Run git with `data` as its input, and return what git prints, or None unless git ends
        with one of the codes in `ended`."""
        result = self._run_git(words, data)
        return result.stdout if result is not None and result.returncode in ended else None

    def must(self, *words: str, data: bytes | None = None) -> bytes:
        """Run git with `data` as its input, and return what git prints.

        Raises:
            Refusal: STORAGE, with the text of git's error.
        """
        result = self._run_git(words, data)
        if result is None or result.returncode:
            text = result.stderr.decode("utf-8", "replace").strip() if result is not None else ""
            raise Refusal(
                Code.STORAGE, f"git {words[0]} failed: {text or 'it could not be run'}. "
                "Nothing was committed.", next="Look at what git said.")
        return result.stdout

    def line(self, *words: str) -> str:
        """Return the one line that git prints, or an empty text where git fails."""
        return os.fsdecode(self.says(*words) or b"").removesuffix("\n")

    def names(self, *words: str) -> list[str]:
        """Return the file names that git prints with a NUL after each; none where git fails."""
        return [os.fsdecode(name) for name in (self.says(*words) or b"").split(b"\0") if name]

    def _run_git(self, words: Sequence[str],
             data: bytes | None) -> subprocess.CompletedProcess[bytes] | None:
        """Run git. The result is None if git cannot be started or runs for too long."""
        try:
            return subprocess.run(
                [self.path, *self.options, *ANSWERS, *words], capture_output=True, check=False,
                input=data or b"", timeout=git_repository.TIMEOUT_S, env=self._environment)
        except (OSError, subprocess.TimeoutExpired):
            return None
