"""The browser page's files: what `make web` has built into the package, and nothing else.

They hold no secret and are served without a token. The list is made once, from the folder: a
request names one of its entries or gets nothing, so no path is ever put together from a request.
The policy lets the page run its own scripts and talk to its own coordinator, and nothing besides.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from starlette.responses import Response

from coordinator.resources import page_folder
from coordinator.words.refusals import Code, Refusal

#: File endings that a build has -> what they are served as; other files are not served.
TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
          "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
#: With every file of the page.
SAFE_HEADERS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer", "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
#: The build names each file below this folder by its content, so it never changes.
HASHED = "/assets/"


class PageFile(msgspec.Struct, frozen=True):
    """One file that is served."""

    file: Path
    media_type: str
    cache: str


class PageFiles:
    """The files in the package's folder, by the path that they are asked for."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or page_folder()
        self._by_path: dict[str, PageFile] = {}

    @staticmethod
    def covers(path: str) -> bool:
        """Whether this path of a URL is the page's business."""
        return path in ("/", f"/{INDEX}") or path.startswith(HASHED)

    def answer(self, path: str, method: str) -> Response:
        """The file at this path of a URL. Reads the disk: call it in a thread.

        Raises:
            Refusal: INVALID: there is no such file.
        """
        served = self._by_path.get(path)
        if served is None:
            self._by_path = self._listed()  # a page that was built since is served, too
            served = self._by_path.get(path)
        try:
            body = served.file.read_bytes() if served is not None else None
        except OSError:
            body = None
        if served is None or body is None:
            raise Refusal(
                Code.INVALID, "This installation of coord has no such file of the page.",
                next="Reload the page; in a checkout of coord, `make web` builds it.")
        return Response(b"" if method == "HEAD" else body, media_type=served.media_type, headers={
            **SAFE_HEADERS, "content-length": str(len(body)), "cache-control": served.cache})

    def _listed(self) -> dict[str, PageFile]:
        files = {
            f"/{file.relative_to(self._folder).as_posix()}": file
            for file in self._folder.rglob("*")
            if file.suffix in TYPES and file.is_file() and not file.is_symlink()
        }
        listed = {
            path: PageFile(file, TYPES[file.suffix], "max-age=31536000, immutable"
                           if path.startswith(HASHED) else "no-cache")
            for path, file in files.items()
        }
        if f"/{INDEX}" in listed:
            listed["/"] = listed[f"/{INDEX}"]
        return listed
