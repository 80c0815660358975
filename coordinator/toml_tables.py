"""The contents of the TOML files that travel with coord, parsed beforehand into `toml_tables.json`
by `make docs`.

Loading Python's parser and parsing eleven profiles take longer than everything else that a command
does. An entry is found by the digest of the file's bytes, so a file that was changed since is
parsed as any other.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from coordinator.resources import packaged
from coordinator.words.file_names import blake2b

FILE = "toml_tables.json"
_PACKAGE = Path(__file__).resolve().parent


class Known(msgspec.Struct, frozen=True):
    """One known file and its content."""

    file: str
    says: msgspec.Raw


def read_packaged(name: str) -> dict[str, Any]:
    """Parse the TOML file of this name in the package."""
    return read((_PACKAGE / name).read_bytes())


def read(data: bytes) -> dict[str, Any]:
    """Parse a TOML file's bytes.

    Raises:
        tomllib.TOMLDecodeError; UnicodeDecodeError.
    """
    knowledge = _known().get(_digest(data))
    if knowledge is not None:
        result: dict[str, Any] = msgspec.json.decode(knowledge.says)
        return result
    return tomllib.loads(data.decode("utf-8"))


def made() -> str:
    """The text of `toml_tables.json`, from the files themselves."""
    lines = []
    for file in _files():
        data = file.read_bytes()
        knowledge = Known(file.name, msgspec.Raw(msgspec.json.encode(tomllib.loads(data.decode()))))
        lines.append(f'"{_digest(data)}": {msgspec.json.encode(knowledge).decode()}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _files() -> Sequence[Path]:
    return [*sorted(packaged("agents").glob("*.toml")), *sorted(_PACKAGE.glob("*/*.toml"))]


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


@cache
def _known() -> dict[str, Known]:
    return msgspec.json.decode((_PACKAGE / FILE).read_bytes(), type=dict[str, Known])
