"""From the bytes of a Python file to its facts.

Owns what of a file is kept. Pure: the same bytes give the same facts. What Python's own parser does
not read has none, and says why; broken, huge and hostile files are ordinary here.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable

from coordinator.meaning.expressions import Writer, alias, annotation
from coordinator.meaning.facts import (
    UNKNOWN,
    Binding,
    BindingKind,
    Facts,
    Marker,
    Param,
    ParamKind,
    Scope,
    Shape,
    Site,
    last_name,
)
from coordinator.meaning.places import regions_of

#: Larger files (bytes) have no facts.
FILE_BYTES_MAX = 2_000_000
#: Of the expressions that a function returns, so many are kept.
GIVEN_MAX = 4
_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOCAL = ("function", "lambda", "loop")


def read(data: bytes) -> Facts:
    """The facts of these bytes. Whatever they are, there is an answer."""
    if len(data) > FILE_BYTES_MAX:
        return Facts(note=f"larger than {FILE_BYTES_MAX:,} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        reader = _Reader()
        reader.module(tree)
        return Facts(
            reader.scopes, reader.used(), reader.markers, reader.exports, regions_of(tree, data),
        )
    except SyntaxError as bad:
        return Facts(note=f"no Python that can be read (line {bad.lineno or 1})")
    except (RecursionError, MemoryError):
        return Facts(note="nested too deeply")
    except (ValueError, LookupError):
        return Facts(note="no Python that can be read")


class _Reader:
    """One walk over a tree. `self.at` is the id of the scope that the walk is in."""

    def __init__(self) -> None:
        self.scopes: dict[str, Scope] = {}
        self.markers: list[Marker] = []
        self.exports: list[str] | None = None
        self.at = ""
        self._sites: dict[tuple[str, str, Shape | None], list[int]] = {}
        self._taken: dict[str, int] = {}
        self._loops: dict[ast.AST, str] = {}
        self._globals: dict[str, set[str]] = {}
        self._inside_call: set[ast.AST] = set()
        self._text = Writer(self._loops.get).text
        self._visits: dict[type[ast.AST], Callable[[ast.AST], None]] = {
            kind: getattr(self, f"_{name}")
            for kind, name in (
                (ast.FunctionDef, "function"), (ast.AsyncFunctionDef, "function"),
                (ast.ClassDef, "class"), (ast.Lambda, "lambda"), (ast.Import, "import"),
                (ast.ImportFrom, "import_from"), (ast.Assign, "assign"), (ast.AnnAssign, "declare"),
                (ast.AugAssign, "augment"), (ast.For, "for"), (ast.AsyncFor, "for"),
                (ast.With, "with"), (ast.AsyncWith, "with"), (ast.ExceptHandler, "except"),
                (ast.NamedExpr, "named"), (ast.Call, "call"), (ast.Attribute, "attribute"),
                (ast.Name, "name"), (ast.Return, "return"), (ast.Yield, "yield"),
                (ast.YieldFrom, "yield"), (ast.Global, "global"), (ast.match_case, "case"),
                (ast.Match, "match"), *((loop, "loop") for loop in _LOOPS),
            )
        }

    # What a file is

    def module(self, tree: ast.Module) -> None:
        self.scopes[""] = Scope("module", "", None, 1, 1 << 30)
        self._walk(tree.body)

    def used(self) -> list[Site]:
        """The sites, without those of names that are a function's own."""
        kept: list[Site] = []
        for (scope, text, shape), lines in self._sites.items():
            if text.isidentifier() and self._is_local(scope, text):
                if shape is None:
                    continue
                if all(one.kind == "param" for one in self._bound(scope, text)):
                    if text != "cls":
                        continue
            kept.append(Site(scope, text, sorted(set(lines)), shape))
        return kept

    def _bound(self, scope: str, name: str) -> list[Binding]:
        at: str | None = scope
        while at is not None:
            here = self.scopes[at]
            if name in here.bindings and (here.kind != "class" or at == scope):
                return here.bindings[name]
            at = here.above
        return []

    def _is_local(self, scope: str, name: str) -> bool:
        at: str | None = scope
        while at is not None:
            here = self.scopes[at]
            if name in here.bindings and here.kind in _LOCAL:
                return all(one.kind != "import" for one in here.bindings[name])
            at = here.above
        return False

    # Walking

    def _walk(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self._visit(node)

    def _visit(self, node: ast.AST) -> None:
        act = self._visits.get(type(node))
        if act is not None:
            act(node)
            return
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                for one in value:
                    if isinstance(one, ast.AST):
                        self._visit(one)
            elif isinstance(value, ast.AST):
                self._visit(value)

    def _open(self, scope: Scope) -> str:
        base = ".".join(one for one in (scope.above, scope.name) if one)
        if not scope.name:
            count = self._taken[base + "<"] = self._taken.get(base + "<", 0) + 1
            name = f"{base}.<{count}>" if base else f"<{count}>"
        else:
            count = self._taken[base] = self._taken.get(base, 0) + 1
            name = base if count == 1 else f"{base}#{count}"
        self.scopes[name] = scope
        return name

    def _bind(self, name: str, kind: BindingKind, text: str, line: int, *, what: str = "",
              seen: str | None = None, scope: str | None = None) -> None:
        here = scope if scope is not None else self.at
        if scope is None and name in self._globals.get(here, ()):
            here, seen = "", seen or self.at
        if scope is None and self.scopes[here].kind == "loop" and kind != "param":
            seen = seen if seen is not None else here
        bound = self.scopes[here].bindings.setdefault(name, [])
        one = Binding(kind, text, line, what, None if seen == here else seen)
        if len(bound) < 24 and one not in bound:
            bound.append(one)

    def _site(self, text: str, line: int, shape: Shape | None = None) -> None:
        if last_name(text):
            self._sites.setdefault((self.at, text, shape), []).append(line)

    # Definitions

    def _function(self, node: ast.AST) -> None:
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        self._decorated(node.decorator_list)
        self._defaults(node.args)
        for one in _annotations(node):
            self._annotation(one)
        scope = Scope(
            "function", node.name, self.at, node.lineno, node.end_lineno or node.lineno,
            params=parameters(node.args), returns=annotation(node.returns),
            given=[], marks=["async"] if isinstance(node, ast.AsyncFunctionDef) else [],
            decorators=[self._text(one) for one in node.decorator_list],
            bindings={}, narrowed={},
        )
        name = self._open(scope)
        self._bind(node.name, "def", name, node.lineno)
        outer, self.at = self.at, name
        for place, param in enumerate(scope.params):
            self._bind(param.name, "param", str(place), node.lineno)
        self._walk(node.body)
        self.at = outer

    def _class(self, node: ast.AST) -> None:
        assert isinstance(node, ast.ClassDef)
        self._decorated(node.decorator_list)
        self._walk(node.bases)
        self._walk(one.value for one in node.keywords)
        scope = Scope(
            "class", node.name, self.at, node.lineno, node.end_lineno or node.lineno,
            decorators=[_told(self._text, one) for one in node.decorator_list],
            bases=[_base(self._text, one) for one in node.bases],
            options=[f"{one.arg}={self._text(one.value)}" for one in node.keywords if one.arg],
            bindings={}, narrowed={}, fields=[], wildcards=[],
        )
        name = self._open(scope)
        self._bind(node.name, "def", name, node.lineno)
        outer, self.at = self.at, name
        self._walk(node.body)
        self.at = outer

    def _lambda(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Lambda)
        self._defaults(node.args)
        name = self._open(Scope(
            "lambda", "", self.at, node.lineno, node.end_lineno or node.lineno,
            params=parameters(node.args), bindings={}, narrowed={},
        ))
        outer, self.at = self.at, name
        for param in self.scopes[name].params:
            self._bind(param.name, "value", UNKNOWN, node.lineno)
        self._visit(node.body)
        self.at = outer

    def _loop(self, node: ast.AST) -> None:
        assert isinstance(node, _LOOPS)
        self._visit(node.generators[0].iter)
        name = self._open(Scope(
            "loop", "", self.at, node.lineno, node.end_lineno or node.lineno,
            bindings={}, narrowed={},
        ))
        self._loops[node] = name
        outer, self.at = self.at, name
        for place, part in enumerate(node.generators):
            if place:
                self._visit(part.iter)
            self._items(part.target, part.iter, part.iter.lineno, seen=outer if not place else name)
            self._walk(part.ifs)
        if isinstance(node, ast.DictComp):
            self._walk([node.key, node.value])
        else:
            self._visit(node.elt)
        self.at = outer

    def _decorated(self, decorators: Iterable[ast.expr]) -> None:
        for one in decorators:
            if isinstance(one, ast.Name | ast.Attribute):
                self._inside_call.add(one)
                self._site(self._text(one), one.lineno, Shape(1))
            self._visit(one)

    def _defaults(self, args: ast.arguments) -> None:
        self._walk([*args.defaults, *args.kw_defaults])

    def _annotation(self, node: ast.expr) -> None:
        """What an annotation names is used, also where it stands in quotes."""
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                try:
                    inner = ast.parse(one.value.strip(), mode="eval")
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    continue
                for name in ast.walk(inner):
                    if isinstance(name, ast.Name | ast.Attribute):
                        self._site(self._text(name), one.lineno)
            elif isinstance(one, ast.Name | ast.Attribute):
                self._site(self._text(one), one.lineno)

    # Names

    def _import(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Import)
        for one in node.names:
            first = one.name.partition(".")[0]
            if one.asname:
                self._bind(one.asname, "import", one.name, one.lineno)
            else:
                self._bind(first, "import", first, one.lineno)
                if first != one.name:
                    self._bind(first, "import", one.name, one.lineno, what="*")

    def _import_from(self, node: ast.AST) -> None:
        assert isinstance(node, ast.ImportFrom)
        module = "." * node.level + (node.module or "")
        for one in node.names:
            if one.name == "*":
                self.scopes[self.at].wildcards = [*self.scopes[self.at].wildcards, module]
                self.markers.append(Marker("wildcard", self.at, node.lineno, module))
            else:
                self._bind(one.asname or one.name, "import", module, node.lineno, what=one.name)

    def _global(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Global)
        self._globals.setdefault(self.at, set()).update(node.names)

    def _assign(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Assign)
        self._visit(node.value)
        plain = self.scopes[self.at].kind in ("module", "class")
        text = (alias(node.value) if plain else "") or self._text(node.value)
        for target in node.targets:
            self._target(target, text, node.lineno, node.value)
            if self.at == "" and isinstance(target, ast.Name) and target.id == "__all__":
                self.exports = _texts(node.value)

    def _declare(self, node: ast.AST) -> None:
        assert isinstance(node, ast.AnnAssign)
        self._annotation(node.annotation)
        self._walk([node.value])
        said = annotation(node.annotation)
        if said in ("Final", "ClassVar", "typing.Final", "typing.ClassVar") and node.value:
            self._target(node.target, self._text(node.value), node.lineno, node.value)
        elif isinstance(node.target, ast.Name):
            self._bind(node.target.id, "type", said, node.lineno)
            here = self.scopes[self.at]
            if here.kind == "class":
                default = _default(node.value, self._text) if node.value is not None else ""
                here.fields.append((node.target.id, said, default))
        elif isinstance(node.target, ast.Attribute):
            self._own(node.target, "type", said, node.lineno)
            self._visit(node.target.value)

    def _augment(self, node: ast.AST) -> None:
        assert isinstance(node, ast.AugAssign)
        self._visit(node.value)
        if isinstance(node.target, ast.Name):
            if self.at == "" and node.target.id == "__all__" and self.exports is not None:
                self.exports += _texts(node.value) or []
            self._site(node.target.id, node.target.lineno)
        else:
            self._visit(node.target)

    def _named(self, node: ast.AST) -> None:
        assert isinstance(node, ast.NamedExpr)
        self._visit(node.value)
        self._target(node.target, self._text(node.value), node.lineno, node.value)

    def _target(self, target: ast.expr, text: str, line: int, value: ast.expr | None = None,
                seen: str | None = None) -> None:
        """Bind what stands left of `=` (or after `for`, `as`) to an expression."""
        match target:
            case ast.Name():
                self._bind(target.id, "value", text, line, seen=seen)
            case ast.Tuple() | ast.List():
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                paired = len(parts) == len(target.elts) and not any(
                    isinstance(one, ast.Starred) for one in [*parts, *target.elts])
                for place, one in enumerate(target.elts):
                    if paired:
                        self._target(one, self._text(parts[place]), line, parts[place], seen)
                    elif isinstance(one, ast.Starred):
                        self._target(one.value, text, line, None, seen)
                    else:
                        told = text + f"<{place}>" if text != UNKNOWN else UNKNOWN
                        self._target(one, told, line, None, seen)
            case ast.Attribute():
                self._own(target, "value", text, line)
                self._visit(target.value)
            case _:
                self._visit(target)

    def _own(self, target: ast.Attribute, kind: BindingKind, text: str, line: int) -> None:
        """`self.x = …` in a method is a name of its class."""
        scope = self.scopes[self.at]
        if (scope.kind == "function" and isinstance(target.value, ast.Name) and scope.params
                and target.value.id == scope.params[0].name and scope.above is not None
                and self.scopes[scope.above].kind == "class"
                and "staticmethod" not in scope.decorators):
            self._bind(target.attr, kind, text, line, seen=self.at, scope=scope.above)

    # Statements

    def _for(self, node: ast.AST) -> None:
        assert isinstance(node, ast.For | ast.AsyncFor)
        self._visit(node.iter)
        self._items(node.target, node.iter, node.lineno)
        self._walk([*node.body, *node.orelse])

    def _items(self, target: ast.expr, source: ast.expr, line: int, seen: str | None = None) -> None:
        """Bind the target of a loop; through `enumerate` and `zip`, to what they take apart."""
        if (isinstance(target, ast.Tuple) and isinstance(source, ast.Call)
                and isinstance(source.func, ast.Name)):
            if source.func.id == "enumerate" and len(target.elts) == 2 and source.args:
                self._target(target.elts[0], "'int", line, None, seen)
                self._items(target.elts[1], source.args[0], line, seen)
                return
            if source.func.id == "zip" and len(source.args) == len(target.elts):
                for one, given in zip(target.elts, source.args, strict=True):
                    self._items(one, given, line, seen)
                return
        text = self._text(source)
        self._target(target, text + "*" if text != UNKNOWN else UNKNOWN, line, None, seen)

    def _with(self, node: ast.AST) -> None:
        assert isinstance(node, ast.With | ast.AsyncWith)
        for one in node.items:
            self._visit(one.context_expr)
            if one.optional_vars is not None:
                self._target(one.optional_vars, self._text(one.context_expr) + "^",
                             one.context_expr.lineno)
        self._walk(node.body)

    def _except(self, node: ast.AST) -> None:
        assert isinstance(node, ast.ExceptHandler)
        if node.type is not None:
            self._visit(node.type)
            if node.name:
                for one in _classes(node.type):
                    self._bind(node.name, "value", self._text(one) + "()", node.lineno)
        self._walk(node.body)

    def _match(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Match)
        self._visit(node.subject)
        subject = self._text(node.subject)
        for case in node.cases:
            for one in ast.walk(case.pattern):
                if isinstance(one, ast.MatchClass):
                    made = self._text(one.cls) + "()"
                    self.scopes[self.at].narrowed.setdefault(subject, []).append(made)
                elif isinstance(one, ast.MatchAs) and one.name:
                    inner = one.pattern
                    self._bind(one.name, "value",
                               self._text(inner.cls) + "()" if isinstance(inner, ast.MatchClass)
                               else UNKNOWN, one.lineno)
                elif isinstance(one, ast.MatchStar | ast.MatchMapping):
                    rest = one.name if isinstance(one, ast.MatchStar) else one.rest
                    if rest:
                        self._bind(rest, "value", UNKNOWN, one.lineno)
            self._visit(case)

    def _case(self, node: ast.AST) -> None:
        assert isinstance(node, ast.match_case)
        for one in ast.walk(node.pattern):
            if isinstance(one, ast.MatchClass):
                self._visit(one.cls)
            elif isinstance(one, ast.MatchValue):
                self._visit(one.value)
        self._walk([node.guard, *node.body])

    def _return(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Return)
        scope = self.scopes[self.at]
        if node.value is not None:
            self._visit(node.value)
            text = self._text(node.value)
            if (scope.kind == "function" and not scope.returns and len(scope.given) < GIVEN_MAX
                    and text not in (UNKNOWN, "'NoneType") and text not in scope.given):
                scope.given.append(text)

    def _yield(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Yield | ast.YieldFrom)
        if "yields" not in self.scopes[self.at].marks:
            self.scopes[self.at].marks = [*self.scopes[self.at].marks, "yields"]
        self._walk([node.value])

    # Uses

    def _call(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Call)
        function = node.func
        self._inside_call.add(function)
        shape = Shape(
            sum(not isinstance(one, ast.Starred) for one in node.args),
            tuple(one.arg for one in node.keywords if one.arg is not None),
            any(isinstance(one, ast.Starred) for one in node.args),
            any(one.arg is None for one in node.keywords),
        )
        text = self._text(function)
        self._site(text, node.lineno, shape)
        if isinstance(function, ast.Name | ast.Attribute):
            self._seen_through(node, last_name(text), shape)
        self._visit(function)
        self._walk(node.args)
        self._walk(one.value for one in node.keywords)

    def _seen_through(self, node: ast.Call, name: str, shape: Shape) -> None:
        """What a call of a well-known name tells of what it is given."""
        line, args = node.lineno, node.args
        text = self._text(node.func)
        if shape.star or shape.stars:
            self.markers.append(Marker("starred", self.at, line, text))
        if text == "isinstance" and len(args) == 2:
            subject = self._text(args[0])
            if subject != UNKNOWN:
                narrowed = self.scopes[self.at].narrowed.setdefault(subject, [])
                narrowed += [self._text(one) + "()" for one in _classes(args[1])]
        elif text in ("getattr", "setattr", "hasattr", "delattr") and len(args) > 1:
            if isinstance(args[1], ast.Constant) and isinstance(args[1].value, str):
                if text == "getattr" and args[1].value.isidentifier():
                    self._site(f"{self._text(args[0])}.{args[1].value}", line)
            elif text in ("getattr", "setattr"):
                self.markers.append(Marker(
                    "getattr" if text == "getattr" else "setattr", self.at, line,
                    self._text(args[0]), _prefix(args[1]),
                ))
        elif text in ("eval", "exec") and not (args and isinstance(args[0], ast.Constant)):
            self.markers.append(Marker("eval" if text == "eval" else "exec", self.at, line))
        elif text == "__import__" or name == "import_module":
            given = args[0].value if args and isinstance(args[0], ast.Constant) else UNKNOWN
            self.markers.append(Marker("__import__", self.at, line, str(given)))

    def _attribute(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Attribute)
        if node not in self._inside_call:
            self._site(self._text(node), node.lineno)
        self._visit(node.value)

    def _name(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Name)
        if node not in self._inside_call and isinstance(node.ctx, ast.Load):
            self._site(node.id, node.lineno)


def parameters(args: ast.arguments) -> list[Param]:
    """The parameters of a function, in the order in which they are written."""
    found: list[Param] = []
    placed = [*args.posonlyargs, *args.args]
    needed = len(placed) - len(args.defaults)
    for place, one in enumerate(placed):
        kind: ParamKind = "/" if place < len(args.posonlyargs) else ""
        found.append(Param(one.arg, kind, place < needed, annotation(one.annotation)))
    if args.vararg is not None:
        found.append(Param(args.vararg.arg, "*", False, annotation(args.vararg.annotation)))
    for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found.append(Param(one.arg, "=", default is None, annotation(one.annotation)))
    if args.kwarg is not None:
        found.append(Param(args.kwarg.arg, "**", False, annotation(args.kwarg.annotation)))
    return found


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    args = node.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    found = [one.annotation for one in every if one is not None]
    return [one for one in [*found, node.returns] if one is not None]


def _told(text: Callable[[ast.AST], str], node: ast.expr) -> str:
    """A class's decorator, with the options that its constructor depends on."""
    said = text(node)
    if isinstance(node, ast.Call):
        said += "".join(
            f" {one.arg}" for one in node.keywords
            if one.arg in ("kw_only", "auto_attribs") and isinstance(one.value, ast.Constant)
            and one.value.value is True
        ) + "".join(
            " no_init" for one in node.keywords if one.arg == "init"
            and isinstance(one.value, ast.Constant) and one.value.value is False
        )
    return said


def _base(text: Callable[[ast.AST], str], node: ast.expr) -> str:
    """A base class; with what it is made for (`Box[int]`) as an annotation."""
    if isinstance(node, ast.Subscript):
        return annotation(node) or text(node.value)
    return text(node)


def _default(node: ast.expr, text: Callable[[ast.AST], str]) -> str:
    """The default of a class's field: what tells whether its constructor takes it."""
    if isinstance(node, ast.Call):
        said = {one.arg: one.value for one in node.keywords}
        marks = [name for name in ("default", "factory", "default_factory") if name in said]
        for name in ("init", "kw_only"):
            value = said.get(name)
            if isinstance(value, ast.Constant):
                marks.append(f"{name}={value.value}")
        return " ".join([text(node), *marks])
    return text(node)


def _classes(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Tuple):
        return [inner for one in node.elts for inner in _classes(one)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_classes(node.left), *_classes(node.right)]
    return [node]


def _texts(node: ast.expr) -> list[str] | None:
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    return [one.value for one in node.elts
            if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _prefix(node: ast.expr) -> str:
    """What a computed name is known to begin with."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        node = node.left
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.partition("%")[0].partition("{")[0]
    return ""
