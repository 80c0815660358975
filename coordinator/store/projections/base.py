"""What a projection is: a function of the database, the instant and the event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

#: A cursor that is used again and again costs less than the one that a connection makes each time;
#: so whatever is read here is read whole before anything else is run.
Database = apsw.Connection | apsw.Cursor
#: What an event of one class does: (database, instant as ISO text, event).
Apply = Callable[[Database, str, Any], None]
