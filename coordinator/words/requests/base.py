"""The base of all requests and replies."""

from __future__ import annotations

from typing import ClassVar, Generic, Literal, TypeVar, get_args

import msgspec

R = TypeVar("R")
Mode = Literal["exclusive", "shared"]
Verdict = Literal["keep", "revert", "reassign"]


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
