"""Profiles of coding agents: one TOML file each, data only (`agents/`)."""

from coordinator.profiles.entries import Entry, Piece
from coordinator.profiles.profile import PLUGINS, McpTable, Profile, load, profiles
from coordinator.profiles.trust import Trust

__all__ = ["PLUGINS", "Entry", "McpTable", "Piece", "Profile", "Trust", "load", "profiles"]
