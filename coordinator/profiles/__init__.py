"""Profiles of coding agents: one TOML file each, data only (`agents/`)."""

from coordinator.profiles.entries import Entry, Piece
from coordinator.profiles.profile import (
    PLACEHOLDERS,
    PLUGINS,
    McpTable,
    Profile,
    load,
    profiles,
)
from coordinator.profiles.trust import Trust

__all__ = [
    "PLACEHOLDERS", "PLUGINS", "Entry", "McpTable", "Piece", "Profile", "Trust", "load", "profiles",
]
