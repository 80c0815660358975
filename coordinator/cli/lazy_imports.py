"""Modules that a short command names and seldom uses. Each is loaded when one of its names is used.

Loading them took half of a command's time. The table lists these modules and how each is loaded
later, by the means of PEP 451. The library's own `LazyLoader` does not fit, because it loads a
module when it is imported a second time. A loaded module is never changed.
"""

from __future__ import annotations

import sys
from _thread import RLock
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

#: Named by ours, or by what these import, at the head of a file.
SELDOM = frozenset({
    "coordinator.wiring.git_hooks", "coordinator.wiring.git_repository",
    "coordinator.launch.recovery", "ctypes", "difflib", "getpass", "hashlib", "inspect",
    "ipaddress", "json", "locale", "logging", "msgspec.inspect", "random", "selectors", "shlex",
    "shutil", "signal", "socket", "subprocess", "tempfile", "textwrap", "tomlkit", "tomllib",
    "traceback",
})
#: A module that msgspec does without if it is not installed: then it uses `typing`.
WITHOUT = "typing_extensions"
#: Types that msgspec knows, and that no message and no setting of ours has. Their modules take a
#: fifth of the time in which a short command reads all of its own.
STRANGERS: dict[str, dict[str, dict[str, object]]] = {
    "uuid": {"UUID": {}, "SafeUUID": {"unknown": None}}, "decimal": {"Decimal": {}},
}
#: The import that `pathlib` needs for `Path.as_uri` alone (until Python 3.13).
LINKS = ("urllib.parse", "quote_from_bytes")
_reading = RLock()


class Unread(ModuleType):
    """A module that was imported and not used yet."""

    def __getattribute__(self, name: str) -> Any:
        """Import the module when any other attribute is read."""
        if name == "__spec__":  # a second `import` asks for this
            return ModuleType.__getattribute__(self, name)
        with _reading:
            spec = ModuleType.__getattribute__(self, "__spec__")
            later = spec.loader
            if isinstance(later, Later):  # and no thread is loading it
                spec.loader = later.loader
                ModuleType.__setattr__(self, "__loader__", spec.loader)
                try:
                    spec.loader.exec_module(self)
                except BaseException:  # the next access fails the same, and gets no half of it
                    spec.loader = later
                    raise
                ModuleType.__setattr__(self, "__class__", ModuleType)
        return ModuleType.__getattribute__(self, name)


class Later:
    """Reads a module in when it is wanted. `loader`: how."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make the module as usual."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Do not import it yet."""
        module.__class__ = Unread


class Finder:
    """Finds these modules, and no others; for `sys.meta_path`."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module, with a loader that imports it later."""
        spec = PathFinder.find_spec(name, path, target) if name in SELDOM else None
        if spec is None or spec.loader is None:
            return None
        spec.loader = cast("Loader", Later(spec.loader))
        return spec


def begin(*, short: bool = False) -> None:
    """Begin lazy imports in this process.

    Args:
        short: it runs one command and ends: msgspec need not know `STRANGERS` in it.
    """
    sys.meta_path.insert(0, Finder)
    if short and not {"pathlib", LINKS[0]} & set(sys.modules):
        _read_pathlib()
    if "msgspec" in sys.modules:
        return
    for stand_in in (True, False) if short else (False,):
        hidden = _hidden(STRANGERS if stand_in else {})
        try:
            import msgspec  # noqa: F401
        except (AttributeError, ImportError):  # it wants more of them: it shall have them
            if not stand_in:
                raise
        else:
            return
        finally:
            for name in hidden:
                sys.modules.pop(name, None)


def _read_pathlib() -> None:
    module, function = LINKS
    sys.modules[module] = stand_in = ModuleType(module)
    setattr(stand_in, function,
            lambda *arguments: getattr(import_module(module), function)(*arguments))
    try:
        import pathlib  # noqa: F401
    finally:
        del sys.modules[module]
    sys.modules.pop("urllib", None)  # its attribute `parse` is the stand-in


def _hidden(strangers: Mapping[str, Mapping[str, dict[str, object]]]) -> list[str]:
    """Hide these modules, except those already read in. Some get a stand-in with empty types only.
    Returns the hidden names."""
    hidden = [name for name in (WITHOUT, *strangers) if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # as where it is not installed
        if name in strangers:
            sys.modules[name] = stand_in = ModuleType(name)
            for kind, members in strangers[name].items():
                setattr(stand_in, kind, type(kind, (), dict(members)))
    return hidden
