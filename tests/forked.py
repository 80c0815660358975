"""`coord` as a process of its own, without the third of a second that Python takes to import it.

One server for each test process has everything imported and forks for each command: arguments,
folder, environment, standard input and exit code are those of a real start. What starts for real
(daemons, hooks, MCP servers) is not made faster by this. `python -m tests.forked` is the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent


class Server:
    """Starts at the first command, ends with the test process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def run(
        self, args: Sequence[str], *, cwd: Path, env: Mapping[str, str], text: str | None,
        seconds: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        """Like `subprocess.run` of `python -m coordinator.cli.main`, with captured text."""
        with tempfile.TemporaryDirectory() as folder, self._lock:
            Path(folder, "in").write_text(text or "")
            asked = {"args": list(args), "cwd": str(cwd), "env": dict(env), "folder": folder, "seconds": seconds}
            link = self._there()
            assert link.stdin is not None and link.stdout is not None
            link.stdin.write(json.dumps(asked) + "\n")
            link.stdin.flush()
            code = int(link.stdout.readline())
            out, err = (Path(folder, name).read_text() for name in ("out", "err"))
        if code == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(list(args), seconds, out, err)
        return subprocess.CompletedProcess(list(args), code, out, err)

    def _there(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked"], cwd=_ROOT, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        return self._process


def serve() -> None:
    """Fork for each line of standard input; print each exit code."""
    from coordinator.cli import main as entry

    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        entry.main(["help", "exit-codes"])  # much is imported only when a command is run
    import coordinator.cli.bench
    import coordinator.wiring.hook_trust  # noqa: F401

    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(asked, entry)
        ended = partial(_end, child)
        signal.signal(signal.SIGALRM, ended)
        signal.setitimer(signal.ITIMER_REAL, asked["seconds"], 0.1)
        _, status = os.waitpid(child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # as the next child has it
        print(os.waitstatus_to_exitcode(status), flush=True)


def _end(child: int, number: int, frame: object) -> None:
    """Its time is over."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def _become(asked: dict[str, Any], entry: Any) -> None:
    """The child: never returns."""
    code = 70
    try:
        for number, name, flags in ((0, "in", os.O_RDONLY), (1, "out", os.O_WRONLY | os.O_CREAT),
                                    (2, "err", os.O_WRONLY | os.O_CREAT)):
            os.dup2(os.open(os.path.join(asked["folder"], name), flags, 0o600), number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(asked["env"])
        os.chdir(asked["cwd"])
        sys.path[0] = asked["cwd"]  # as `-m` has it
        sys.argv = ["coord", *asked["args"]]
        code = entry.main(asked["args"])
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
