"""The `coord` command, as far as the coordinator does the work: words out, finished text in.

An agent types `coord lock …` all day, so this costs one interpreter start and little else: only
modules that are built into the interpreter. What the coordinator does not answer (no coordinator,
another version of it, a command that needs a terminal or this machine, words that it does not
understand) is left to the program itself, `coordinator.cli.main`, which takes this process over.

Run by the `coord` script, and by `.coord/bin/coord`. Decides nothing, parses nothing.
"""

import sys

try:
    import _socket as socket
    import posix as system
except ImportError:  # not Linux: slower, the same (mypy takes one name for one module only)
    import os as system  # type: ignore[no-redef]
    import socket  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing

#: How long to wait for an answer (seconds); a command with `--wait` waits as long as it takes.
PATIENCE_S = 130.0
#: The seconds after which a person is told about the wait.
TOLD_S = 10.0
#: Words by which it is known at once that the coordinator is not asked.
_OWN = ("--version", "-V", "init", "up", "down", "serve", "doctor", "launch", "run", "mcp",
        "hook", "guard", "help", "ps", "trust", "report", "logs", "regions", "impact", "merge-file")
_HELP = ("--help", "-h")
#: Words of long-running programs: each gets a process of its own.
_LASTING = ("serve", "launch", "run", "mcp", "hook", "attach")
#: Settings of the interpreter that say where modules are, or how text is written. A process that
#: ignores them must not become a program that may use them.
_SETTINGS = (b"PYTHONPATH", b"PYTHONHOME", b"PYTHONUSERBASE", b"PYTHONUTF8", b"PYTHONIOENCODING")


def main() -> int:
    """The exit code. Does not return where the program itself takes over."""
    words = sys.argv[1:]
    if print_help(words):
        return 0
    if not words or words[0] in _OWN or any(word in _HELP for word in words):
        return itself()
    key = b""
    served = hook("_served.py")
    try:
        path = found()
        if path is None:
            return itself()
        link = connect(path, words)
        key = once()
        frame, token = said(words, key), setting(b"COORD_AGENT_TOKEN") or b"-"
        link.sendall(b"hook =cli %b %d\n%b" % (token, len(frame), frame))
        code, out, err = answered(link)
    except TimeoutError:
        say(2, b"coord: DAEMON_DOWN: The coordinator runs and does not answer; whether this was "
               b"done is not known.\n  next: `coord ps` shows its process.\n")
        return 5
    except (OSError, ValueError):
        # Nobody is there, or it was killed in the middle: the same is asked again under the same
        # key, and takes effect once.
        return itself(key)
    if code == served["NOT_SERVED"]:
        return itself()
    if code == served["ENDING"]:
        return itself(key)
    say(1, out)
    say(2, err)
    return code


def print_help(words: "list[str]") -> bool:
    """Print the help or the version that is asked for, where it is the same on every machine.
    Returns whether it was printed."""
    if words in (["--version"], ["-V"]):
        text = helped("--version")
    else:
        text = "" if 0 < width() < 80 else helped(asked_page(words))
    say(1, text.encode())
    return bool(text)


def asked_page(words: "list[str]") -> str:
    """The command whose help is asked for; a name of none where none is."""
    if words[:1] == ["help"] and "-" not in "".join(words):
        return " ".join(words[1:])  # (`help exit-codes` and options are the program's)
    return " ".join(words[:-1]) if words and words[-1] in _HELP else "?"


def connect(path: str, words: "list[str]") -> socket.socket:
    """A connection to the coordinator. A command with `--wait` waits as long as it takes."""
    link: socket.socket = hook("_hook.py")["connected"](path, PATIENCE_S)
    if any(word == "--wait" or word.startswith("--wait=") for word in words):
        link.settimeout(None)
    return link


def found() -> "str | None":
    """The socket of the coordinator that is meant."""
    given = setting(b"COORD_SOCKET")
    if given:
        return given.decode("utf-8", "surrogateescape")
    seldom = hook("_hook_seldom.py")
    root = setting(b"COORD_ROOT")
    if root:
        system.stat(root + b"/.coord/")
        path: str = seldom["_socket_of"](root.decode("utf-8", "surrogateescape"))
        return path
    around: str | None = seldom["find"]()
    return around


def said(words: "list[str]", key: bytes) -> bytes:
    """The request to the coordinator: the asking program, where, for whom, and the words."""
    import time

    program = setting(b"COORD_PROGRAM")
    user = b""
    for name in (b"LOGNAME", b"USER", b"LNAME", b"USERNAME"):
        user = user or setting(name)
    fields = [
        hook("_served.py")["make_stamp"](__file__).encode(), system.getcwdb(),
        setting(b"COORD_AGENT"),
        program if program and not on_path() else b"", b"%d" % width() if width() else b"",
        b"1" if colour() else b"", b"1" if system.isatty(1) else b"", b"%d" % system.getpid(),
        user, key, b"%d" % time.localtime().tm_gmtoff,
    ]
    return b"\0".join(fields + [word.encode("utf-8", "surrogateescape") for word in words])


