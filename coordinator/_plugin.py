"""`coord-plugin`: what coord's plugins for agent CLIs run, on whichever machine they are.

    coord-plugin guard|notice|begin PROFILE[:EVENT] [SECONDS [PROJECT]]
    coord-plugin mcp PROFILE
    coord-plugin socket [PROJECT]
    coord-plugin git pre-commit
    coord-plugin up

`guard` is the hook before a tool runs and `notice` the one beside it (`_hook.py`, closed and open).
`begin` starts the coordinator when a session begins, and is its hook; `up` only starts it. `mcp`
serves the tools; `socket` prints the coordinator's socket; `git` is the guard of commits
(`git_guard/`), for programs that run git's hooks. The repository is the one around PROJECT,
otherwise around the working directory; if neither uses coord, hooks do nothing and exit 0.

It is a command of its own, because another tool also installs one called `coord`. It is light to
start, like the hook, and decides nothing.
"""

import sys

from coordinator import _hook, _hook_seldom

try:
    import posix as system
except ImportError:  # not Linux (mypy takes one name for one module only)
    import os as system  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing

#: The mark by which the coordinator knows a plugin's hook (daemon/twin_questions.py).
PLUGIN = "+plugin"
PROGRAM = "coordinator.cli.main"
_USAGE = ("usage: coord-plugin guard|notice|begin PROFILE[:EVENT] [SECONDS [PROJECT]]\n"
          "       coord-plugin mcp PROFILE\n       coord-plugin socket [PROJECT]\n"
          "       coord-plugin git pre-commit\n       coord-plugin up\n")


def main(words: "list[str]") -> int:
    """The exit code. Does not return where the program itself takes over."""
    mode, rest = (words or [""])[0], words[1:]
    hand_over(mode, rest)
    if mode == "socket" and len(rest) < 2:
        _hook.say(1, (socket_near(rest[0] if rest else "") or "").encode(
            "utf-8", "surrogateescape"))
        return 0
    if mode not in ("guard", "notice", "begin") or not 1 <= len(rest) <= 3:
        _hook.say(2, _USAGE.encode())
        return 2
    path = socket_near(rest[2] if len(rest) == 3 else "")
    if path is None:
        return 0
    profile, colon, event = rest[0].partition(":")
    name = profile + PLUGIN + colon + event
    if mode == "begin":
        itself(PROGRAM, "hook", name)
    sys.argv = [_hook.__file__, path, name, "closed" if mode == "guard" else "open",
                *rest[1:2]]
    return _hook.main()


def hand_over(mode: str, rest: "list[str]") -> None:
    """Let the program take this process over where these words are its own."""
    if mode == "mcp" and len(rest) == 1:
        itself(PROGRAM, "mcp", "--profile", rest[0])
    if mode == "up" and not rest:
        itself(PROGRAM, "up")
    if mode == "git" and rest == ["pre-commit"]:
        itself("coordinator.git_guard", *rest)


def socket_near(project: str) -> "str | None":
    """The socket of the coordinator around the project, which becomes the working directory;
    otherwise of the one around the working directory. None if coord is not used there."""
    here = system.getcwd()
    for place in (project, here) if project else (here,):
        try:
            system.chdir(place)
            text: str | None = _hook_seldom.find()
        except OSError:
            continue  # it was removed meanwhile
        if text is not None:
            return text
    return None


def itself(module: str, *words: str) -> "typing.NoReturn":
    """The program takes this process over."""
    program = [sys.executable, "-P", "-m", module, *words]
    system.execv(program[0], program)


def run() -> None:
    """`coord-plugin …`; never returns."""
    code = 2
    try:
        code = main(sys.argv[1:])
    except OSError:
        pass  # the reader is gone; a write stays stopped
    system._exit(code)


if __name__ == "__main__":
    run()
