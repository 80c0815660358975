"""`python -m generators`: check what is made from the code; `--write` writes it."""

from __future__ import annotations

import sys

from generators import source_tables


def main(arguments: list[str]) -> int:
    """The tables first: without them the program cannot be imported, and nothing be made."""
    write = "--write" in arguments
    stale = source_tables.update(write)
    if stale and not write:
        sys.stderr.write(f"stale: {', '.join(stale)}; `make docs` writes it again\n")
        return 1
    from generators import documents

    return documents.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
