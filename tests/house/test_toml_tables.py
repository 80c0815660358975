"""TOML that travels with coord is read before; a file that was changed since is read itself."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from coordinator import toml_tables
from coordinator.profiles import profiles
from coordinator.resources import packaged

PACKAGE = Path(toml_tables.__file__).parent
FILES = [*packaged("agents").glob("*.toml"), *PACKAGE.rglob("*.toml")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_each_is_known_and_says_the_same(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tomllib.loads(file.read_text("utf-8"))
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail(f"{file} is not known: `make docs`"))
    assert toml_tables.read(file.read_bytes()) == said


def test_what_is_not_known_is_read_itself() -> None:
    changed = (packaged("agents") / "codex.toml").read_bytes() + b"\n# one byte more\n"
    assert toml_tables.read(changed) == tomllib.loads(changed.decode())
    assert toml_tables.read(b"a = 1") == {"a": 1}
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_tables.read(b"a = ")
    with pytest.raises(UnicodeDecodeError):
        toml_tables.read(b"a = '\xff'")


def test_nobody_changes_them_for_the_next_who_reads(tmp_path: Path) -> None:
    data = (packaged("agents") / "codex.toml").read_bytes()
    toml_tables.read(data)["name"] = "changed"
    assert toml_tables.read(data).get("name") != "changed"
    assert "codex" in [one.name for one in profiles(tmp_path)]
