"""What the build makes of the README and of an address (hatchling's metadata hook), and the browser
page that travels with it (its build hook).

The sources name no public address of the repository. Whoever publishes a release does:
`COORD_REPOSITORY_URL=https://… python -m build` (or `make dist REPOSITORY_URL=https://…`). Then
the README's links and pictures, relative in a checkout, lead to the files of the version's tag
there, and the distribution has `[project.urls]`; so has a wheel that is built from such an sdist.
Without an address nothing is invented: links stay relative, and there are no URLs.

The page is built from `web/` into `coordinator/web/` by npm, where it is older than its sources.
Without npm the build goes on and says so: all but `coord web` is there. `COORD_PAGE=off` leaves the
page as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "COORD_REPOSITORY_URL"
_LINK = re.compile(r"(?P<picture>!?)(?P<label>\[[^\]]*\])\((?P<path>(?![a-z]+:|#|/)[^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def absolute(text: str, address: str, version: str) -> str:
    """The Markdown with its relative links leading to the files of this version at the address."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found["picture"] else "blob"
        return (f"{found['picture']}{found['label']}"
                f"({address}/{kind}/v{version}/{found['path']})")

    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(link, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(link, text[end:])])


def address_of(root: Path) -> str:
    """The address that was named, now or when the sdist was built; empty for none."""
    named = os.environ.get(VARIABLE, "").strip().rstrip("/")
    if named:
        if not re.fullmatch(r"https://[^\s/]+/\S+", named):
            raise ValueError(f"{VARIABLE} is {named!r}; it has to be https://HOST/PATH")
        return named
    kept = root / "PKG-INFO"
    if kept.is_file():
        for line in HeaderParser().parsestr(kept.read_text("utf-8")).get_all("Project-URL", []):
            label, _, url = line.partition(",")
            if label.strip() == "Repository":
                return url.strip()
    return ""


class CustomMetadataHook(MetadataHookInterface):
    """Gives `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        address = address_of(root)
        text = (root / "README.md").read_text("utf-8")
        if address:
            text = absolute(text, address, metadata["version"])
            metadata["urls"] = {
                "Repository": address,
                "Documentation": f"{address}/tree/v{metadata['version']}/docs",
                "Changelog": f"{address}/blob/v{metadata['version']}/CHANGELOG.md",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


#: What the page is made of, below `web/`.
PAGE_SOURCES = ("src", "index.html", "report.html", "package.json", "package-lock.json",
                "tsconfig.json", "vite.config.js", "vite.report.config.js")


def page_is_fresh(root: Path) -> bool:
    """Whether the built page is as new as all that it is made of. (In an sdist all files have one
    time.)"""
    page = root / "coordinator" / "web" / "index.html"
    if not page.is_file():
        return False
    named = [root / "web" / name for name in PAGE_SOURCES]
    files = [file for path in named for file in (path, *path.rglob("*")) if file.is_file()]
    return all(file.stat().st_mtime <= page.stat().st_mtime for file in files)


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the page before a wheel or an sdist is put together."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == "editable" or os.environ.get("COORD_PAGE") == "off" or page_is_fresh(root):
            return
        if not (root / "web" / "package.json").is_file():
            return
        npm = shutil.which("npm")
        if npm is None:
            self.app.display_warning("The browser page is not built: there is no npm. `coord web` "
                                     "will not open it; all else is there.")
            return
        for words in (("ci", "--no-fund", "--no-audit"), ("run", "build")):
            done = subprocess.run([npm, *words], cwd=root / "web", capture_output=True, text=True,
                                  check=False)
            if done.returncode:
                self.app.display_warning(f"The browser page is not built: `npm {words[0]}` failed."
                                         f"\n{done.stdout}{done.stderr}")
                return
