"""The watch around held paths, beside somebody who makes directories just then."""

import os
from pathlib import Path

import pytest

from coordinator.namespaces import kernel
from coordinator.namespaces.watches import Watches

pytestmark = pytest.mark.skipif(bool(kernel.refused()), reason="no namespaces on this machine")


def test_a_directory_that_comes_just_after_it_was_looked_for_is_watched(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody tells of it any more: it has to be looked for again."""
    held = tmp_path / "far/away/from here/f"
    watches, real = Watches(), kernel.watch

    def watch(inotify: int, directory: bytes) -> int:
        try:
            return real(inotify, directory)
        except FileNotFoundError:
            os.makedirs(directory, exist_ok=True)
            raise

    monkeypatch.setattr(kernel, "watch", watch)
    watches.add([str(held)])
    held.write_text("made\n")
    assert watches.changed() == {str(held)}
    held.rename(tmp_path / "elsewhere")
    assert not watches.changed()
    (tmp_path / "elsewhere").rename(held)
    assert watches.changed() == {str(held)}


@pytest.mark.parametrize("at_once", [True, False])
def test_a_chain_of_directories_is_followed_down(tmp_path: Path, at_once: bool) -> None:
    held = tmp_path / "a/b/c/f"
    watches = Watches()
    watches.add([str(held)])
    for made in [held.parent.parent.parent, held.parent.parent, held.parent]:
        made.mkdir()
        if not at_once:
            assert watches.changed() == {str(held)}
    watches.changed()
    held.write_text("made\n")
    assert watches.changed() == {str(held)}
