"""COORD_PLUGIN: asks the coordinator before Aider writes the files of a reply.

Aider has no hooks. With this folder on PYTHONPATH Python imports this module first, and it wraps
one method of Aider when that is loaded: all files of a reply in one acquisition. After a refusal
the model gets the reason as the next message, and nothing of the reply is written. It relies on
Aider's internals (tried versions: agents/aider.toml), and refuses to let it run unwrapped.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_TARGET = "aider.coders.base_coder"


def _wrap(module: Any) -> None:
    sys.path.insert(0, os.path.dirname(_HERE))
    import coord_plain

    coder = getattr(module, "Coder", None)
    prepare, apply = getattr(coder, "prepare_to_edit", None), getattr(coder, "apply_updates", None)
    if coder is None or prepare is None or apply is None:
        raise ImportError("coord: this version of Aider cannot be guarded; its edits would not be.")

    def said_of(edits: Any) -> dict[str, Any]:
        paths = dict.fromkeys(str(edit[0]) for edit in edits if edit[0])
        return {"patch": "\n".join(f"*** Update File: {path}" for path in paths)}

    def prepare_to_edit(self: Any, edits: Any) -> Any:
        edits = list(edits)
        if any(edit[0] for edit in edits):
            try:
                answer = coord_plain.ask("aider", "before", tool_name="edit_files",
                                         tool_input=said_of(edits), cwd=self.root)
            except coord_plain.Unanswered as bad:
                raise ValueError(str(bad)) from None
            if answer.get("deny"):
                raise ValueError(answer["deny"])
        return prepare(self, edits)

    def apply_updates(self: Any) -> Any:
        edited = apply(self)
        if edited:
            with contextlib.suppress(coord_plain.Unanswered):  # the next write says so
                coord_plain.ask("aider", "after", tool_name="edit_files", cwd=self.root,
                                tool_input=said_of([(path,) for path in edited]))
        return edited

    coder.prepare_to_edit, coder.apply_updates = prepare_to_edit, apply_updates


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def create_module(self, spec: Any) -> Any:
        return self._inner.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._inner.exec_module(module)
        _wrap(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != _TARGET:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _the_one_that_this_hides() -> None:
    """Run the interpreter's own sitecustomize, which this one hides on the path."""
    rest = [part for part in sys.path if os.path.abspath(part or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        spec.loader.exec_module(module_from_spec(spec))


sys.meta_path.insert(0, _Finder())
_the_one_that_this_hides()
