"""The possible values of a name, and their origins: `resolving` works with them.

Owns their shapes, and the knowledge of Python's own containers. Pure.
"""

from __future__ import annotations

import builtins
import io
from typing import Literal, NamedTuple

ValueKind = Literal[
    "module", "folder", "class", "object", "function", "super", "builtin", "type", "method",
    "callable", "outside", "typevar",
]


class Value(NamedTuple):
    """One possible value of a name.

    Attributes:
        kind: `object`: an instance of the class at `path` and `scope`; `super`: the result of
            `super()` there; `builtin`: an object of one of Python's own types; `type`: that type
            itself; `method`: one of its methods; `outside`: a value that no file here defines.
        scope: the scope's id; of `builtin`, `type` and `method`, the name.
        args: the items of a container; the result of a callable; of an object, the values of its
            class's type variables, in their order.
        owner: the owner of a method; None if it is not bound yet.
    """

    kind: ValueKind
    path: str = ""
    scope: str = ""
    args: tuple[frozenset[Value], ...] = ()
    owner: Value | None = None


class Place(NamedTuple):
    """A name of a scope, which a change may affect."""

    path: str
    scope: str
    name: str


class Hit(NamedTuple):
    """A place that a use leads to, and the owner of the member there."""

    place: Place
    owner: Value | None = None


Values = frozenset[Value]
NOTHING: Values = frozenset()
OUTSIDE: Values = frozenset({Value("outside")})
BUILTINS = frozenset(vars(builtins))
#: Names that a built-in type has. A call of such a name on an unknown value identifies nothing.
COMMON = frozenset(
    name for kind in (
        str, bytes, list, dict, set, int, float, tuple, object, BaseException, io.TextIOWrapper,
        io.BytesIO, type, property, memoryview,
    ) for name in dir(kind)
)
LISTS = frozenset({
    "list", "List", "Sequence", "MutableSequence", "Iterable", "Iterator", "Set", "set",
    "FrozenSet", "frozenset", "AbstractSet", "MutableSet", "Collection", "Container", "Deque",
    "deque", "Generator", "AsyncIterator", "AsyncIterable", "AsyncGenerator", "Reversible",
    "KeysView", "ValuesView", "Queue",
})
DICTS = frozenset({
    "dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict",
    "ChainMap", "WeakKeyDictionary", "WeakValueDictionary", "MappingProxyType",
})
INNER = frozenset({
    "Optional", "Union", "Annotated", "ClassVar", "Final", "Required", "NotRequired", "ReadOnly",
    "InitVar", "TypeGuard", "Unpack",
})
MANAGERS = frozenset({
    "ContextManager", "AbstractContextManager", "AsyncContextManager",
    "AbstractAsyncContextManager",
})
#: Decorators that leave a callable as it is.
PLAIN = frozenset({
    "lru_cache", "cache", "abstractmethod", "override", "final", "overload", "deprecated",
    "wraps", "runtime_checkable", "total_ordering", "no_type_check", "typechecked", "unique",
    "coroutine", "abstractclassmethod", "abstractstaticmethod", "staticmethod", "classmethod",
    "contextmanager", "asynccontextmanager", "skip", "skipif", "parametrize",
})
PROPERTIES = frozenset({
    "property", "cached_property", "abstractproperty", "setter", "getter", "deleter",
    "functools.cached_property", "locked_cached_property", "classproperty",
})


def builtin(name: str, *args: Values) -> Values:
    """Return an object of a type of Python's own."""
    return frozenset({Value("builtin", scope=name, args=args)})


def listed(item: Values) -> Values:
    """Return a list of these values."""
    return builtin("list", item)


def classes_of(values: Values) -> Values:
    """Return the classes of these objects."""
    return frozenset(Value("class", value.path, value.scope) for value in values
                     if value.kind == "object")


def container_call(name: str, holder: Value) -> Values:
    """Return the result of a container's method."""
    args = holder.args
    if holder.scope == "dict" and len(args) == 2:
        return _dict_call(name, holder)
    if holder.scope == "list" and args:
        match name:
            case "pop" | "popleft" | "__next__" | "__getitem__" | "get" | "get_nowait" | "send":
                return args[0]
            case "copy" | "union" | "intersection" | "difference" | "__iter__":
                return frozenset({holder})
    if holder.scope == "str" and name in ("split", "splitlines", "rsplit"):
        return listed(builtin("str"))
    if holder.scope == "str":
        return builtin("str")
    return OUTSIDE


def _dict_call(name: str, holder: Value) -> Values:
    keys, values = holder.args
    match name:
        case "values":
            return listed(values)
        case "keys":
            return listed(keys)
        case "items":
            return listed(builtin("tuple", keys, values))
        case "get" | "pop" | "setdefault" | "__getitem__":
            return values
        case "popitem":
            return builtin("tuple", keys, values)
        case "copy":
            return frozenset({holder})
    return OUTSIDE


def item_of(value: Value, place: str) -> Values:
    """Return an item of a container; the item of a fixed place if `place` is a number."""
    args = value.args
    if value.scope == "dict":
        return args[1] if len(args) == 2 else NOTHING
    if value.scope == "list":
        return args[0] if args else NOTHING
    if value.scope == "tuple":
        if place and args:
            try:
                return args[int(place)]
            except IndexError:
                return NOTHING
        return frozenset().union(*args)
    return builtin(value.scope) if value.scope in ("str", "bytes") else OUTSIDE


def each_of(value: Value) -> Values:
    """Return the items of a loop over a container."""
    args = value.args
    if value.scope in ("dict", "list"):
        return args[0] if args else NOTHING
    if value.scope == "tuple":
        return frozenset().union(*args)
    return builtin("str") if value.scope == "str" else OUTSIDE
