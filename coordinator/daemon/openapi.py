"""OpenAPI 3.1 of the HTTP door, made from the shapes that decode requests and from the catalogue.

Every path, field, unit, refusal and example comes from where it is defined; what is written here is
how they are put together. Serves nothing.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from coordinator.daemon import page_door
from coordinator.kernel.operations import Operation
from coordinator.operations.field_meanings import meaning, read_examples
from coordinator.operations.listing import HTTP_PATHS, OPERATIONS, HttpPath
from coordinator.resources import program_version
from coordinator.words import requests as rq
from coordinator.words.refusals import Code

Schema = dict[str, Any]
#: What a client calls the subject of a request, where the folder or module has another name.
TAGS = {"health": "story", "status": "story", "logs": "story", "tasks": "backlog",
        "review": "reviews", "verify": "verification"}
#: Subjects of operations that share a folder with others. Generated clients name their modules
#: after subjects.
OPERATION_TAGS = {"limit_reached": "agents", "report": "report", "archive_search": "archive",
                  "archive_show": "archive", "archive_index": "archive"}
TAG_MEANINGS = {
    "archive": "Asking the context archive.",
    "report": "Asking what a time of work came to: who waited for whom, for which files.",
    "watching": "Following what happens, and whether all is well.",
}
_JSON = "application/json"
_AT = "2026-11-21T14:32:00.000Z"
ABOUT = """The coordinator of one repository, for programs on this machine: the same operations as \
the command line, the local socket and the Python client have.

