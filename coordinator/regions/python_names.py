"""The findings of Python's own parser on a file: its errors, and the names that it binds and uses.

Runs where grammars do, in the worker: a parser has limits that a hostile text finds. Imports
nothing of the text, and runs none of it.

The order is judged in the author's favour: a name that any branch binds counts as bound, and calls
at import are followed only into functions of the module that are called by name.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections import Counter
from collections.abc import Iterator

from coordinator.regions.reading import ClassNames, PythonNames

_GIVEN = frozenset(dir(builtins)) | frozenset({
    "__file__", "__name__", "__doc__", "__path__", "__package__", "__spec__", "__loader__",
    "__builtins__", "__dict__", "__annotations__", "__module__", "__qualname__", "__class__",
    "WindowsError", "reveal_type", "__cached__",
})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: How deep calls are followed.
CALLS_MAX = 20


def read(data: bytes) -> PythonNames | None:
    """Read the names of these bytes; None if the parser gives up without a syntax error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
            # symtable takes bytes, as the parser does; its stub says text.
            table = symtable.symtable(data, "<file>", "exec")  # type: ignore[arg-type]
        scopes = list(_scopes(table))
        bound = _list_bound(table, scopes)
        unbound = set() if _has_star(tree) else {
            symbol.get_name() for scope in scopes for symbol in scope.get_symbols()
            if symbol.is_referenced() and symbol.is_global()
        } - bound - _GIVEN
        return PythonNames(True, sorted(unbound), sorted(_Order(tree, bound).early), _defined(tree),
                           {node.name: _class(node) for node in tree.body
                            if isinstance(node, ast.ClassDef)})
    except (SyntaxError, ValueError):
        return PythonNames(False)
    except (RecursionError, MemoryError):
        return None


def find_errors(data: bytes) -> str:
    """Return an error that the grammar does not report, with its line. Empty if there is none, or
    if another error keeps Python from reaching it.

    tree-sitter accepts a body that is not indented, lines that are indented to no level, and `print
    x` of Python 2: it is made for texts that an author is still typing. These are errors in every
    version of Python 3. Other errors may be new syntax of the language.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about the text would go to this process's output
        try:
            compile(data, "", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        except SyntaxError as bad:
            if isinstance(bad, IndentationError) or bad.msg.startswith("Missing parentheses"):
                return f"line {bad.lineno}: {bad.msg}"
            return ""
        except (ValueError, RecursionError, MemoryError, SystemError):
            return ""
    return ""


def _has_star(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.ImportFrom) and any(name.name == "*" for name in node.names)
               for node in ast.walk(tree))


def _list_bound(table: symtable.SymbolTable, scopes: list[symtable.SymbolTable]) -> set[str]:
    """Return the names that a module binds, or that one of its scopes binds for it."""
    return {symbol.get_name() for symbol in table.get_symbols()
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            } | {symbol.get_name() for scope in scopes for symbol in scope.get_symbols()
                 if symbol.is_declared_global() and symbol.is_assigned()}


def _defined(tree: ast.Module) -> dict[str, int]:
    count: Counter[str] = Counter()
    for node in tree.body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            count[node.name] += 1
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            count.update(target.id for target in targets if isinstance(target, ast.Name))
    return dict(count)


def _class(node: ast.ClassDef) -> ClassNames:
    used: Counter[str] = Counter()
    members = _list_members(node)
    for inner in ast.walk(node):
        if (isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name)
                and inner.value.id in ("self", "cls")):
            if isinstance(inner.ctx, ast.Load):
                used[inner.attr] += 1
            else:
                members.add(inner.attr)
    bases = [base for base in node.bases
             if not (isinstance(base, ast.Name) and base.id == "object")]
    return ClassNames(bool(bases or node.keywords or node.decorator_list), sorted(members),
                      dict(used))


def _list_members(node: ast.ClassDef) -> set[str]:
    """Return the names that the body of a class binds."""
    members: set[str] = set()
    for statement in node.body:
        if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
            members.add(statement.name)
            continue
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                members.add(inner.id)
            elif isinstance(inner, (*_FUNCTIONS, ast.ClassDef)):
                members.add(inner.name)
    return members


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    open_ = [table]
    while open_:
        scope = open_.pop()
        yield scope
        open_ += scope.get_children()


def _list_own(function: ast.AST) -> set[str]:
    """Return the names that a function binds, or any code inside it."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)) and node is not function:
            names.add(node.name)
    return names


