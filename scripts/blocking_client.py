"""Make the blocking Python client from the asynchronous one, which is what people write.

    python -P scripts/blocking_client.py            # fails where a made file is stale
    python -P scripts/blocking_client.py --write    # writes them again

The rule: `async` and `await` go, and a name loses its `async_` or `Async`. So a module that is
written for each side by itself (a transport, what runs beside a body) has the same names on both:
`async_transport` for the asynchronous client, `transport` for the blocking one. Works on tokens of
the text, so that comments, layout and docstrings stay as they were written; imports nothing of the
program, so that it also repairs a client that cannot be imported.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "coordinator" / "client"
#: What is written -> what is made of it. A folder stands for its modules.
MADE = {
    "async_client.py": "client.py", "async_connection.py": "connection.py",
    "async_held.py": "held.py", "asynchronous": "blocking",
}
#: Names for which the rule is not enough.
NAMES = {
    "asynchronous": "blocking", "async_grants": "concurrency",
    "__aenter__": "__enter__", "__aexit__": "__exit__",
    "asynccontextmanager": "contextmanager", "aclosing": "closing",
    "AbstractAsyncContextManager": "AbstractContextManager", "aclose": "close",
    "confirm": "check",
}
#: What a comment or a docstring says of one side only -> what it says of the other.
PHRASES = {
    "For one event loop.": "Not for several threads at once.",
    "The Python client for asyncio:": "The Python client:",
    "# renewed meanwhile;": "# renewed in the background;",
    """
    For one event loop, and without threads: a body that blocks the loop for longer than its lease
    lasts keeps its renewal from being sent, and `check` then says so.
""": "",
}
NOTE = "# Made by scripts/blocking_client.py from {}; do not edit."
NAME = re.compile(r"\b_?(?:async_|Async(?=[A-Z]))\w+|\b(?:" + "|".join(NAMES) + r")\b")
#: Words of code within a text, with the space behind them.
KEYWORD = re.compile(r"\basync (?=def|for|with)|\bawait (?=\w+[.(])")
#: The first line of a file that is made itself, from something else.
MADE_LINE = re.compile(r"\A# Made by .*\n")


def rename(name: str) -> str:
    """The name that the blocking client has for this one."""
    return NAMES.get(name) or re.sub(r"\A(_?)(?:async_|Async(?=[A-Z]))", r"\1", name)


def rewrite_text(text: str) -> str:
    """A comment or a string, as the blocking client has it."""
    for phrase, other in PHRASES.items():
        text = text.replace(phrase, other)
    return NAME.sub(lambda match: rename(match[0]), KEYWORD.sub("", text))


def list_edits(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[tuple[int, int],
                                                                   tuple[int, int], str]]:
    """What is replaced: from where, to where (line and column), and by which text."""
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == tokenize.NAME and token.string in ("async", "await"):
            yield token.start, following.start, ""
        elif token.type == tokenize.NAME:
            yield token.start, token.end, rename(token.string)
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            yield token.start, token.end, rewrite_text(token.string)


def make_blocking(source: str) -> str:
    """The same module for the blocking client."""
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for (row, column), (last_row, last_column), text in reversed(list(list_edits(tokens))):
        before, after = lines[row - 1][:column], lines[last_row - 1][last_column:]
        lines[row - 1:last_row] = [before + text + after]
    return "".join(lines)


def list_made() -> dict[Path, str]:
    """Each file that is made, and its text."""
    made = {}
    for source, target in MADE.items():
        place = CLIENT / source
        for path in sorted(place.glob("*.py")) if place.is_dir() else [place]:
            text = MADE_LINE.sub("", path.read_text("utf-8"))
            goal = CLIENT / target / path.name if place.is_dir() else CLIENT / target
            note = NOTE.format(path.relative_to(CLIENT.parent.parent).as_posix())
            made[goal] = f"{note}\n{make_blocking(text)}"
    return made


def main(arguments: list[str]) -> int:
    """Exit code: 1 when a file is stale (and was not to be written)."""
    stale = {path: text for path, text in list_made().items()
             if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        name = path.relative_to(CLIENT.parent.parent)
        if "--write" in arguments:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"written: {name}")
        else:
            print(f"stale: {name}; `make client` writes it again", file=sys.stderr)
    return 1 if stale and "--write" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
