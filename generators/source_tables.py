"""Tables of what stands where: requests and replies (`words/requests/table.py`), and commands
(`cli/command_table.py`).

Made from the source alone: the program cannot be imported while a name is missing from them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "coordinator"
SHAPES = "words/requests/table.py"
COMMANDS = "cli/command_table.py"
SHAPES_HEAD = '''"""Where each request is written. Made by `make docs`, checked by `make check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
'''
COMMANDS_HEAD = '''"""Where each command is. Made by `make docs`, checked by `make check`."""

from __future__ import annotations

#: Module below `coordinator` -> the commands that it declares, or carries out in the program.
MODULES = {
'''


def make_shape_table() -> str:
    """The text of the table of requests and replies.

    Raises:
        ValueError: two modules declare one name.
    """
    shapes = {name_module(path): sorted(list_declared(parse(path))) for path in list_shape_files()}
    first: dict[str, str] = {}
    for module, names in shapes.items():
        for name in names:
            if first.setdefault(name, module) != module:
                raise ValueError(f"{module} and {first[name]} both declare {name}: name it anew.")
    imports = "".join(
        f"    from {module} import (\n" + "".join(f"        {name} as {name},\n" for name in names)
        + "    )\n" for module, names in shapes.items())
    rows = "".join(f'    "{module}":\n' + "".join(f'        "{line} "\n' for line in wrap(names))
                   + '        "",\n' for module, names in shapes.items())
    return (f"{SHAPES_HEAD}{imports}\n#: Module -> the names that it declares.\n"
            f"MODULES = {{\n{rows}}}\n")


def list_shape_files() -> list[Path]:
    """The modules of shapes: the kernel's, then each slice's."""
    kernel = [path for path in sorted((PACKAGE / "words" / "requests").glob("*.py"))
              if path.name not in ("__init__.py", Path(SHAPES).name)]
    return [*kernel, *sorted((PACKAGE / "slices").glob("*/requests.py"))]


def make_command_table() -> str:
    """The text of the table of commands."""
    files = sorted(path for folder in ("cli", "commands", "slices/*")
                   for path in PACKAGE.glob(f"{folder}/*.py"))
    rows = {name_module(path).removeprefix("coordinator."): list_commands(parse(path))
            for path in files}
    return COMMANDS_HEAD + "".join(
        f'    "{module}": (\n' + "".join(f'        "{name}",\n' for name in names) + "    ),\n"
        for module, names in rows.items() if names) + "}\n"


def list_commands(tree: ast.Module) -> list[str]:
    """The commands that a module declares or carries out, by its decorators."""
    names = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for call in function.decorator_list:
                if (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                        and call.func.id in ("command", "in_program")):
                    name = call.args[0]
                    if isinstance(name, ast.Constant) and name.value:
                        names.append(str(name.value))
    return names


def parse(path: Path) -> ast.Module:
    """A module's syntax."""
    return ast.parse(path.read_text("utf-8"))


def name_module(path: Path) -> str:
    """The dotted name of a module of the program."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def list_declared(tree: ast.Module) -> Iterator[str]:
    """The public names that a module gives to classes and values."""
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.ClassDef):
            targets = [ast.Name(node.name)]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        yield from (target.id for target in targets
                    if isinstance(target, ast.Name) and not target.id.startswith("_"))


def wrap(names: list[str], width: int = 85) -> Iterator[str]:
    """The names in lines of at most `width` signs."""
    line = ""
    for name in names:
        if line and len(line) + 1 + len(name) > width:
            yield line
            line = ""
        line = f"{line} {name}".strip()
    yield line


def update(write: bool) -> list[str]:
    """The tables that were not as the source says; with `write`, they are now."""
    stale = []
    for table, text in ((SHAPES, make_shape_table()), (COMMANDS, make_command_table())):
        path = PACKAGE / table
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(table)
            if write:
                path.write_text(text, "utf-8")
    return stale
