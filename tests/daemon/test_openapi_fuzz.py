"""Every route of the daemon's own description, asked with what that description allows and with what
it does not: each answer is what is described, or a refusal of the catalogue with its status. Nothing
fails inside, the daemon lives on, and its log gives its state. (`COORD_TEST_EFFORT=20` asks more.)

Left out is `shutdown`; and no request asks to wait for long.
"""

from __future__ import annotations

import http.client
import json
import random
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from coordinator.daemon.openapi import openapi
from coordinator.words.refusals import Code
from tests.conftest import Repo
from tests.effort import examples

Schema = dict[str, Any]
#: Examples of each route.
EXAMPLES = 15
#: Long enough for whatever is asked here; a route that takes longer hangs (seconds).
ANSWER_S = 30.0
#: What makes a request go deep: names that mean something in the repository.
WORDS: dict[str, list[str]] = {
    "agent": ["ann", "bob", "cyd"], "task": ["T-1", "T-2", "1"], "after": ["T-1"],
    "resource": ["src/a.py", "src/a.py::f", "src/", "key:k:1", "src/*.py", "task:T-1"],
    "resources": ["src/a.py", "src/a.py::f", "src/b.py", "key:k:1", "shared:src/b.py", "src/**"],
    "key": ["key:k:1", "k:2", "key:k"], "subject": ["T-1", "src/a.py"], "prefix": ["key:k"],
    "change": ["CH-1", "K-1", "1"], "review": ["R-1"], "request": ["U-1", "W-1"], "path": ["src/a.py"],
    "name": ["saturation", "priority"], "cwd": ["src"], "blocked": ["src/b.py"], "acquisition_id": ["A-1", "W-1"],
    "version": ["0", "sha256:" + "0" * 64], "state": ["all", "open", "done"],
}
STRANGE = ["", " ", "\0", "a\0b", "../x", "/etc/passwd", "x" * 9000, "\ud800", "é\u202e", "::", "key:", "task:", "T-99999999999999999999", "%", "*" * 50, "\n", "-1", "null"]
#: What is no operation, and answers no JSON.
NO_OPERATIONS = ("events_stream", "metrics", "alive")
#: A wait (seconds) is short, or no wait at all: a lawful long one would be served.
WAITS = st.sampled_from([0, 0.01, -1, 1e12, "x", None, [], float("1e300")])


class Door:
    """The daemon's HTTP door, over one connection."""

    def __init__(self, repo: Repo) -> None:
        self._to = urlsplit(repo.state.http.read_text().strip())
        self._bearer = repo.state.bearer.read_text().strip()
        self._open()

    def _open(self) -> None:
        self._line = http.client.HTTPConnection(self._to.hostname or "", self._to.port, timeout=ANSWER_S)

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Status and answer, which has to be JSON."""
        head = {"Authorization": f"Bearer {self._bearer}", "Content-Type": "application/json"}
        try:
            self._line.request(method, path, body, head)
        except (http.client.HTTPException, OSError):
            self._open()  # it may hang up after a request that it cannot read
            self._line.request(method, path, body, head)
        answer = self._line.getresponse()
        data = answer.read()
        if answer.will_close:
            self._open()
        try:
            return answer.status, json.loads(data)
        except ValueError:
            raise AssertionError(f"{method} {path[:300]} gave no JSON: {answer.status} {data[:300]!r}") from None


# ------------------------------------------------------------ what is asked


def lawful(schema: Schema, of: Schema, field: str) -> st.SearchStrategy[Any]:
    """Values that the schema allows; of strings also some that mean something."""
    if field == "wait_s":
        return WAITS
    if "$ref" in schema:
        return lawful(of[schema["$ref"].rpartition("/")[2]], of, field)
    if "anyOf" in schema:
        return st.one_of([lawful(one, of, field) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if kind == "string":
        known = WORDS.get(field, ["x"])
        return st.one_of(st.sampled_from(known), st.sampled_from(known), st.text(max_size=min(20, schema.get("maxLength", 20))))
    if kind == "integer":
        least, most = schema.get("minimum", -(2**53)), schema.get("maximum", 2**53)
        return st.one_of(st.integers(max(least, 0), min(most, 3)), st.integers(least, most))
    if kind == "number":
        return st.one_of(st.floats(0, 5), st.floats(allow_nan=False, allow_infinity=False))
    if kind == "boolean":
        return st.booleans()
    if kind == "null":
        return st.none()
    if kind == "array":
        return st.lists(lawful(schema.get("items", {}), of, field), max_size=3)
    if kind == "object":
        return shaped(schema, of)
    assert kind is None, f"a schema that nobody here knows: {schema}"
    return st.recursive(st.none() | st.integers(-5, 5) | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6)


def shaped(schema: Schema, of: Schema) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with all that is required, and some of the rest."""
    fields = {name: lawful(one, of, name) for name, one in schema.get("properties", {}).items()}
    required = {*schema.get("required", ()), "wait_s"}  # left out, it is half a minute in some
    return st.fixed_dictionaries({name: one for name, one in fields.items() if name in required},
                                 optional={name: one for name, one in fields.items() if name not in required})


