"""Whether Python can read how a text is indented, which its grammar does not say.

tree-sitter takes a body that is not indented, and lines that are indented to no level: it is made
for texts that somebody is still typing. Python's own parser decides here. Only the indentation: it
means the same in every version of the language; other errors may be new words of it.
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
        except IndentationError as bad:
            return f"line {bad.lineno}: {bad.msg}"
        except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
            return ""
    return ""
