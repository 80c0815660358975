"""What a browser page gets before it has a token: its files, a token for its one-time code, and a
proof that the right coordinator listens.

Host and Origin were checked before (`http_authentication`). Every other request needs a token.
`/openapi.json` describes these shapes from here.

The files are those that `make web` has built into the package. They hold no secret. The list is
made once from the folder, and a request names one of its entries or gets nothing, so no path is put
together from a request. The policy lets the page run only its own scripts and talk only to its own
coordinator.
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


ENTER, PROVE = "/v1/page/enter", "/v1/page/prove"
#: Most that a page sends to either (bytes).
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
    """Answers what needs no token, for the pages of one coordinator.

    Args:
        access: knows the codes and tokens of pages.
        port: where the coordinator listens.
        counted: told of each refusal that is not raised, to be counted.
    """

    def __init__(self, access: PageAccess, port: Callable[[], int],
                 counted: Callable[[Refusal], None]) -> None:
        self.access = access
        self._files = PageFiles()
        self._port = port
        self._counted = counted

    async def answer(self, request: Request) -> Response | None:
        """The answer, where this is a page's business and needs no token.

        Raises:
            Refusal: INVALID, LIMIT, STORAGE, UNAUTHORIZED.
        """
        path, method = request.url.path, request.method
        if method == "POST" and path == ENTER:
            return _not_stored(self._enter(await _read(request, PageEnterBody)))
        if method == "POST" and path == PROVE:
            request_body = await _read(request, PageProveBody)
            proof = self.access.prove(request_body.page, request_body.challenge, self._port())
            return _not_stored(PageProof(proof))
        if method in ("GET", "HEAD") and self._files.covers(path):
            return await self._file(path, method)
        return None

    def _enter(self, body: PageEnterBody) -> PageEntered:
        try:
            token = self.access.exchange(body.code)
        except OSError as bad:
            raise Refusal(Code.STORAGE, f"The page's key cannot be kept ({bad.strerror}). Nothing "
                          "was opened.") from None
        rights = self.access.find_rights(token)
        return PageEntered(token, _person(), rights is None or rights.reads_only, self._port())

    async def _file(self, path: str, method: str) -> Response:
        try:
            return await asyncio.to_thread(self._files.answer, path, method)
        except Refusal as refusal:
            self._counted(refusal)
            return Response(_encode({"error": refusal.body()}), 404, media_type=_JSON)


async def _read(request: Request, shape: type[_T]) -> _T:
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


def _not_stored(value: msgspec.Struct) -> Response:
    return Response(_encode(value), media_type=_JSON, headers={"cache-control": "no-store"})


def _person() -> str:
    """The user whose coordinator this is, for the record of what a page decides."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


def described_paths(refused: dict[str, Any]) -> dict[str, Any]:
    """The two paths for `/openapi.json`; `refused`: the refusals of each."""
    return {
        ENTER: _described(
            "page_enter", "A browser page exchanges its one-time code (`page_open`) for a token of "
            "its own. It speaks for whoever asked for the code, and ends with the coordinator.",
            (PageEnterBody("pW3vZc0bYw2Jq8Xk"),
             PageEntered("page.Jx0.5b1e", "maria", False, 43210)),
            refused),
        PROVE: _described(
            "page_prove", "A browser page has it proved that its coordinator listens here. It asks "
            "before it sends its token to whoever listens at a port after a crash.",
            (PageProveBody("Jx0", "0f3c59145ef0648b"), PageProof("9a1b5c7d")), refused),
    }


def _described(name: str, meaning: str, example: tuple[msgspec.Struct, msgspec.Struct],
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
