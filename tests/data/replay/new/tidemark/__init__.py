"""Tide tables for small harbours."""

from tidemark.harbour import Harbour
from tidemark.report import table_text
from tidemark.table import Table

__version__ = "2.0"
__all__ = ["Harbour", "Table", "table_text"]