def once() -> bytes:
    """An idempotency key: the time comes first."""
    import time

    return b"%012x%b" % (time.time_ns() // 1_000_000, system.urandom(8).hex().encode())


def answered(link: socket.socket) -> "tuple[int, bytes, bytes]":
    """The answer, whole.

    Raises:
        OSError: it did not come.
    """
    got = _first(link)
    while b"\n" not in got:
        got += _more(link)
    head, _, rest = got.partition(b"\n")
    code, out, err = [int(part) for part in head.split(b" ")]
    parts, have = [rest], len(rest)
    while have < out + err:
        parts.append(_more(link))
        have += len(parts[-1])
    rest = b"".join(parts)
    return code, rest[:out], rest[out : out + err]


def _first(link: socket.socket) -> bytes:
    """The first part of the answer. Tells a person if it takes long."""
    patience = link.gettimeout()
    if patience is not None:
        link.settimeout(TOLD_S)
        try:
            return _more(link)
        except TimeoutError:
            say(2, b"coord: the coordinator has not answered for 10 s; going on to wait "
                   b"(`coord ps` shows its process)\n")
        link.settimeout(patience - TOLD_S)
    return _more(link)


def _more(link: socket.socket) -> bytes:
    more = link.recv(262_144)
    if not more:
        raise OSError("the coordinator hung up")
    return more


def width() -> int:
    """Signs in a line: of the terminal, or as $COLUMNS says; 0: a pipe."""
    given = setting(b"COLUMNS")
    if given.isdigit() and int(given):
        return int(given)
    if not system.isatty(1):
        return 0
    try:
        return system.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def colour() -> bool:
    """Whether the output is a terminal that shows colours, and they are not forbidden."""
    return system.isatty(1) and not setting(b"NO_COLOR") and setting(b"TERM") not in (b"", b"dumb")


def on_path() -> bool:
    """Whether `coord` can be typed as it is."""
    for folder in setting(b"PATH").split(b":"):
        try:
            if folder and system.stat(folder + b"/coord").st_mode & 0o111:
                return True
        except OSError:
            continue
    return False


def setting(name: bytes) -> bytes:
    """A variable of the environment; empty if it is not set."""
    value: object = system.environ.get(named(name))
    return value if isinstance(value, bytes) else str(value or "").encode("utf-8", "replace")


def named(name: bytes) -> "typing.Any":
    """The name in the environment's form: bytes with posix; text with os, its substitute."""
    return name.decode() if system.__name__ == "os" else name


def helped(name: str) -> str:
    """The help of a command; empty if it is unknown."""
    with open(__file__.rpartition("/")[0] + "/commands/help.txt", encoding="utf-8") as file:
        for part in file.read().split("\f")[1:]:
            title, _, text = part.partition("\n")
            if title == name:
                return text
    return ""


def hook(name: str) -> "dict[str, typing.Any]":
    """The definitions of a file beside this one; compiled once."""
    from _frozen_importlib_external import SourceFileLoader

    names: dict[str, typing.Any] = {"__name__": name[:-3]}
    path = __file__.rpartition("/")[0] + "/" + name
    code: typing.Any = SourceFileLoader(name[:-3], path).get_code(name[:-3])
    exec(code, names)
    return names


def itself(key: bytes = b"") -> "typing.NoReturn":
    """Let the program take this process over. `key`: the key of the question that was sent already.
    """
    words = sys.argv[1:]
    if words and words[0] not in _LASTING:
        here(key)
    program = [sys.executable, "-P", "-m", "coordinator.cli.main", *words]
    if not key:
        system.execv(program[0], program)
    system.execve(program[0], program, {**system.environ, named(b"COORD_IDEMPOTENCY_KEY"): key})


def here(key: bytes) -> None:
    """Run the program in this interpreter, because another one would take as long to start as all
    of this. Returns only if that is impossible."""
    import _signal as signal  # type: ignore[import-not-found]  # (`signal` takes ms to load)

    if sys.flags.ignore_environment and any(map(setting, _SETTINGS)):
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # while it is read in there is nothing to tell
    sys.dont_write_bytecode = sys.dont_write_bytecode or bool(setting(b"PYTHONDONTWRITEBYTECODE"))
    if not sys.flags.safe_path:
        del sys.path[:1]  # the folder of the script, which may contain anything
    try:
        if sys.flags.no_site:
            import site

            site.main()
        import gc

        from coordinator.cli import lazy_imports

        gc.set_threshold(50_000, 20, 20)  # loaded modules stay: collecting them finds nothing
        lazy_imports.begin(short=True)
        from coordinator.cli.main import run as begin
    except ImportError:
        return
    if key:
        import os

        os.environ["COORD_IDEMPOTENCY_KEY"] = key.decode()
    begin(short=True)


def say(descriptor: int, text: bytes) -> None:
    """All of `text`, however little the pipe takes at once."""
    while text:
        text = text[system.write(descriptor, text) :]


def run() -> None:
    """`coord …`; never returns."""
    for descriptor in (0, 1, 2):
        try:
            system.fstat(descriptor)
        except OSError:  # closed: it must not become the next descriptor, the coordinator's socket
            system.open("/dev/null", system.O_RDWR)
    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
        say(2, hook("_served.py")["tell_interrupted"](sys.argv[1:]).encode() + b"\n")
    except BrokenPipeError:
        code = 141
    except OSError as bad:  # of writing: all other is left to the program itself
        code = 9
        try:  # noqa: SIM105 - built-in modules only
            say(2, b"coord: STORAGE: It was carried out, and what came of it could not be written "
                   b"out: %b.\n" % str(bad.strerror).encode())
        except OSError:
            pass
    system._exit(code)


if __name__ == "__main__":
    run()
