"""`python -m generators`: check what is made from the code; `--write` writes it."""

from __future__ import annotations

import sys

from generators import shape_table


def main(arguments: list[str]) -> int:
    """The table of shapes first: without it the program cannot be imported, and nothing be made."""
    write = "--write" in arguments
    if not shape_table.update(write) and not write:
        sys.stderr.write(f"coordinator/{shape_table.TABLE} is not current: run `make docs`.\n")
        return 1
    from generators import documents

    return documents.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
