"""Source files made from the list of operations: the methods of `AsyncClient`.

One method an operation, with the types, defaults and meanings of its request's fields. What a
program should not have to say is left out: whom it acts as (the client's agent, unless `agent` is
given) and the directory that paths begin at. Durations are seconds, and lose their `_s`. Written
and checked with the documents (documents.py); the methods of `Client` are made from them by
`scripts/blocking_client.py`.
"""

from __future__ import annotations

import keyword
import textwrap
import types
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from coordinator.kernel.operations import Operation
from coordinator.operations.field_meanings import meaning
from coordinator.operations.listing import (
    BY_HAND,
    BY_PLACE,
    OF_RESOURCES,
    OPERATIONS,
    SHORT,
    method_of,
)
from coordinator.words import requests as rq

#: File -> the slices, and modules of the kernel's requests, whose operations it has; and what it is
#: about. The last one has all that no other has.
ROOMS: dict[str, tuple[tuple[str, ...], str]] = {
    "holding": (("agents", "leases", "negotiation"), "agents, leases and unlock requests"),
    "working": (("backlog", "landing", "verify"), "tasks, landing and verification"),
    "deciding": (("review", "sweep", "guard", "regions", "proposals"),
                 "reviews, the guard, regions and proposals"),
    "sharing": (("state", "signals"), "values of keys, their changes, and signals"),
    "telling": (("steps", "messages"), "steps, dead letters and messages"),
    "watching": ((), "the log, status, health, the archive, the page, agents' output"),
}
FOLDER = "asynchronous"
WIDTH = 100
NOTE = "# Made by `make docs` from the list of operations; do not edit."


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method: its name, the request's field, how it is written."""

    name: str
    field: str
    type: str
    default: str | None
    sent: str
    meaning: str


def sources() -> dict[str, str]:
    """Path below `coordinator/client` -> the text of the file."""
    files = {f"{FOLDER}/{room}.py": _file(room, about) for room, (_, about) in ROOMS.items()}
    return {**files, f"{FOLDER}/__init__.py": _whole()}


def _whole() -> str:
    """All rooms as one class."""
    imports = "\n".join(f"from coordinator.client.{FOLDER}.{room} import {_class(room)}"
                        for room in sorted(ROOMS))
    bases = ", ".join(_class(room) for room in ROOMS)
    head = textwrap.fill(f"class Operations({bases}):", WIDTH, subsequent_indent=" " * 17)
    return (f'{NOTE}\n"""Every operation as a method of `AsyncClient`."""\n\n'
            f"from __future__ import annotations\n\n{imports}\n\n__all__ = [\"Operations\"]\n\n\n"
            f'{head}\n    """All that the coordinator can be asked, typed."""\n')


def _class(room: str) -> str:
    return room.capitalize()


def _find_room(operation: Operation) -> str:
    """The file that has an operation's method."""
    names = operation.request.__module__.split(".")
    source = names[2] if names[1] == "slices" else names[-1]
    return next((room for room, (sources, _) in ROOMS.items() if source in sources), [*ROOMS][-1])


def _file(room: str, about: str) -> str:
    found = [one for one in OPERATIONS.values()
             if _find_room(one) == room and one.name not in BY_HAND]
    methods = [_method(one) for one in found]
    names = {method_of(one.name) for one in found}
    methods += [f"    {short} = {name}\n" for short, name in SHORT.items() if name in names]
    body = "\n".join(methods)
    typed = [name for name in ("Any", "Literal") if f"{name}" in body.replace("rq.", "")]
    lines = [NOTE, f'"""Methods of `AsyncClient`: {about}."""', "",
             "from __future__ import annotations", ""]
    if "Sequence[" in body:
        lines.append("from collections.abc import Sequence")
    if typed:
        lines.append(f"from typing import {', '.join(typed)}")
    if lines[-1]:
        lines.append("")
    imported = [name for name in ("here", "json", "listed") if f"{name}(" in body]
    lines += [f"from coordinator.client.asking import {', '.join(['AsyncAsking', *imported])}",
              "from coordinator.words import requests as rq", "", "",
              f"class {_class(room)}(AsyncAsking):", f'    """Asking about {about}."""', "", body]
    return "\n".join(lines).rstrip("\n") + "\n"


def _method(one: Operation) -> str:
    taken = _parameters(one)
    signature = _signature(one, taken)
    returned = f"rq.{one.reply.__name__}"
    begin = f"    async def {method_of(one.name)}("
    head = f"{begin}{', '.join(signature)}) -> {returned}:"
    if len(head) > WIDTH:
        head = f"{begin}\n{_filled(signature, 8)},\n    ) -> {returned}:"
    sent = [f"{p.field}={p.sent}" for p in taken]
    if "cwd" in one.request.__struct_fields__:
        sent.append("cwd=here()")
    asked = f"rq.{one.request.__name__}({', '.join(sent)})"
    call = f"        return await self.call({asked})"
    if len(call) > WIDTH:
        call = (f"        return await self.call(rq.{one.request.__name__}(\n"
                f"{_filled(sent, 12)},\n        ))")
    return f"{head}\n{_docstring(one, taken)}\n{call}\n"


