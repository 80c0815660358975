"""Releases of packages, downloaded as wheels from the package index."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Annotated

import typer

#: Where downloads are kept from one run to the next.
CACHE = Path(tempfile.gettempdir()) / "coord-releases"
Cache = Annotated[Path, typer.Option(help="Where releases are kept.")]


def download_wheel(package: str, version: str, cache: Path, *, options: tuple[str, ...] = (),
                   seconds: float | None = None) -> Path:
    """The wheel of a release, from `cache` or from the package index.

    Args:
        options: further ones of pip's.
        seconds: how long pip is given; it is not heard then.

    Raises:
        subprocess.SubprocessError: pip did not get it. FileNotFoundError: pip got no wheel.
    """
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if not _list_wheels(cache, pattern):
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-P", "-m", "pip", "download", "--quiet",
             "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", *options,
             "--dest", str(cache), f"{package}=={version}"],
            check=True, timeout=seconds, capture_output=seconds is not None)
    wheels = _list_wheels(cache, pattern)
    if not wheels:
        raise FileNotFoundError(f"{cache}/{pattern}")
    return wheels[0]


def _list_wheels(cache: Path, pattern: str) -> list[Path]:
    return sorted({*cache.glob(pattern), *cache.glob(pattern.capitalize())})


def unpack_wheel(wheel: Path, folder: Path) -> Path:
    """The folder, with the wheel's files in it."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return folder
