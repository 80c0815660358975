"""What a session brings along where its agent would not read the repository's settings: data.

    [session]                                # for an agent that reads them only where it is started
    arguments = ["--plugin-dir", "{folder}"] # before all others
    elsewhere = ["-C"]                       # options with which it works somewhere else
    only_roots = true                        # it takes no file that others than root can write
    [session.env]
    SYSTEM_DEFAULTS = "{folder}/settings.json"
    [[session.files]]
    file = "settings.json"                   # in `{folder}`, which is coord's own
    like = ".gemini/settings.json"           # all that `wire` puts into this file
    on_top_of = ["$SYSTEM_DEFAULTS", "/etc/agent/defaults.json"]

`on_top_of` is what the file replaces: the first of these whose variables are set. A person's
content there stays in force, and coord's is added to it.
"""

from __future__ import annotations

import msgspec


class SessionFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One file: the given `text`, or what is wired into the file `like`."""

    file: str
    like: str = ""
    text: str = ""
    on_top_of: tuple[str, ...] = ()


class Session(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The `[session]` section of a profile."""

    arguments: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    only_roots: bool = False
    env: dict[str, str] = {}
    files: tuple[SessionFile, ...] = ()
