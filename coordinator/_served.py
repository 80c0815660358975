"""What the quick `coord` and the coordinator agree on, and what both say about Ctrl-C.

`_command.py` imports this module, so it imports only modules that are built into the interpreter.
"""

try:
    import posix as system
except ImportError:  # not Linux (mypy takes one name for one module only)
    import os as system  # type: ignore[no-redef]

#: The exit code of an answer that says: do it yourself.
NOT_SERVED = 250
#: The exit code of an answer that says: I am ending; ask the next one, under the same key.
ENDING = 251


def make_stamp(path: str) -> str:
    """The identity of this program: its installed file."""
    status = system.stat(path)
    return "%d %d %d" % (status.st_dev, status.st_ino, status.st_mtime_ns)


def tell_interrupted(words: "list[str]") -> str:
    """The message after Ctrl-C. Ending the wait does not leave the queue."""
    waits = "--wait" in words or any(word.startswith("--wait=") for word in words)
    if words[:1] != ["lock"] or not waits or "--no-retry" in words:
        return "coord: interrupted"
    return ("coord: interrupted; an agent that is there stands in line still.\n  next: "
            "`coord locks --waiting` tells its place; `coord request withdraw PLACE --agent NAME` "
            "leaves it.")