Every path but `/health` needs `Authorization: Bearer TOKEN`: the operator's token lies in \
`.coord/`, an agent's own is in the answer to its registration. A refusal changes nothing and has \
one shape: `{"error": {"code", "message", "retryable", "next", …}}`. A request that \
changes something may be sent again under the header `Idempotency-Key`: it takes effect once. \
Instants are UTC (ISO 8601), fields that end in `_s` are seconds, in `_bytes` bytes."""
#: Statuses that nothing that only reads is refused with.
ONLY_WRITING = (422, 423)


def openapi() -> dict[str, Any]:
    """The whole description."""
    shapes = [o.request for o in OPERATIONS.values()] + [o.reply for o in OPERATIONS.values()]
    schemas, components = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}"
    )
    by_shape = dict(zip(shapes, schemas, strict=True))
    described = _structs()
    answered = _reached([by_shape[o.reply] for o in OPERATIONS.values()], components)
    for name, schema in components.items():
        _describe(described[name], schema, answered=name in answered)
    paths: dict[str, Any] = {}
    served: list[tuple[Operation, HttpPath | None]] = [(operation, None) for operation
                                                       in OPERATIONS.values()]
    served += [(OPERATIONS[http_path.op], http_path) for http_path in HTTP_PATHS]
    bodies: dict[str, Schema] = {}
    for operation, further in served:
        method, path = operation.request.http
        if further is not None:
            method, path = further.method, further.path.replace(":path", "")
        made = _operation(operation, further, method, path, components, bodies,
                          by_shape[operation.reply])
        paths.setdefault(path, {})[method.lower()] = made
    for operation in OPERATIONS.values():
        components.pop(operation.request.__name__, None)
    components |= bodies
    components["Refusal"] = _refusal()
    components |= msgspec.json.schema_components(
        page_door.SHAPES, ref_template="#/components/schemas/{name}")[1]
    paths |= _more_paths()
    return {
        "openapi": "3.1.0",
        "info": {"title": "coord", "version": program_version(), "description": ABOUT,
                 "license": {"name": "MIT", "identifier": "MIT"}},
        "tags": [{"name": name, "description": text} for name, text in _tags().items()],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {f"Refused{status}": fields for status, fields in _refused().items()},
            "securitySchemes": {"bearer": {
                "type": "http", "scheme": "bearer",
                "description": "The operator's token, a page's, or an agent's own."}},
        },
        "security": [{"bearer": []}],
    }


def _operation(operation: Operation, further: HttpPath | None, method: str, path: str,
               components: dict[str, Schema], bodies: dict[str, Schema],
               reply: Schema) -> dict[str, Any]:
    request = operation.request
    text = " ".join(operation.meaning.split("\n\n")[0].split())
    made: dict[str, Any] = {
        "operationId": further.operation_id if further else operation.name,
        "tags": [_tag(operation)],
        "summary": re.split(r"(?<=[.:;]) ", text)[0].rstrip(".:;"),
        "description": operation.meaning + (
            "\n\nOnly for people: an agent's token is refused." if operation.operator_only else ""),
        "parameters": _parameters(operation, path, method, components, further),
    }
    if method in ("POST", "PUT", "PATCH"):
        name, body = _body(operation, path, components, further)
        bodies[name] = body
        example = {k: v for k, v in example_of_request(request).items() if k in body["properties"]}
        made["requestBody"] = {
            "required": bool(body["required"]),
            "content": {_JSON: {"schema": {"$ref": f"#/components/schemas/{name}"},
                                "example": example}},
        }
    made["responses"] = {
        "200": {"description": "Done.", "content": {_JSON: {
            "schema": reply, "example": example_of(operation.reply)}}},
        **{str(status): {"$ref": f"#/components/responses/Refused{status}"}
           for status in _refused() if operation.writes or status not in ONLY_WRITING},
    }
    if operation.writes:
        made["parameters"] = [*made["parameters"], {
            "name": "Idempotency-Key", "in": "header", "required": False,
            "description": "Made up by whoever asks: the same request under the same key takes "
                           "effect once, for a day.",
            "schema": {"type": "string", "maxLength": 200}}]
    return made


def _reached(schemas: list[Schema], components: dict[str, Schema]) -> set[str]:
    """Names of all shapes that these consist of."""
    result: set[str] = set()
    todo: list[Any] = list(schemas)
    while todo:
        fields = todo.pop()
        if isinstance(fields, dict):
            if isinstance(ref := fields.get("$ref"), str) and (
                    name := ref.rpartition("/")[2]) not in result:
                result.add(name)
                todo.append(components[name])
            todo += fields.values()
        elif isinstance(fields, list):
            todo += fields
    return result


def _describe(shape: type[Any], schema: Schema, *, answered: bool) -> None:
    """Put the meaning of each field into a shape's schema. In an answer every field is present. The
    coordinator fills in what a request leaves out. Generators would send a `default`, so it is in
    the description."""
    for name, item in schema.get("properties", {}).items():
        item["description"] = meaning(shape, name)
        if "default" in item:
            default = item.pop("default")
            if not answered and default not in (None, "", []):
                item["description"] += f" Default: {msgspec.json.encode(default).decode()}."
    if answered:
        schema["required"] = list(schema.get("properties", {}))
    if isinstance(text := schema.get("description"), str):
        schema["description"] = " ".join(text.partition("Attributes:")[0].split())


def _body(operation: Operation, path: str, components: dict[str, Schema],
          further: HttpPath | None) -> tuple[str, Schema]:
    """(name, schema) of a request's body: what neither its path nor its address has said."""
    schema = components[operation.request.__name__]
    in_path = set(re.findall(r"{(\w+)}", path))
    name = operation.request.__name__
    if further is not None:
        in_path |= {further.names[0], *further.fixed}
        name = "".join(part.capitalize() for part in further.operation_id.split("_"))
    return f"{name}Body", {
        "type": "object", "title": f"{name}Body",
        "description": schema.get("description", ""),
        "properties": {k: v for k, v in schema["properties"].items() if k not in in_path},
        "required": [item for item in schema.get("required", ()) if item not in in_path],
        "additionalProperties": False,
    }


