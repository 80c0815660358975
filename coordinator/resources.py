"""The files that travel with the package, `schema.sql` and `agents/`, and the version of the
program.

In a wheel they are in `coordinator/_data/`. In a checkout or an editable install they are at the
repository root. No other module may guess their place.
"""

from functools import cache
from pathlib import Path


@cache
def packaged(name: str) -> Path:
    """The packaged file or folder called `name` (`"schema.sql"`, `"agents"`)."""
    package = Path(__file__).resolve().parent
    data = package / "_data"
    return (data if data.is_dir() else package.parent) / name


def page_folder() -> Path:
    """The folder of the browser page's built files; missing in a checkout that has not built it
    (`make web`)."""
    return Path(__file__).resolve().parent / "web"


def program_version() -> str:
    """The installed distribution's version."""
    from importlib.metadata import PackageNotFoundError, version  # slow to load, seldom needed

    try:
        return version("coord")
    except PackageNotFoundError:
        return "0+unknown"
