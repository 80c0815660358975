"""The base of all requests and replies."""

from __future__ import annotations

from typing import Annotated, ClassVar, Generic, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

R = TypeVar("R")
Mode = Literal["exclusive", "shared"]
Verdict = Literal["keep", "revert", "reassign"]

#: Numbers that no database can hold are refused where a request is decoded. Use cases refuse by
#: narrower bounds, in better words. (Texts: `words.texts`.)
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Number = Annotated[float, Meta(ge=-1e12, le=1e12)]
#: The number of an event, or of another thing that is counted from 0 on.
Place = Annotated[int, Meta(ge=0, le=2**53)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
#: How many of a list: fewer than one is a mistake of the asker.
Count = Annotated[int, Meta(ge=1, le=2**53)]


class Reply(msgspec.Struct, kw_only=True, omit_defaults=False, gc=False):
    """Base of all replies; unknown fields from a newer daemon are ignored by an older client."""

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={_shown(name, getattr(self, name))}"
                         for name in self.__struct_fields__)
        return f"{type(self).__name__}({text})"


def _shown(name: str, value: object) -> str:
    """JSON as it is; of a secret, which has no place in a log, that there is one."""
    if name in ("token", "lease_token") and value is not None:
        return "…"
    return bytes(value).decode() if isinstance(value, msgspec.Raw) else repr(value)


class Request(msgspec.Struct, Generic[R], kw_only=True, forbid_unknown_fields=True, gc=False):
    """Base of all requests. `R` is the reply.

    Attributes:
        writes: whether it may change the database. If not, an idempotency key has no effect.
        operator_only: whether the operator alone may ask, never an agent with its token.
    """

    op: ClassVar[str]
    http: ClassVar[tuple[str, str]]
    writes: ClassVar[bool] = True
    operator_only: ClassVar[bool] = False

    def for_people(self) -> bool:
        """Whether only a person may ask it. No agent may, with or without its token."""
        return False

    @classmethod
    def reply_shape(cls) -> type[R]:
        """`R` itself, at run time: what a reply is decoded into, and described by."""
        # The bases with which a class was written (PEP 560). Python puts them there; the stubs
        # leave them out.
        shape: type[R] = get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]
        return shape