def _parameters(operation: Operation, path: str, method: str, components: dict[str, Schema],
                further: HttpPath | None = None) -> list[dict[str, Any]]:
    fields = msgspec.structs.fields(operation.request)
    inside = set(re.findall(r"{(\w+)}", path))
    subject = inside & {"task", "resource"} if further is not None else set[str]()
    result: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"},
         "description": "The task's id, like `T-3`, or `3`." if name == "task" else
         "The resource's name; its slashes may be given as they are, or as `%2F`."}
        for name in sorted(subject)
    ]
    for field in fields:
        if field.name in subject or (further is not None and field.name == further.names[0]):
            continue
        if field.name not in inside and method not in ("GET", "DELETE"):
            continue
        schema = dict(components[operation.request.__name__]["properties"][field.name])
        result.append({
            "name": field.name, "in": "path" if field.name in inside else "query",
            "required": field.name in inside or field.required,
            "description": schema.pop("description"), "schema": schema,
        })
    return result


# ---------------------------------------------------------------- refusals


def _refused() -> dict[int, dict[str, Any]]:
    """HTTP status -> what it is answered with, and for which codes."""
    by_status: dict[int, list[Code]] = {}
    for code in Code:
        by_status.setdefault(code.row.http, []).append(code)
    return {
        status: {
            "description": " ".join(f"`{code.value}`: {code.row.meaning}" for code in codes),
            "content": {_JSON: {
                "schema": {"$ref": "#/components/schemas/Refusal"},
                "examples": {code.value: {"value": _refusal_example(code)} for code in codes},
            }},
        }
        for status, codes in sorted(by_status.items())
    }


def _refusal_example(code: Code) -> dict[str, Any]:
    row = code.row
    return {"error": {"code": code.value, "message": row.meaning, "retryable": row.retryable,
                      "next": row.next}}


def _refusal() -> Schema:
    """The shape of every refusal."""
    return {
        "type": "object", "title": "Refusal", "required": ["error"],
        "description": "A lawful no: it changes nothing.",
        "properties": {"error": {
            "type": "object", "title": "RefusalError",
            "required": ["code", "message", "retryable", "next"],
            "description": "What was refused, and why. Further fields are its facts.",
            "properties": {
                "code": {"type": "string", "enum": [code.value for code in Code],
                         "description": "Which refusal; a newer coordinator may have more."},
                "message": {"type": "string", "description":
                            "What happened and what was left unharmed, in sentences."},
                "retryable": {"type": "boolean", "description":
                              "Whether the same request may be granted later."},
                "next": {"type": "string", "description": "The one next step that helps."},
            },
            "additionalProperties": True,
        }},
    }


# ---------------------------------------------------------------- examples


def example_of_request(shape: type[Any]) -> dict[str, Any]:
    """A request as JSON: the required fields and the usual ones."""
    examples = read_examples()
    only = examples.shown_only.get(shape.__name__)
    hints = typing.get_type_hints(shape, include_extras=True)
    return {
        field.name: _example(shape, field.name, hints[field.name], 0)
        for field in msgspec.structs.fields(shape)
        if (field.name in only if only else field.required or field.name in examples.shown
            or f"{shape.__name__}.{field.name}" in examples.shown)
    }


def example_of(shape: type[Any], depth: int = 0) -> dict[str, Any]:
    """An answer as JSON."""
    hints = typing.get_type_hints(shape, include_extras=True)
    return {field.name: _example(shape, field.name, hints[field.name], depth)
            for field in msgspec.structs.fields(shape)}


def _list_example(inner: Any, depth: int) -> list[Any]:
    struct = isinstance(inner, type) and issubclass(inner, msgspec.Struct)
    return [example_of(inner, depth + 1)] if struct and depth < 1 else []


def _example(shape: type[Any], field: str, hint: Any, depth: int) -> Any:
    examples = read_examples().examples
    for key in (f"{shape.__name__}.{field}", field):
        if key in examples and _fits(examples[key], hint):
            return examples[key]
    bare = _bare(hint)
    if get_origin(bare) is list:
        return _list_example(_bare(get_args(bare)[0]), depth)
    if isinstance(bare, types.UnionType) or get_origin(bare) is typing.Union:
        return None
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return example_of(bare, depth + 1)
    if get_origin(bare) is Literal:
        return get_args(bare)[0]
    if get_origin(bare) is dict:
        return {}
    if bare is str:
        return _AT if field.endswith("_at") else ""
    return {int: 1, float: 1.0, bool: False}.get(bare)


