"""The base of all events."""

from __future__ import annotations

from typing import ClassVar

import apsw
import msgspec

#: A cursor that is used again and again costs less than the one that a connection makes each time;
#: so whatever is read here is read whole before anything else is run.
Database = apsw.Connection | apsw.Cursor


class Event(msgspec.Struct, kw_only=True, tag_field="kind", tag=True, omit_defaults=True, gc=False):
    """Base. `kind` in the log is the tag; `agent`, `task` and `resource` are its index columns.
    A field that has its default is left out of the log, and reads as that.

    Attributes:
        SENTENCE: how it is told to people; the braces take its own fields.
    """

    kind: ClassVar[str]
    SENTENCE: ClassVar[str]

    def apply(self, db: Database, instant: str) -> None:
        """Change the state tables as this event says, which happened then (ISO text). Without one
        of its own it belongs in the story, and changes no state."""
