"""How a profile finds out whether its agent trusts coord's hooks. Data."""

from __future__ import annotations

from typing import Literal

import msgspec


class Trust(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The `[trust]` section of a profile.

    Attributes:
        kind: `folders`: the JSON file `file` maps folders to one of `trusted`, or names them in one
            of its `lists`; `app-server`: the program `command` speaks JSON-RPC and lists hooks with
            their trust; `plugin`: `command` loads the agent's plugins, ours among them, and ends.
    """

    kind: Literal["folders", "app-server", "plugin"]
    file: str = ""
    trusted: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
