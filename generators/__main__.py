"""`python -m generators`: check what is made from the code; `--write` writes it."""

from __future__ import annotations

import sys

from generators.documents import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
