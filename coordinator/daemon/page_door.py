"""Answers for a browser page that has no token yet: its files, its token, and the proof.

A page exchanges a one-time code for its token. The proof shows a page that its own coordinator
listens. Every other request needs a token. `http_authentication` has checked Host and Origin before
it asks here. `openapi` describes the requests from the shapes here.

`make web` builds the files into the package. They hold no secret. A request names an entry in the
list of the folder's files, so no path is made from a request. The policy lets the page run only its
own scripts and talk only to its own coordinator.
"""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from coordinator.daemon.page_access import PageAccess
from coordinator.resources import page_folder
from coordinator.words.refusals import Code, Refusal

#: Ending of a file's name -> its media type. Files with other endings are not served.
TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
          "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
#: Headers of every file of the page.
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
    """The files in the package's folder, by their paths in a URL."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or page_folder()
        self._by_path: dict[str, PageFile] = {}

    @staticmethod
    def covers(path: str) -> bool:
        """Whether this path of a URL is a file of the page."""
        return path in ("/", f"/{INDEX}") or path.startswith(HASHED)

    def answer(self, path: str, method: str) -> Response:
        """The file at this path of a URL. Reads the disk: call it in a thread.

        Raises:
            Refusal: INVALID: there is no such file.
        """
        served = self._by_path.get(path)
        if served is None:
            self._by_path = self._list_files()  # the page may have been built since
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

    def _list_files(self) -> dict[str, PageFile]:
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


ENTER, PROVE = "/v1/page/enter", "/v1/page/prove"
#: The longest body of either request (bytes).
BODY_BYTES_MAX = 1000
_JSON = "application/json"
_encode = msgspec.json.Encoder().encode
_T = TypeVar("_T", bound=msgspec.Struct)
_Ascii = Annotated[str, Meta(pattern=r"^[\x21-\x7e]*$")]


class PageEnterBody(msgspec.Struct, forbid_unknown_fields=True):
    """A page enters with its code."""

    code: Annotated[_Ascii, Meta(description="The code (`page_open`), which is used up by this.")]


class PageEntered(msgspec.Struct):
    """A page has entered."""

    token: Annotated[str, Meta(description="Send it as `Authorization: Bearer TOKEN`.")]
    person: Annotated[str, Meta(description="The user's name, for `by` and `agent` of what is "
                                            "decided.")]
    reads_only: Annotated[bool, Meta(description="Whether it may see and change nothing.")]
    port: Annotated[int, Meta(description="Where the coordinator listens; its proofs are for it.")]


class PageProveBody(msgspec.Struct, forbid_unknown_fields=True):
    """A page asks for a proof."""

    page: Annotated[_Ascii, Meta(description="The middle part of the page's token.")]
    challenge: Annotated[_Ascii, Meta(min_length=16, description="Made up by the page, each time "
                                                                 "anew.")]


class PageProof(msgspec.Struct):
    """A coordinator's proof."""

    proof: Annotated[str, Meta(description="HMAC-SHA256, in hexadecimal, of `coordinator PORT "
                                           "CHALLENGE`, keyed with the token's last part.")]


SHAPES: tuple[type[msgspec.Struct], ...] = (PageEnterBody, PageEntered, PageProveBody, PageProof)


class PageDoor:
    """Answers the requests of pages that need no token.

    Args:
        access: knows the codes and tokens of pages.
        port: where the coordinator listens.
        counted: called with each refusal that becomes an answer here, so that it is counted.
    """

    def __init__(self, access: PageAccess, port: Callable[[], int],
                 counted: Callable[[Refusal], None]) -> None:
        self.access = access
        self._files = PageFiles()
        self._port = port
        self._counted = counted

    async def answer(self, request: Request) -> Response | None:
        """The answer to such a request; None if it is another request.

        Raises:
            Refusal: INVALID, LIMIT, STORAGE, UNAUTHORIZED.
        """
        path, method = request.url.path, request.method
        if method == "POST" and path == ENTER:
            return _answer_unstored(self._enter(await _read_body(request, PageEnterBody)))
        if method == "POST" and path == PROVE:
            request_body = await _read_body(request, PageProveBody)
            proof = self.access.prove(request_body.page, request_body.challenge, self._port())
            return _answer_unstored(PageProof(proof))
        if method in ("GET", "HEAD") and self._files.covers(path):
            return await self._answer_file(path, method)
        return None

    def _enter(self, body: PageEnterBody) -> PageEntered:
        try:
            token = self.access.exchange(body.code)
        except OSError as bad:
            raise Refusal(Code.STORAGE, f"The page's key cannot be kept ({bad.strerror}). Nothing "
                          "was opened.") from None
        rights = self.access.find_rights(token)
        return PageEntered(token, _find_user(), rights is None or rights.reads_only, self._port())

    async def _answer_file(self, path: str, method: str) -> Response:
        try:
            return await asyncio.to_thread(self._files.answer, path, method)
        except Refusal as refusal:
            self._counted(refusal)
            return Response(_encode({"error": refusal.body()}), 404, media_type=_JSON)


async def _read_body(request: Request, shape: type[_T]) -> _T:
    """Read what a page sent.

    Raises:
        Refusal: INVALID, LIMIT.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise Refusal(Code.LIMIT, f"A page sends at most {BODY_BYTES_MAX} bytes here. Nothing "
                          "was opened.", next="`coord web` opens the page.")
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError):
        fields = ", ".join(f'"{name}": …' for name in shape.__struct_fields__)
        raise Refusal(Code.INVALID, f"A page sends `{{{fields}}}` here. Nothing was opened.",
                      next="`coord web` opens the page.") from None


def _answer_unstored(value: msgspec.Struct) -> Response:
    return Response(_encode(value), media_type=_JSON, headers={"cache-control": "no-store"})


def _find_user() -> str:
    """The name of the user who runs the coordinator. What a page decides is recorded under it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


def describe_paths(refused: dict[str, Any]) -> dict[str, Any]:
    """The two paths for `/openapi.json`; `refused`: the refusals of each."""
    return {
        ENTER: _describe_path(
            "page_enter", "A browser page exchanges its one-time code (`page_open`) for a token of "
            "its own. It speaks for whoever asked for the code, and ends with the coordinator.",
            (PageEnterBody("pW3vZc0bYw2Jq8Xk"),
             PageEntered("page.Jx0.5b1e", "maria", False, 43210)),
            refused),
        PROVE: _describe_path(
            "page_prove", "A browser page has it proved that its coordinator listens here. It asks "
            "before it sends its token to whoever listens at a port after a crash.",
            (PageProveBody("Jx0", "0f3c59145ef0648b"), PageProof("9a1b5c7d")), refused),
    }


def _describe_path(name: str, meaning: str, example: tuple[msgspec.Struct, msgspec.Struct],
               refused: dict[str, Any]) -> dict[str, Any]:
    def content(value: msgspec.Struct) -> dict[str, Any]:
        return {_JSON: {"schema": {"$ref": f"#/components/schemas/{type(value).__name__}"},
                        "example": msgspec.to_builtins(value)}}

    body, reply = example
    return {"post": {
        "operationId": name, "tags": ["pages"], "summary": meaning.split(". ")[0],
        "description": meaning, "parameters": [], "security": [],
        "requestBody": {"required": True, "content": content(body)},
        "responses": {"200": {"description": "Done.", "content": content(reply)}, **refused},
    }}