def unlawful() -> st.SearchStrategy[Any]:
    """What hardly any field takes."""
    return st.one_of(
        st.sampled_from(STRANGE), st.sampled_from([2**63, -(2**64), 10**400, 1e308, -0.0, True, None, [], {}, [[]], {"a": {}}]),
        st.text(max_size=5), st.lists(st.sampled_from(STRANGE), max_size=3),
    )


@st.composite
def asked(draw: st.DrawFn, described: Schema, of: Schema) -> tuple[dict[str, str], dict[str, Any], Any]:
    """(what stands in the path, the query, the body; None: none)."""
    parts = described["parameters"]
    inside = {one["name"]: draw(st.one_of(lawful(one["schema"], of, one["name"]), st.sampled_from(STRANGE)))
              for one in parts if one["in"] == "path"}
    query = {one["name"]: draw(lawful(one["schema"], of, one["name"])) for one in parts
             if one["in"] == "query" and (one["required"] or one["name"] == "wait_s" or draw(st.booleans()))}
    body = None
    if "requestBody" in described:
        schema = described["requestBody"]["content"]["application/json"]["schema"]
        schema = of[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        body = draw(shaped(schema, of))
    given = query if body is None else body
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        act = draw(st.sampled_from(["wrong", "missing", "more", "whole"]))
        if act == "whole" and body is not None:
            return inside, query, draw(unlawful())
        if act == "more":
            given[draw(st.sampled_from(["x", "", "agent ", "op"]))] = draw(unlawful())
        elif names := sorted(set(given) - {"wait_s"}):
            name = draw(st.sampled_from(names))
            if act == "missing":
                del given[name]
            else:
                given[name] = draw(unlawful())
    return inside, query, body


# ------------------------------------------------------------ what is answered


def misfit(value: Any, schema: Schema, of: Schema, at: str = "answer") -> str:
    """Where a value is not of this shape; empty: it is."""
    if "$ref" in schema:
        return misfit(value, of[schema["$ref"].rpartition("/")[2]], of, at)
    if "anyOf" in schema:
        found = [misfit(value, one, of, at) for one in schema["anyOf"]]
        return "" if "" in found else found[0]
    if "enum" in schema:
        return "" if value in schema["enum"] else f"{at} is {value!r}"
    kind = schema.get("type")
    kinds: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
                                          "null": (type(None),), "array": (list,), "object": (dict,)}
    if kind is None:
        return ""
    if not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind in ("integer", "number")):
        return f"{at} is {value!r}, no {kind}"
    if kind == "array":
        return next(filter(None, (misfit(one, schema.get("items", {}), of, f"{at}[{n}]") for n, one in enumerate(value))), "")
    if kind == "object":
        missing = set(schema.get("required", ())) - set(value)
        if missing:
            return f"{at} has no {missing}"
        known = schema.get("properties", {})
        return next(filter(None, (misfit(one, known[name], of, f"{at}.{name}") for name, one in value.items() if name in known)), "")
    return ""


