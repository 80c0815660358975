"""Profiles of coding agents: one TOML file each, data only (`agents/`)."""

from coordinator.profiles.entries import Entry, Piece, Session, SessionFile, Trust
from coordinator.profiles.profile import (
    OWN,
    PLACEHOLDERS,
    PLUGINS,
    McpTable,
    Profile,
    is_packaged,
    load,
    profiles,
    program_name,
    untrusted,
)

__all__ = [
    "OWN", "PLACEHOLDERS", "PLUGINS", "Entry", "McpTable", "Piece", "Profile", "Session",
    "SessionFile", "Trust", "is_packaged", "load", "profiles", "program_name",
    "untrusted",
]
