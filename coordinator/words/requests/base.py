"""The base of all requests and replies."""

from __future__ import annotations

from typing import Annotated, ClassVar, Generic, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

R = TypeVar("R")
Mode = Literal["exclusive", "shared"]
Verdict = Literal["keep", "revert", "reassign"]

#: The most that any door takes in one request, in bytes.
REQUEST_BYTES_MAX = 8 * 1024 * 1024
#: What the fields of requests are made of, each with its bounds (texts: in characters). Narrower
#: ones, with better words, are the use cases' business. What no database and no path can hold is
#: refused here: numbers beyond all sense and, in `operations.listing.decode`, texts with a NUL.
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Number = Annotated[float, Meta(ge=-1e12, le=1e12)]
Line = Annotated[str, Meta(max_length=8_192)]
Words = Annotated[str, Meta(max_length=250_000)]
Document = Annotated[str, Meta(max_length=REQUEST_BYTES_MAX)]


class Reply(msgspec.Struct, kw_only=True, omit_defaults=False, gc=False):
    """Base of all replies; unknown fields from a newer daemon are ignored by an older client."""


class Request(msgspec.Struct, Generic[R], kw_only=True, forbid_unknown_fields=True, gc=False):
    """Base of all requests. `R` is the reply."""

    op: ClassVar[str]
    http: ClassVar[tuple[str, str]]
    writes: ClassVar[bool] = True
    operator_only: ClassVar[bool] = False

    @classmethod
    def reply_shape(cls) -> type[R]:
        """`R` itself, at run time: what a reply is decoded into, and described by."""
        # What a class was written with stands there (PEP 560); its stubs leave it out.
        shape: type[R] = get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]
        return shape
