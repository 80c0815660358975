"""Errors of a Python text that its grammar does not tell: above all how it is indented.

tree-sitter takes a body that is not indented, and lines that are indented to no level: it is made
for texts that somebody is still typing. It also takes `print x` of Python 2. Python's own parser
decides here, of these two: they mean the same in every version of Python 3; other errors may be new
words of the language.
"""

from __future__ import annotations

import ast
import warnings


def misread(data: bytes) -> str:
    """What is wrong with it, with the line; empty where nothing is, or where something else keeps
    Python from reading on to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the text; they would go to this process's output
        try:
            compile(data, "", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        except SyntaxError as bad:
            if isinstance(bad, IndentationError) or bad.msg.startswith("Missing parentheses"):
                return f"line {bad.lineno}: {bad.msg}"
            return ""
        except (ValueError, RecursionError, MemoryError, SystemError):
            return ""
    return ""