@pytest.mark.parametrize(("value", "schema", "fits"), [
    (1, {"type": "integer"}, True), (True, {"type": "integer"}, False), ("x", {"anyOf": [{"type": "null"}, {"type": "string"}]}, True),
    ({}, {"type": "object", "required": ["a"]}, False), ([1, "x"], {"type": "array", "items": {"type": "integer"}}, False),
    ("b", {"enum": ["a"]}, False), ({"a": None}, {"type": "object", "properties": {"a": {"$ref": "#/x/S"}}}, False),
])
def test_what_fits_a_shape(value: Any, schema: Schema, fits: bool) -> None:
    assert (misfit(value, schema, {"S": {"type": "string"}}) == "") is fits


def check(door: Door, method: str, path: str, described: Schema, of: Schema,
          request: tuple[dict[str, str], dict[str, Any], Any]) -> Code | None:
    """Ask, and hold the answer against the description; the refusal's code."""
    inside, query, body = request
    url = re.sub(r"{(\w+)}", lambda found: quote(str(inside[found[1]]).encode("utf-8", "surrogatepass"), safe=""), path)
    words = [(k.encode("utf-8", "surrogatepass"), (one if isinstance(one, str) else json.dumps(one)).encode("utf-8", "surrogatepass"))
             for k, v in query.items() for one in (v if isinstance(v, list) else [v])]
    if words:
        url += "?" + urlencode(words)
    status, answer = door.ask(method.upper(), url, json.dumps(body).encode() if "requestBody" in described else None)
    said = (method, url[:300], body, status, answer)
    if status == 200:
        wrong = misfit(answer, described["responses"]["200"]["content"]["application/json"]["schema"], of)
        assert not wrong, (wrong, said)
        return None
    wrong = misfit(answer, of["Refusal"], of)
    assert not wrong, (wrong, said)
    assert str(status) in described["responses"] or status == 404, said
    code = Code(answer["error"]["code"])
    assert code is not Code.INTERNAL and status < 500, said
    if "" in inside.values() and status == 404:
        return code  # without a name in it that is another address, which nobody serves
    assert status == code.row.http, said
    return code


@pytest.mark.slow
def test_every_route_answers_what_it_describes_or_refuses(repo: Repo) -> None:
    repo.write("src/a.py", "def f():\n    return 1\n")
    repo.write("src/b.py", "x = 1\n")
    repo.coord("up", "--http", "0")
    door, pid = Door(repo), repo.pid()
    status, described = door.ask("GET", "/openapi.json")
    assert status == 200 and described == json.loads(json.dumps(openapi()))
    of = described["components"]["schemas"]
    for fields in ({"agent": "ann"}, {"agent": "bob"}):
        assert door.ask("POST", "/v1/agents", json.dumps(fields).encode())[0] == 200
    for title in ("one", "two"):
        assert door.ask("POST", "/v1/tasks", json.dumps({"title": title, "resources": ["src/b.py"]}).encode())[0] == 200
    met: dict[str, set[Code | None]] = {}
    routes = [(method, path, one) for path, methods in described["paths"].items() for method, one in methods.items()
              if one["operationId"] not in ("shutdown", *NO_OPERATIONS)]
    random.Random(1).shuffle(routes)
    for number, (method, path, one) in enumerate(routes):
        codes = met.setdefault(one["operationId"], set())
        fuzz(one, of, number, lambda request, m=method, p=path, o=one, c=codes: c.add(check(door, m, p, o, of, request)))
    assert len(met) == len(routes) > 80
    assert repo.pid() == pid and door.ask("GET", "/v1/health")[0] == 200, "it lives on"
    served = [name for name, codes in met.items() if None in codes]
    assert len(served) > len(met) // 3, "what is asked is lawful often enough to be served"
    ran = repo.coord("replay")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def fuzz(described: Schema, of: Schema, number: int, act: Callable[[Any], object]) -> None:
    """So many requests of one route. (Not shrunk: what a request does depends on those before.)"""

    @seed(number)
    @settings(max_examples=examples(EXAMPLES), deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(asked(described, of))
    def ask(request: Any) -> None:
        act(request)

    ask()
