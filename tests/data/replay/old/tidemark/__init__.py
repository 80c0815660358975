"""Tide tables for small harbours."""

from tidemark.harbour import Harbour
from tidemark.table import Table

__version__ = "1.0"
__all__ = ["Harbour", "Table"]
