"""`coord` and its daemon as processes of their own, without the time that Python takes to import them.

A server has everything imported and forks for each command: arguments, folder, environment,
standard input and exit code are those of a real start. A daemon that such a command starts, or that
a client in the test process starts, is forked in the same way: a process of its own, in a session of
its own, that runs the daemon's own `main`. Hooks, MCP servers, launches and whatever a test starts
by `python -m` start from nothing, and so do their daemons; `from_nothing` (conftest) has all do so.
`python -m tests.forked` is the server.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

from coordinator.client import starting
from coordinator.files.state import StateDir
from coordinator.store import database
from coordinator.words.refusals import Refusal

_ROOT = Path(__file__).resolve().parent.parent


class Server:
    """Starts at the first command, ends with the test process.

    Args:
        python: the interpreter, and what stands before it where it is to run as somebody else.
        env: of the server itself; each command brings its own.
    """

    def __init__(self, python: Sequence[str] = (sys.executable,), env: Mapping[str, str] | None = None) -> None:
        self._python = list(python)
        self._env = env
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def run(
        self, args: Sequence[str], *, cwd: Path, env: Mapping[str, str], text: str | None,
        seconds: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        """Like `subprocess.run` of `python -m coordinator.cli.main`, with captured text."""
        return self._ask(args, {"cwd": str(cwd), "env": dict(env), "seconds": seconds}, text or "")

    def start(self, state: StateDir, http_port: int | None = None, *, asked: bool = False,
              log_format: str | None = None) -> None:
        """Like `starting.start`."""
        how = {"root": str(state.root), "http_port": http_port, "asked": asked, "log_format": log_format}
        done = self._ask([], {"cwd": os.getcwd(), "env": dict(os.environ), "seconds": 60.0, "start": how}, "")
        if done.stdout:
            raise Refusal.from_body(json.loads(done.stdout))
        assert done.returncode == 0, done.stderr

    def _ask(
        self, args: Sequence[str], asked: dict[str, Any], text: str,
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder, self._lock:
            Path(folder, "in").write_text(text)
            Path(folder).chmod(0o777)
            asked |= {"args": list(args), "folder": folder}
            link = self._there()
            assert link.stdin is not None and link.stdout is not None
            link.stdin.write(json.dumps(asked) + "\n")
            link.stdin.flush()
            code = int(link.stdout.readline())
            out, err = (Path(folder, name).read_text() for name in ("out", "err"))
        if code == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(list(args), asked["seconds"], out, err)
        return subprocess.CompletedProcess(list(args), code, out, err)

    def _there(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [*self._python, "-m", "tests.forked"], cwd=_ROOT, text=True, env=self._env,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        return self._process


def serve() -> None:
    """Fork for each line of standard input; print each exit code."""
    from coordinator.cli import main as entry

    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        entry.main(["help", "exit-codes"])  # much is imported only when a command is run
    for name in ("apscheduler.schedulers.asyncio", "coordinator.daemon.compose",
                 "coordinator.wiring.hook_trust", "uvloop"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    starting.subprocess = types.SimpleNamespace(  # type: ignore[assignment]
        Popen=_Daemon, DEVNULL=subprocess.DEVNULL)
    database.WAL_WARM_BYTES = 0  # no commit is waited for so shortly that a log which has grown before would tell
    gc.collect()
    gc.freeze()  # what all share stays shared

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


def _become(asked: dict[str, Any], entry: Any) -> NoReturn:
    """The child."""

    def command() -> int:
        for number, name, flags in ((0, "in", os.O_RDONLY), (1, "out", os.O_WRONLY | os.O_CREAT),
                                    (2, "err", os.O_WRONLY | os.O_CREAT)):
            os.dup2(os.open(os.path.join(asked["folder"], name), flags, 0o600), number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        _enter(asked["env"], asked["cwd"])
        sys.path[0] = asked["cwd"]  # as `-m` has it
        sys.argv = ["coord", *asked["args"]]
        return _start(**asked["start"]) if "start" in asked else entry.main(asked["args"])

    _end_with(command)


def _enter(env: Mapping[str, str], cwd: Path | str) -> None:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)


def _end_with(run: Callable[[], int]) -> NoReturn:
    """Run it and end the process with its exit code, as the interpreter does at the end of a program."""
    code = 1
    try:
        code = run()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _start(root: str, http_port: int | None, asked: bool, log_format: str | None) -> int:
    try:
        starting.start(StateDir(Path(root)), http_port, asked=asked, log_format=log_format)
    except Refusal as refusal:
        json.dump(refusal.body(), sys.stdout)
    return 0


class _Daemon:
    """A forked daemon, as `subprocess.Popen` would have it."""

    def __init__(
        self, command: list[str], *, stdin: int, stdout: IO[bytes], stderr: IO[bytes], cwd: Path,
        start_new_session: bool, env: Mapping[str, str], pass_fds: tuple[int, ...],
    ) -> None:
        assert (stdin, stdout, start_new_session) == (subprocess.DEVNULL, stderr, True)
        assert command[:4] == [sys.executable, "-P", "-m", "coordinator.daemon"]
        assert threading.active_count() == 1
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _serve_as_daemon(command[4:], stdout.fileno(), cwd, env, pass_fds)

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        return self._wait(0)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _wait(self, how: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, how)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


def _serve_as_daemon(
    args: list[str], output: int, cwd: Path, env: Mapping[str, str], kept: tuple[int, ...],
) -> NoReturn:
    """What `exec` would have left behind is left behind; then the daemon's own `main`."""

    def daemon() -> int:
        os.setsid()
        for number in range(1, signal.NSIG):
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number, old in ((0, nowhere), (1, output), (2, output)):
            os.dup2(old, number)
        low = 3
        for one in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
            os.closerange(low, one)
            low = one + 1
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, how, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
            for number, how, errors in ((0, "r", "strict"), (1, "w", "strict"), (2, "w", "backslashreplace")))
        _enter(env, cwd)
        del sys.path[0]  # as `-P` has it
        sys.argv = ["coordinator.daemon", *args]
        from coordinator.daemon import __main__ as entry

        return entry.main()

    _end_with(daemon)


if __name__ == "__main__":
    serve()
