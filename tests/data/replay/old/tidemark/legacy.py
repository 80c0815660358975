"""Names of version 0, kept for a while."""

from tidemark.table import Table as TideTable

__all__ = ["TideTable"]
