"""Serve the browser page with reload, over the coordinator that runs.

    python scripts/page_dev.py [REPOSITORY]

The development server stands between the browser and the coordinator's HTTP door: what is asked
below `/v1` goes on to it. The page enters with a code of its own, as one that `coord web` opens.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent.parent / "web"
PORT = 5173


def main(arguments: list[str]) -> int:
    """The exit code of the development server."""
    opened = subprocess.run(
        [sys.executable, "-P", "-m", "coordinator.cli.main", "web", "--json"],
        cwd=arguments[0] if arguments else ".", stdout=subprocess.PIPE, check=False)
    page = json.loads(opened.stdout or "{}")
    if "code" not in page:
        print(f"the page was not opened: {page.get('error', {}).get('message', '')}")
        return 1
    print(f"open http://127.0.0.1:{PORT}/#{page['code']} within {page['valid_s']:g} seconds",
          flush=True)
    return subprocess.run(
        [WEB / "node_modules" / ".bin" / "vite", "--port", str(PORT), "--strictPort"], cwd=WEB,
        env={**os.environ, "COORD_ADDRESS": page["address"]}, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