class _Order:
    """Walks a module as its import does. `early`: names used before the module binds them."""

    def __init__(self, tree: ast.Module, names: set[str]) -> None:
        self._names = names
        self._bound: set[str] = set()
        self._functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self._calling: list[str] = []
        self._lazy = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__"
            and any(alias.name == "annotations" for alias in node.names) for node in tree.body
        )
        self.early: set[str] = set()
        self._body(tree.body, None)

    def _body(self, body: list[ast.stmt], local: set[str] | None) -> None:
        for node in body:
            self._run(node, local)

    def _bind(self, name: str, local: set[str] | None) -> None:
        (self._bound if local is None else local).add(name)

    def _run(self, node: ast.AST, local: set[str] | None) -> None:
        if isinstance(node, _FUNCTIONS):
            self._define_function(node, local)
        elif isinstance(node, ast.ClassDef):
            self._define_class(node, local)
        elif isinstance(node, ast.Lambda):
            self._signature(node.args, local)
        elif isinstance(node, _COMPREHENSIONS):
            inner = set(local or ()) | {
                name.id for part in node.generators for name in ast.walk(part.target)
                if isinstance(name, ast.Name)
            }
            for child in ast.iter_child_nodes(node):
                self._run(child, inner)
        elif not self._run_binding(node, local):
            self._children(node, local)
            if isinstance(node, ast.Call):
                self._called(node.func, local)

    def _define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef,
                         local: set[str] | None) -> None:
        for decorator in node.decorator_list:
            self._run(decorator, local)
            self._called(decorator, local)
        self._signature(node.args, local)
        if node.returns is not None and not self._lazy:
            self._run(node.returns, local)
        self._bind(node.name, local)
        if local is None:
            self._functions[node.name] = node

    def _define_class(self, node: ast.ClassDef, local: set[str] | None) -> None:
        for part in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self._run(part, local)
        for decorator in node.decorator_list:
            self._called(decorator, local)
        self._body(node.body, set(local or ()))
        self._bind(node.name, local)

    def _run_binding(self, node: ast.AST, local: set[str] | None) -> bool:
        """Run a node that reads or binds names itself. False if it is no such node."""
        match node:
            case ast.Name(ctx=ast.Load()):
                self._read(node.id, local)
            case ast.Name():
                self._bind(node.id, local)
            case ast.alias():
                self._bind(node.asname or node.name.partition(".")[0], local)
            case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(
                    name=name) | ast.MatchMapping(rest=name):
                if name:
                    self._bind(name, local)
                self._children(node, local)
            case ast.Assign() | ast.AugAssign() | ast.NamedExpr():
                self._assign(node, local)
            case ast.AnnAssign():
                if not self._lazy:
                    self._run(node.annotation, local)
                if node.value is not None:
                    self._run(node.value, local)
                    self._run(node.target, local)
            case ast.For() | ast.AsyncFor():
                self._run(node.iter, local)
                self._run(node.target, local)
                self._body([*node.body, *node.orelse], local)
            case _:
                return False
        return True

    def _assign(self, node: ast.Assign | ast.AugAssign | ast.NamedExpr,
                local: set[str] | None) -> None:
        self._run(node.value, local)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._read(node.target.id, local)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self._run(target, local)

    def _children(self, node: ast.AST, local: set[str] | None) -> None:
        for child in ast.iter_child_nodes(node):
            self._run(child, local)

    def _signature(self, args: ast.arguments, local: set[str] | None) -> None:
        for default in (*args.defaults,
                        *(kw_default for kw_default in args.kw_defaults if kw_default is not None)):
            self._run(default, local)
        if self._lazy:
            return
        for node in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
            if node is not None and node.annotation is not None:
                self._run(node.annotation, local)

    def _read(self, name: str, local: set[str] | None) -> None:
        if (name in self._names and name not in self._bound and name not in (local or ())
                and name not in _GIVEN):
            self.early.add(name)

    def _called(self, function: ast.expr, local: set[str] | None) -> None:
        """Read the names of a module's function that is called while the module is imported."""
        if isinstance(function, ast.Call):
            function = function.func
        if not isinstance(function, ast.Name) or function.id in (local or ()):
            return
        called = self._functions.get(function.id)
        if called is None or function.id in self._calling or len(self._calling) >= CALLS_MAX:
            return
        self._calling.append(function.id)
        own = _list_own(called)
        for node in ast.walk(called):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._read(node.id, own)
            elif isinstance(node, ast.Call):
                self._called(node.func, own)
        self._calling.pop()
