"""The TypeScript types of the browser page, made from the coordinator's own description.

    python scripts/page_types.py [--check]

Writes `web/src/api/schema.ts` by openapi-typescript (of web/package.json); with `--check` it says
whether that file is what would be written, and writes nothing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from coordinator.daemon.openapi import openapi

WEB = Path(__file__).resolve().parent.parent / "web"
TYPES = WEB / "src" / "api" / "schema.ts"


def made() -> str:
    """The types as they are to be.

    Raises:
        subprocess.CalledProcessError: npm's tool failed; it has said why.
    """
    with tempfile.TemporaryDirectory() as temporary:
        description, types = Path(temporary, "openapi.json"), Path(temporary, "schema.ts")
        description.write_bytes(msgspec.json.encode(openapi()))
        subprocess.run(
            [WEB / "node_modules" / ".bin" / "openapi-typescript", description, "--output", types],
            check=True, stdout=subprocess.DEVNULL)
        return types.read_text("utf-8")


def main(arguments: list[str]) -> int:
    """The exit code: 1 where the types are stale."""
    types = made()
    if arguments == ["--check"]:
        if not TYPES.is_file() or TYPES.read_text("utf-8") != types:
            print(f"stale: {TYPES.relative_to(WEB.parent)}; `make web-types` writes it")
            return 1
        return 0
    TYPES.parent.mkdir(parents=True, exist_ok=True)
    TYPES.write_text(types, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
