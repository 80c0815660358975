"""The base of all events."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Event(msgspec.Struct, kw_only=True, tag_field="kind", tag=True, omit_defaults=True, gc=False):
    """Base. `kind` in the log is the tag; `agent`, `task` and `resource` are its index columns.
    A field that has its default is left out of the log, and reads as that."""

    kind: ClassVar[str]
