"""The table of requests and replies (`coordinator/words/requests/table.py`): where each is written.

Made from the source alone: the program cannot be imported while a name is missing from it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "coordinator"
TABLE = "words/requests/table.py"
HEAD = '''"""Where each request is written. Made by `make docs`, checked by `make check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
'''


def list_shapes() -> dict[str, list[str]]:
    """Module -> the shapes that it declares.

    Raises:
        ValueError: two modules declare one name.
    """
    shapes: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for path in list_files():
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        shapes[module] = sorted(list_declared(ast.parse(path.read_text("utf-8"))))
        for name in shapes[module]:
            if name in first:
                raise ValueError(f"{module} and {first[name]} both declare {name}: name it anew.")
            first[name] = module
    return shapes


def list_files() -> list[Path]:
    """The modules of shapes: the kernel's, then each slice's."""
    kernel = [path for path in sorted((PACKAGE / "words" / "requests").glob("*.py"))
              if path.name not in ("__init__.py", Path(TABLE).name)]
    return [*kernel, *sorted((PACKAGE / "slices").glob("*/requests.py"))]


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


def make_table() -> str:
    """The table's text."""
    shapes = list_shapes()
    imports = "".join(
        f"    from {module} import (\n" + "".join(f"        {name} as {name},\n" for name in names)
        + "    )\n" for module, names in shapes.items())
    rows = "".join(f'    "{module}":\n' + "".join(f'        "{line} "\n' for line in wrap(names))
                   + '        "",\n' for module, names in shapes.items())
    return f"{HEAD}{imports}\n#: Module -> the names that it declares.\nMODULES = {{\n{rows}}}\n"


def wrap(names: list[str], width: int = 85) -> Iterator[str]:
    """The names in lines of at most `width` signs."""
    line = ""
    for name in names:
        if line and len(line) + 1 + len(name) > width:
            yield line
            line = ""
        line = f"{line} {name}".strip()
    yield line


def update(write: bool) -> bool:
    """Whether the table was as the source says; with `write`, it is now."""
    path, text = PACKAGE / TABLE, make_table()
    current = path.exists() and path.read_text("utf-8") == text
    if not current and write:
        path.write_text(text, "utf-8")
    return current
