"""What the build makes of the README and of an address (hatchling's metadata hook).

The sources name no public address of the repository. Whoever publishes a release does:
`COORD_REPOSITORY_URL=https://… python -m build` (or `make dist REPOSITORY_URL=https://…`). Then
the README's links and pictures, relative in a checkout, lead to the files of the version's tag
there, and the distribution has `[project.urls]`; so has a wheel that is built from such an sdist.
Without an address nothing is invented: links stay relative, and there are no URLs.
"""

from __future__ import annotations

import os
import re
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

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
