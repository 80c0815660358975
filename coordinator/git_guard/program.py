"""The real git, called with the options that came before a subcommand."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from coordinator.files.git import ANSWERS
from coordinator.git_guard import repository
from coordinator.words.refusals import Code, Refusal


class Program:
    """The real git, with the options that came before the subcommand."""

    def __init__(self, path: str, options: Sequence[str],
                 environment: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.options = options
        self._environment = environment

    def with_environment(self, environment: Mapping[str, str]) -> Program:
        """The same in another environment."""
        return Program(self.path, self.options, environment)

    def says(self, *words: str, ended: tuple[int, ...] = (0,)) -> bytes | None:
        """What it prints; None unless it ended with one of these codes."""
        done = self._run(words, None)
        return done.stdout if done is not None and done.returncode in ended else None

    def must(self, *words: str, data: bytes | None = None) -> bytes:
        """What it prints, given `data` to read.

        Raises:
            Refusal: STORAGE, with what git said.
        """
        done = self._run(words, data)
        if done is None or done.returncode:
            text = done.stderr.decode("utf-8", "replace").strip() if done is not None else ""
            raise Refusal(
                Code.STORAGE, f"git {words[0]} failed: {text or 'it could not be run'}. "
                "Nothing was committed.", next="Look at what git said.")
        return done.stdout

    def line(self, *words: str) -> str:
        """One line of what it prints; empty where it fails."""
        return os.fsdecode(self.says(*words) or b"").removesuffix("\n")

    def names(self, *words: str) -> list[str]:
        """Files that it prints, each ended by a NUL."""
        return [os.fsdecode(name) for name in (self.says(*words) or b"").split(b"\0") if name]

    def _run(self, words: Sequence[str],
             data: bytes | None) -> subprocess.CompletedProcess[bytes] | None:
        try:
            return subprocess.run(
                [self.path, *self.options, *ANSWERS, *words], capture_output=True, check=False,
                input=data or b"", timeout=repository.TIMEOUT_S, env=self._environment)
        except (OSError, subprocess.TimeoutExpired):
            return None
