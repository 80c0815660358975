"""The files as they are or would be: the index, with other facts in place of some files' own.

Owns the search for files by modules' names, and for files with a relation to a name. It follows no
name itself.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Mapping
from typing import Protocol

from coordinator.meaning.facts import Facts
from coordinator.meaning.index import module_of, rows_of
from coordinator.regions.languages import Syntax, group, syntax_of

#: How many files of one directory are searched for a name.
FILES_MAX = 2000
#: Endings that an import of a file may leave out, in the order in which they are tried.
ENDINGS = ("ts", "tsx", "d.ts", "js", "jsx", "mts", "cts", "mjs", "cjs")
_EMPTY = Facts()
_CONVENTIONAL = ("", "src", "lib", "python")


class Stored(Protocol):
    """The questions to the index."""

    def facts(self, path: str) -> Facts | None:
        """Return the facts of a file; None if it is not there."""
    def files_with(self, name: str, role: str, limit: int) -> list[str]:
        """Return the files that have this relation to a name."""
    def modules(self, dotted: str, limit: int = 64) -> list[str]:
        """Return the files whose dotted name ends in this name."""
    def has(self, path: str) -> bool:
        """Whether the index has this file."""
    def has_below(self, folder: str) -> bool:
        """Whether the index has a file below this directory."""


class World:
    """The index, with other facts for some files; None for a removed file."""

    def __init__(self, stored: Stored, other: Mapping[str, Facts | None]) -> None:
        self._stored = stored
        self._other = dict(other)
        self._rows = {path: rows_of(facts) for path, facts in other.items() if facts is not None}
        self._modules: dict[tuple[str, str], str | None] = {}
        self._held: dict[str, Facts] = {}

    def facts(self, path: str) -> Facts:
        """Return the facts of a file; empty facts if it is not there."""
        if path in self._other:
            return self._other[path] or _EMPTY
        found_facts = self._held.get(path)
        if found_facts is None:
            if len(self._held) > 600:
                self._held.clear()
            found_facts = self._held[path] = self._stored.facts(path) or _EMPTY
        return found_facts

    def has(self, path: str) -> bool:
        """Whether this file exists."""
        if path in self._other:
            return self._other[path] is not None
        return self._stored.has(path)

    def files_with(self, name: str, role: str, limit: int) -> list[str]:
        """Return the files that have this relation to a name (`index`), at most about `limit`."""
        matches = [text for text in self._stored.files_with(name, role, limit)
                   if text not in self._other]
        return sorted(matches + [path for path, rows in self._rows.items() if (name, role) in rows])

    def module(self, written: str, importer: str) -> str | None:
        """Return the file of a module, as a file imports it. If the module is a directory, return
        one of its files. None if the module is outside, or is a bare directory."""
        syntax = syntax_of(importer)
        key = (written, importer.rpartition("/")[0] if syntax is None else importer)
        if key not in self._modules:
            self._modules[key] = (
                self._module(written, importer) if syntax is None
                else self._beside(written, importer, syntax) if syntax.modules == "relative"
                else self._directory(written, importer, syntax))
        return self._modules[key]

    def siblings(self, path: str, name: str) -> list[str]:
        """Return the other files of the directory that share a name with this file, in a language
        whose directories share names."""
        syntax = syntax_of(path)
        if syntax is None or syntax.modules != "directory":
            return []
        folder = path.rpartition("/")[0]
        return [text for text in self.files_with(name, "d", FILES_MAX) if text != path
                and text.rpartition("/")[0] == folder and syntax_of(text) == syntax
                and name in self.facts(text).scopes[""].bindings]

    def submodule(self, path: str, name: str) -> str | None:
        """Return the file of a module in the package that `path` is the `__init__.py` of."""
        folder, _, last = path.rpartition("/")
        if last not in ("__init__.py", "__init__.pyi"):
            return None
        return self._file(f"{folder}/{name}" if folder else name)

    def folder(self, written: str, importer: str) -> str | None:
        """Return the directory of a package without an `__init__.py`, as a file imports it."""
        if syntax_of(importer) is not None:
            return None
        if not written.startswith("."):
            folder = written.replace(".", "/")
            for root in _CONVENTIONAL:
                whole = f"{root}/{folder}" if root else folder
                if self._stored.has_below(whole):
                    return whole
            return None
        return _relative(written, importer)

    def in_folder(self, folder: str, name: str) -> str | None:
        """Return the file of a module in a directory."""
        return self._file(f"{folder}/{name}" if folder else name)

    def _file(self, stem: str) -> str | None:
        for ending in ("/__init__.py", ".py", ".pyi", "/__init__.pyi"):
            if self.has(stem + ending):
                return stem + ending
        return None

    def _module(self, written: str, importer: str) -> str | None:
        if written.startswith("."):
            folder = _relative(written, importer)
            return self._file(folder) if folder else None
        best: tuple[tuple[int, int, int, str], str] | None = None
        for path in self._list_modules(written):
            rank = self._rank(path, written, importer)
            if rank is not None and (best is None or rank < best[0]):
                best = (rank, path)
        return best[1] if best is not None else None

    def _list_modules(self, written: str) -> list[str]:
        """Return the files whose dotted names end in this name."""
        modules = [module for module in self._stored.modules(written)
                   if module not in self._other and syntax_of(module) is None]
        turned = ".".join(reversed(written.split(".")))
        for path, facts in self._other.items():
            name = module_of(path)
            if facts is not None and syntax_of(path) is None and (
                    name == turned or name.startswith(turned + ".")):
                modules.append(path)
        return modules

    def _rank(self, path: str, written: str, importer: str) -> tuple[int, int, int, str] | None:
        """Rank a file as the module that an importer means, the best lowest; None if it cannot be.
        """
        parts = path.split("/")[:-1]
        if path.rpartition("/")[2].startswith("__init__."):
            parts = parts[:-1]
        root = "/".join(parts[: len(parts) - written.count(".")])
        if root and self._file_is_package(root):
            return None
        around = importer.startswith(root + "/") or not root
        is_usual = around or root in _CONVENTIONAL
        if not is_usual and written.partition(".")[0] in sys.stdlib_module_names:
            return None
        return 0 if is_usual else 1, -_shared(root, importer), len(path), path

    def _beside(self, written: str, importer: str, syntax: Syntax) -> str | None:
        """Return the file that an importer names from its directory. Endings may be left out."""
        if not written.startswith("."):
            return None
        stem = posixpath.normpath(posixpath.join(posixpath.dirname(importer), written))
        if stem.startswith("../"):
            return None
        bare = stem.rpartition(".")[0] if stem.endswith((".js", ".mjs", ".cjs", ".jsx")) else stem
        for text in (stem, *(f"{base}{middle}.{ending}" for base in dict.fromkeys((stem, bare))
                             for middle in ("", "/index") for ending in ENDINGS)):
            if self.has(text) and group(text) == syntax.queries[0]:
                return text
        return None

    def _directory(self, written: str, importer: str, syntax: Syntax) -> str | None:
        """Return a file of the directory that is meant: its path ends in the most parts of the
        name, and of several it is the nearest."""
        parts = [text for text in written.split(syntax.separator) if text]
        while parts:
            modules = [module for module in self._stored.modules(".".join(parts)) if module not
                       in self._other]
            turned = ".".join(reversed(parts))
            modules += [path for path, facts in self._other.items() if facts is not None and (
                (name := module_of(path)) == turned or name.startswith(turned + "."))]
            modules = [text for text in modules if syntax_of(text) == syntax]
            if modules:
                return min(modules, key=lambda name: (
                    -_shared(name.rpartition("/")[0], importer), len(name), name))
            if syntax.separator == ".":
                return None  # the name of a package is complete
            parts.pop(0)
        return None

    def _file_is_package(self, folder: str) -> bool:
        return self.has(folder + "/__init__.py") or self.has(folder + "/__init__.pyi")


def _relative(written: str, importer: str) -> str | None:
    """Return the path, without its ending, that a relative import names."""
    bare = written.lstrip(".")
    parts = importer.split("/")[:-1]
    up = len(written) - len(bare) - 1
    if up > len(parts):
        return None
    kept = parts[: len(parts) - up]
    return "/".join([*kept, *(bare.split(".") if bare else [])])


def _shared(root: str, importer: str) -> int:
    count = 0
    for name, other in zip(root.split("/"), importer.split("/"), strict=False):
        if name != other:
            break
        count += 1
    return count