def _fits(value: Any, hint: Any) -> bool:
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=hint)
    except msgspec.ValidationError:
        return False
    return True


def _bare(hint: Any) -> Any:
    return _bare(get_args(hint)[0]) if get_origin(hint) is Annotated else hint


# ---------------------------------------------------------------- tags, and what is no operation


def _structs() -> dict[str, type[Any]]:
    members = ((name, getattr(rq, name)) for name in dir(rq))
    return {name: shape for name, shape in members
            if isinstance(shape, type) and issubclass(shape, msgspec.Struct)}


def _tag(operation: Operation) -> str:
    """The subject of an operation: its slice, or its module where it belongs to the kernel."""
    if tag := OPERATION_TAGS.get(operation.name):
        return tag
    names = operation.request.__module__.split(".")
    room = names[-2] if names[-1] == "requests" else names[-1]
    return TAGS.get(room, room)


def _tags() -> dict[str, str]:
    """Subject -> what it is about: as the module of its requests says."""
    result: dict[str, str] = {}
    for operation in OPERATIONS.values():
        tag = _tag(operation)
        text = inspect.getdoc(sys.modules[operation.request.__module__]) or ""
        about = " ".join(text.split("\n\n")[0].split())
        if operation.name in OPERATION_TAGS:  # its module tells of the others there
            about = TAG_MEANINGS.get(tag, "")
        meaning = result.setdefault(tag, about)
        if about not in meaning:  # two modules under one tag
            result[tag] = f"{meaning} {about}"
    return result | {"watching": TAG_MEANINGS["watching"]}


def _more_paths() -> dict[str, Any]:
    """The paths of the door beside operations."""
    refused = {str(status): {"$ref": f"#/components/responses/Refused{status}"}
               for status in (400, 401, 403, 503, 507)}

    def path(name: str, text: str, media: str, schema: Schema, example: Any,
             **more: Any) -> dict[str, Any]:
        return {"get": {
            "operationId": name, "tags": ["watching"], "summary": text.split(". ")[0].rstrip("."),
            "description": text, "parameters": [], **more,
            "responses": {"200": {"description": "As described.",
                                  "content": {media: {"schema": schema, "example": example}}},
                          **refused},
        }}

    text = {"type": "string"}
    return {
        "/v1/events/stream": path(
            "events_stream", "Events as they happen, as server-sent events. A connection that "
            "broke goes on with `Last-Event-ID`.", "text/event-stream", text,
            "id: 41\nevent: task_added\ndata: "
            + msgspec.json.encode(example_of(rq.EventRow)).decode() + "\n\n",
            parameters=[
                {"name": "after", "in": "query", "required": False,
                 "description": "Only events after this number; default: from now on.",
                 "schema": {"type": "integer"}},
                {"name": "Last-Event-ID", "in": "header", "required": False,
                 "description": "The last event that came before the connection broke; it counts "
                 "in place of `after`.", "schema": {"type": "string"}}]),
        "/metrics": path("metrics", "Metrics in Prometheus' text format. Give Prometheus the "
                         "token's file as `credentials_file`.", "text/plain", text,
                         "# HELP coord_waiters Acquisitions that stand in line.\n"
                         "# TYPE coord_waiters gauge\ncoord_waiters 0\n"),
        "/health": path(
            "alive", "Whether the coordinator serves, for a probe: needs no token, tells no more. "
            "503 or 507 where it does not.", _JSON,
            {"type": "object", "title": "AliveReply", "required": ["status"],
             "properties": {"status": {"type": "string", "enum": ["ok"],
                                       "description": "`ok`: it serves."}}},
            {"status": "ok"},
            security=[]),
        **page_door.describe_paths(refused),
    }
