"""The second kind of request on the Unix socket: a hook's raw bytes, and the answer that it prints.

    hook PROFILE[+plugin][:EVENT] TOKEN|- LENGTH [confirm]\\n<LENGTH bytes>
        ->   EXITCODE OUTLEN ERRLEN\\n<out><err>   ->   told\\n

Exit code 3 means that other coordinators must be asked, too. Then `out` begins with their roots,
each followed by a NUL, and a newline; the rest is printed if none of them refuses. A hook that says
`confirm` sends `told` after it has printed the answer. Only then do messages count as delivered, so
a hook that is killed earlier loses none. The format is not JSON, because the hook runs before every
write of an agent and must not load a parser. This module reads frames; `agent_hooks` decides what
the bytes mean.
"""

from __future__ import annotations

import os
from typing import NamedTuple, Protocol

from coordinator.words.refusals import Code, Refusal

#: How the line of a hook begins. No line of JSON begins so.
BEGIN = b"hook "
#: In place of a profile: git asks whether others hold a file that it would take in. See
#: git_questions.py.
GIT = "=git"
#: In place of a profile: the words of a typed command. See command_lines.py.
COMMAND = "=cli"
#: What a hook sends once it has printed its answer.
TOLD = b"told"
#: The code of an answer that names other coordinators to ask.
ELSEWHERE = 3
#: The longest payload, in bytes. A hook's payload has the text that the agent would write.
PAYLOAD_BYTES_MAX = 8 * 1024 * 1024


class HookLine(NamedTuple):
    """The head of a hook's request."""

    profile: str
    token: str | None
    length: int
    confirms: bool = False


class Receipt(Protocol):
    """Learns the fate of an answer. Exactly one of the two is called."""

    def told(self) -> None:
        """The hook has printed the answer."""

    def lost(self) -> None:
        """The hook has gone without confirming."""


class Answer(NamedTuple):
    """What the hook prints, and how it exits."""

    code: int
    out: str = ""
    err: str = ""
    receipt: Receipt | None = None
    elsewhere: tuple[str, ...] = ()
    """Roots of other repositories that the call is about, too."""


def parse(line: bytes) -> HookLine:
    """Read the head of a hook's request from its line, without the newline.

    Raises:
        Refusal: INVALID: the line is malformed; LIMIT: the payload is too long.
    """
    parts = line.split(b" ")
    confirms = len(parts) == 5 and parts[4] == b"confirm"
    if not (len(parts) == 4 or confirms) or not parts[3].isdigit() or len(parts[3]) > 12:
        raise Refusal(
            Code.INVALID, "Not a hook's request: `hook PROFILE[:EVENT] TOKEN|- LENGTH` is one.",
            next="Start the hook as `coord init` wrote it: one profile, without spaces.",
        )
    length = int(parts[3])
    if length > PAYLOAD_BYTES_MAX:
        raise Refusal(
            Code.LIMIT, f"A hook's input of {length} bytes; the limit is {PAYLOAD_BYTES_MAX}. "
            "Nothing was leased.", next="Write the file in smaller pieces.",
        )
    try:
        profile, token = parts[1].decode("utf-8"), parts[2].decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(Code.INVALID, "A hook's profile that is not UTF-8.") from None
    return HookLine(profile, None if token == "-" else token, length, confirms)


def refused(refusal: Refusal) -> Answer:
    """The answer to a malformed line. Exit code 2 stops the agent's write."""
    return Answer(2, "", f"coord: {refusal.code.value}: {refusal.message} {refusal.next}\n")


def encode(answer: Answer) -> bytes:
    """The frame of an answer."""
    code, output = answer.code, answer.out.encode("utf-8", "backslashreplace")
    if answer.elsewhere and code == 0:
        named = b"".join(os.fsencode(root) + b"\0" for root in answer.elsewhere)
        code, output = ELSEWHERE, named + b"\n" + output
    err = answer.err.encode("utf-8", "backslashreplace")
    return b"%d %d %d\n%b%b" % (code, len(output), len(err), output, err)
