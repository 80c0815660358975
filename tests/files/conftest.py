"""What the tests of `files` share: a real git, deaf to the settings of whoever runs it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., None]


@pytest.fixture(scope="session")
def git() -> Git:
    """Run git in a directory; a failure fails the test."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }

    def run(directory: Path, *args: str) -> None:
        subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *args],
            cwd=directory, env=environment, check=True, capture_output=True,
        )

    return run