def _filled(parts: list[str], indent: int) -> str:
    """Parts of a list on lines of their own; none is broken that fits a line, and a comma
    follows."""
    whole = ", ".join(part.replace(" ", "\0") if len(part) < WIDTH - indent else part
                      for part in parts)
    lines = textwrap.wrap(whole, WIDTH - indent - 1, break_long_words=False,
                          break_on_hyphens=False)
    return textwrap.indent("\n".join(lines).replace("\0", " "), " " * indent)


def _parameters(one: Operation) -> list[Parameter]:
    hints = typing.get_type_hints(one.request, include_extras=True)
    out = []
    for field in msgspec.structs.fields(one.request):
        if field.name == "cwd":
            continue
        said = meaning(one.request, field.name)
        if field.name == "agent" and field.required:
            out.append(Parameter("agent", "agent", "str | None", "None",
                                 "agent or await self.name()",
                                 "Whom it is asked for; default: this client's own agent."))
            continue
        name = _name(field.name)
        shown, sent = type_of(hints[field.name], name)
        default = None if field.required else _default(field)
        if field.default_factory is not msgspec.NODEFAULT and shown == "Any":
            default = "None"
        out.append(Parameter(name, field.name, shown, default, sent, said))
    return out


def _name(field: str) -> str:
    """`ttl_s` -> `ttl`, `acquisition_id` -> `acquisition`."""
    short = field.removesuffix("_s").removesuffix("_id")
    return field if keyword.iskeyword(short) else short


def type_of(hint: Any, name: str) -> tuple[str, str]:
    """How a type is written for those who call, and what is made of the value."""
    bare = _bare(hint)
    if bare is msgspec.Raw:
        return "Any", f'json({name}, "{name}")'
    if get_origin(bare) is list:
        inner, _ = type_of(get_args(bare)[0], name)
        return f"Sequence[{inner}]", f"listed({name})"
    if isinstance(bare, types.UnionType) or get_origin(bare) is typing.Union:
        made = [type_of(part, name) for part in get_args(bare) if part is not type(None)]
        sent = f"None if {name} is None else {made[0][1]}" if made[0][1] != name else name
        return " | ".join([*(shown for shown, _ in made), "None"]), sent
    for known in ("Mode", "Verdict", "UnlockVerdict"):
        if bare == getattr(rq, known):
            return f"rq.{known}", name
    if get_origin(bare) is Literal:
        return f"Literal[{', '.join(_quoted(one) for one in get_args(bare))}]", name
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return f"rq.{bare.__name__}", name
    assert bare in (str, int, float, bool), f"{name} is {bare!r}"
    return bare.__name__, name


def _bare(hint: Any) -> Any:
    return _bare(get_args(hint)[0]) if get_origin(hint) is Annotated else hint


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _default(field: Any) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return "()"
    return _quoted(field.default)


def _ordered(one: Operation, taken: list[Parameter]) -> tuple[list[Parameter], list[Parameter]]:
    """(what may be given without its name, what may not)."""
    placed = BY_PLACE.get(one.name, ())
    first = [p for p in taken if p.default is None]
    first += [p for name in placed for p in taken if p.field == name]
    return first, [p for p in taken if p not in first]


def _signature(one: Operation, taken: list[Parameter]) -> list[str]:
    out = ["self"]
    if one.name in OF_RESOURCES:
        rest = [p for p in taken if p.field != "resources"]
        return [*out, "*resources: str", *(f"{p.name}: {p.type} = {p.default}" for p in rest
                                           if p.default is not None)]
    first, rest = _ordered(one, taken)
    out += [f"{p.name}: {p.type}" + ("" if p.default is None else f" = {p.default}")
            for p in first]
    if rest:
        out += ["*", *(f"{p.name}: {p.type} = {p.default}" for p in rest)]
    return out


def _docstring(one: Operation, taken: list[Parameter]) -> str:
    lines = []
    for number, part in enumerate(one.meaning.split("\n\n")):
        said = ("" if number else '"""') + " ".join(part.split())
        lines += ([""] if number else []) + textwrap.wrap(
            said, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8,
            break_long_words=False, break_on_hyphens=False)
    if taken:
        lines += ["", "        Args:"]
        first, rest = _ordered(one, taken)
        for p in [*first, *rest]:
            lines += textwrap.wrap(f"{p.name}: {p.meaning}", WIDTH, initial_indent=" " * 12,
                                   subsequent_indent=" " * 16, break_long_words=False,
                                   break_on_hyphens=False)
        lines.append('        """')
    elif len(lines) > 1 or len(lines[0]) + 3 > WIDTH:
        lines.append('        """')
    else:
        lines[0] += '"""'
    return "\n".join(lines)
