"""From the bytes of a Python file to its facts.

Owns the choice of facts. Pure: the same bytes give the same facts. A file that Python's own parser
cannot read has none, and says why. Broken, huge and hostile files are ordinary here.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable

from coordinator.meaning import heads
from coordinator.meaning.binding import Binder
from coordinator.meaning.expressions import alias, annotation, encodable
from coordinator.meaning.facts import UNKNOWN, Facts, Marker, Scope, Shape, last_name, regions_of
from coordinator.regions import reader

#: Larger files (bytes) have no facts.
FILE_BYTES_MAX = 2_000_000
#: How many of the expressions that a function returns are kept.
GIVEN_MAX = 4
_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def read(data: bytes) -> Facts:
    """Read the facts of these bytes. Any bytes give an answer."""
    facts = _read_names(data)
    if not facts.note:  # the other tree is freed before: each may be large
        facts.regions = regions_of(reader.outline(data, "python"))
    return facts


def _read_names(data: bytes) -> Facts:
    if len(data) > FILE_BYTES_MAX:
        return Facts(note=f"larger than {FILE_BYTES_MAX:,} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        walk = _Walk()
        walk.module(tree)
        return Facts(walk.scopes, walk.used(), walk.markers, walk.exports)
    except SyntaxError as bad:
        return Facts(note=f"no Python that can be read (line {bad.lineno or 1})")
    except (RecursionError, MemoryError):
        return Facts(note="nested too deeply")
    except (ValueError, LookupError):
        return Facts(note="no Python that can be read")


class _Walk(Binder):
    """One walk over a tree."""

    def __init__(self) -> None:
        super().__init__()
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

    def module(self, tree: ast.Module) -> None:
        self.scopes[""] = Scope("module", "", None, 1, 1 << 30)
        self._walk(tree.body)

    def _walk(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit(self, node: ast.AST) -> None:
        act = self._visits.get(type(node))
        if act is not None:
            act(node)
            return
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                for other_node in value:
                    if isinstance(other_node, ast.AST):
                        self.visit(other_node)
            elif isinstance(value, ast.AST):
                self.visit(value)

    def _function(self, node: ast.AST) -> None:
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        self._decorated(node.decorator_list)
        self._defaults(node.args)
        for other_node in heads.all_annotations(node):
            self._annotation(other_node)
        scope = Scope(
            "function", node.name, self.at, node.lineno, node.end_lineno or node.lineno,
            params=heads.parameters(node.args), returns=annotation(node.returns),
            given=[], marks=["async"] if isinstance(node, ast.AsyncFunctionDef) else [],
            decorators=[self.text(other_node) for other_node in node.decorator_list],
            bindings={}, narrowed={},
        )
        name = self.open(scope)
        self.bind(node.name, "def", name, node.lineno)
        outer, self.at = self.at, name
        for place, param in enumerate(scope.params):
            self.bind(param.name, "param", str(place), node.lineno)
        self._walk(node.body)
        self.at = outer

    def _class(self, node: ast.AST) -> None:
        assert isinstance(node, ast.ClassDef)
        self._decorated(node.decorator_list)
        self._walk(node.bases)
        self._walk(keyword.value for keyword in node.keywords)
        scope = Scope(
            "class", node.name, self.at, node.lineno, node.end_lineno or node.lineno,
            decorators=[heads.decorator(self.text, other_node) for other_node
                        in node.decorator_list],
            bases=[heads.base(self.text, base) for base in node.bases],
            options=[f"{keyword.arg}={self.text(keyword.value)}" for keyword in node.keywords
                     if keyword.arg],
            bindings={}, narrowed={}, fields=[], wildcards=[],
        )
        name = self.open(scope)
        self.bind(node.name, "def", name, node.lineno)
        outer, self.at = self.at, name
        self._walk(node.body)
        self.at = outer

    def _lambda(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Lambda)
        self._defaults(node.args)
        name = self.open(Scope(
            "lambda", "", self.at, node.lineno, node.end_lineno or node.lineno,
            params=heads.parameters(node.args), bindings={}, narrowed={},
        ))
        outer, self.at = self.at, name
        for param in self.scopes[name].params:
            self.bind(param.name, "value", UNKNOWN, node.lineno)
        self.visit(node.body)
        self.at = outer

    def _loop(self, node: ast.AST) -> None:
        assert isinstance(node, _LOOPS)
        self.visit(node.generators[0].iter)
        name = self.open(Scope(
            "loop", "", self.at, node.lineno, node.end_lineno or node.lineno,
            bindings={}, narrowed={},
        ))
        self._loops[node] = name
        outer, self.at = self.at, name
        for place, part in enumerate(node.generators):
            if place:
                self.visit(part.iter)
            self.items(part.target, part.iter, part.iter.lineno, seen=outer if not place else name)
            self._walk(part.ifs)
        if isinstance(node, ast.DictComp):
            self._walk([node.key, node.value])
        else:
            self.visit(node.elt)
        self.at = outer

    def _decorated(self, decorators: Iterable[ast.expr]) -> None:
        for node in decorators:
            if isinstance(node, ast.Name | ast.Attribute):
                self._inside_call.add(node)
                self.site(self.text(node), node.lineno, Shape(1))
            self.visit(node)

    def _defaults(self, args: ast.arguments) -> None:
        self._walk([*args.defaults, *args.kw_defaults])

    def _annotation(self, node: ast.expr) -> None:
        """Record the names in an annotation as used, also in quotes."""
        for other_node in ast.walk(node):
            if isinstance(other_node, ast.Constant) and isinstance(other_node.value, str):
                try:
                    inner = ast.parse(other_node.value.strip(), mode="eval")
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    continue
                for name in ast.walk(inner):
                    if isinstance(name, ast.Name | ast.Attribute):
                        self.site(self.text(name), other_node.lineno)
            elif isinstance(other_node, ast.Name | ast.Attribute):
                self.site(self.text(other_node), other_node.lineno)

    def _import(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Import)
        for name in node.names:
            first = name.name.partition(".")[0]
            if name.asname:
                self.bind(name.asname, "import", name.name, name.lineno)
            else:
                self.bind(first, "import", first, name.lineno)
                if first != name.name:
                    self.bind(first, "import", name.name, name.lineno, what="*")

    def _import_from(self, node: ast.AST) -> None:
        assert isinstance(node, ast.ImportFrom)
        module = "." * node.level + (node.module or "")
        for name in node.names:
            if name.name == "*":
                self.scopes[self.at].wildcards = [*self.scopes[self.at].wildcards, module]
                self.markers.append(Marker("wildcard", self.at, node.lineno, module))
            else:
                self.bind(name.asname or name.name, "import", module, node.lineno, what=name.name)

    def _global(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Global)
        self._globals.setdefault(self.at, set()).update(node.names)

    def _assign(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Assign)
        self.visit(node.value)
        plain = self.scopes[self.at].kind in ("module", "class")
        text = (alias(node.value) if plain else "") or self.text(node.value)
        for target in node.targets:
            self.target(target, text, node.lineno, node.value)
            if self.at == "" and isinstance(target, ast.Name) and target.id == "__all__":
                self.exports = heads.texts(node.value)

    def _declare(self, node: ast.AST) -> None:
        assert isinstance(node, ast.AnnAssign)
        self._annotation(node.annotation)
        self._walk([node.value])
        text = annotation(node.annotation)
        if text in ("Final", "ClassVar", "typing.Final", "typing.ClassVar") and node.value:
            self.target(node.target, self.text(node.value), node.lineno, node.value)
        elif isinstance(node.target, ast.Name):
            self.bind(node.target.id, "type", text, node.lineno)
            here = self.scopes[self.at]
            if here.kind == "class":
                default = ""
                if node.value is not None:
                    default = heads.field_default(node.value, self.text)
                here.fields.append((node.target.id, text, default))
        elif isinstance(node.target, ast.Attribute):
            self._own(node.target, "type", text, node.lineno)
            self.visit(node.target.value)

    def _augment(self, node: ast.AST) -> None:
        assert isinstance(node, ast.AugAssign)
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            if self.at == "" and node.target.id == "__all__" and self.exports is not None:
                self.exports += heads.texts(node.value) or []
            self.site(node.target.id, node.target.lineno)
        else:
            self.visit(node.target)

    def _named(self, node: ast.AST) -> None:
        assert isinstance(node, ast.NamedExpr)
        self.visit(node.value)
        self.target(node.target, self.text(node.value), node.lineno, node.value)

    def _for(self, node: ast.AST) -> None:
        assert isinstance(node, ast.For | ast.AsyncFor)
        self.visit(node.iter)
        self.items(node.target, node.iter, node.lineno)
        self._walk([*node.body, *node.orelse])

    def _with(self, node: ast.AST) -> None:
        assert isinstance(node, ast.With | ast.AsyncWith)
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.target(item.optional_vars, self.text(item.context_expr) + "^",
                            item.context_expr.lineno)
        self._walk(node.body)

    def _except(self, node: ast.AST) -> None:
        assert isinstance(node, ast.ExceptHandler)
        if node.type is not None:
            self.visit(node.type)
            if node.name:
                for class_ in heads.classes(node.type):
                    self.bind(node.name, "value", self.text(class_) + "()", node.lineno)
        self._walk(node.body)

    def _match(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Match)
        self.visit(node.subject)
        subject = self.text(node.subject)
        for case in node.cases:
            for other_node in ast.walk(case.pattern):
                if isinstance(other_node, ast.MatchClass):
                    made = self.text(other_node.cls) + "()"
                    self.scopes[self.at].narrowed.setdefault(subject, []).append(made)
                elif isinstance(other_node, ast.MatchAs) and other_node.name:
                    inner = other_node.pattern
                    self.bind(other_node.name, "value",
                              self.text(inner.cls) + "()" if isinstance(inner, ast.MatchClass)
                              else UNKNOWN, other_node.lineno)
                elif isinstance(other_node, ast.MatchStar | ast.MatchMapping):
                    rest = other_node.name if isinstance(other_node,
                                                         ast.MatchStar) else other_node.rest
                    if rest:
                        self.bind(rest, "value", UNKNOWN, other_node.lineno)
            self.visit(case)

    def _case(self, node: ast.AST) -> None:
        assert isinstance(node, ast.match_case)
        for other_node in ast.walk(node.pattern):
            if isinstance(other_node, ast.MatchClass):
                self.visit(other_node.cls)
            elif isinstance(other_node, ast.MatchValue):
                self.visit(other_node.value)
        self._walk([node.guard, *node.body])

    def _return(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Return)
        scope = self.scopes[self.at]
        if node.value is not None:
            self.visit(node.value)
            text = self.text(node.value)
            if (scope.kind == "function" and not scope.returns and len(scope.given) < GIVEN_MAX
                    and text not in (UNKNOWN, "'NoneType") and text not in scope.given):
                scope.given.append(text)

    def _yield(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Yield | ast.YieldFrom)
        if "yields" not in self.scopes[self.at].marks:
            self.scopes[self.at].marks = [*self.scopes[self.at].marks, "yields"]
        self._walk([node.value])

    def _call(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Call)
        function = node.func
        self._inside_call.add(function)
        shape = Shape(
            sum(not isinstance(argument, ast.Starred) for argument in node.args),
            tuple(keyword.arg for keyword in node.keywords if keyword.arg is not None),
            any(isinstance(argument, ast.Starred) for argument in node.args),
            any(keyword.arg is None for keyword in node.keywords),
        )
        text = self.text(function)
        self.site(text, node.lineno, shape)
        if isinstance(function, ast.Name | ast.Attribute):
            self._record_call(node, last_name(text), shape)
        self.visit(function)
        self._walk(node.args)
        self._walk(keyword.value for keyword in node.keywords)

    def _record_call(self, node: ast.Call, name: str, shape: Shape) -> None:
        """Record the effect of a call of a well-known name on its arguments."""
        line, args = node.lineno, node.args
        text = self.text(node.func)
        if shape.star or shape.stars:
            self.markers.append(Marker("starred", self.at, line, text))
        if text == "isinstance" and len(args) == 2:
            self._narrow(self.text(args[0]), args[1])
        elif text in ("getattr", "setattr", "hasattr", "delattr") and len(args) > 1:
            self._record_lookup(text, args[0], args[1], line)
        elif text in ("eval", "exec") and not (args and isinstance(args[0], ast.Constant)):
            self.markers.append(Marker("eval" if text == "eval" else "exec", self.at, line))
        elif text == "__import__" or name == "import_module":
            given = args[0].value if args and isinstance(args[0], ast.Constant) else UNKNOWN
            self.markers.append(Marker("__import__", self.at, line, encodable(str(given))))

    def _narrow(self, subject: str, classes: ast.expr) -> None:
        if subject != UNKNOWN:
            narrowed = self.scopes[self.at].narrowed.setdefault(subject, [])
            narrowed += [self.text(node) + "()" for node in heads.classes(classes)]

    def _record_lookup(self, function: str, holder: ast.expr, name: ast.expr, line: int) -> None:
        """Record an attribute that `getattr` or a similar function uses."""
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            if function == "getattr" and name.value.isidentifier():
                self.site(f"{self.text(holder)}.{name.value}", line)
        elif function in ("getattr", "setattr"):
            self.markers.append(Marker(
                "getattr" if function == "getattr" else "setattr", self.at, line,
                self.text(holder), heads.prefix(name),
            ))

    def _attribute(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Attribute)
        if node not in self._inside_call:
            self.site(self.text(node), node.lineno)
        self.visit(node.value)

    def _name(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Name)
        if node not in self._inside_call and isinstance(node.ctx, ast.Load):
            self.site(node.id, node.lineno)
