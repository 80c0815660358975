"""How each coding agent's model would speak: intents in, that agent's own tool calls out.

One `Tongue` per agent. It also knows which requests are the agent's own work (the others ask for
a title or a summary) and how a tool's failure reads where the protocol has no flag for it.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Sequence, Set

from tests.agents.conversation import (
    Answer,
    Call,
    Create,
    Edit,
    Intent,
    Json,
    Mcp,
    Read,
    Reply,
    Result,
    Say,
    Shell,
    Turn,
    Use,
)

DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # mini-swe-agent's own word for "I am finished"
GO_ON = "Go on with the next step."  # what the stand types where an agent wants a person


class Tongue:
    """The default: tools that take JSON. Agents differ in names and in a few shapes."""

    works_with: frozenset[str] = frozenset()  # a request for work offers these tools
    wrote = re.compile("")  # a write that went through reads so
    fails = re.compile(r"(?!)")  # any result that reads so is a failure
    mcp_name = "mcp__{server}__{tool}"
    has_shell = True
    tells_exit_codes = True  # some never tell their model how a command ended

    def is_work(self, turn: Turn) -> bool:
        return not turn.wants_json and self.works_with <= set(turn.tools)

    def has_begun(self, turn: Turn, said: Set[str]) -> bool:
        """Whether the model has spoken in this conversation. `said`: the texts of its replies."""
        return any(m.role == "assistant" for m in turn.messages)

    def speak(self, intents: Sequence[Intent], root: str) -> Reply:
        said = "\n\n".join(i.text for i in intents if isinstance(i, Say))
        calls = tuple(self.call(i, root) for i in intents if not isinstance(i, Say))
        return Reply(said, calls)

    def call(self, intent: Intent, root: str) -> Call:
        tool, args = self.tool(intent, root)
        return Call("call_" + uuid.uuid4().hex[:20], tool, args)

    def tool(self, intent: Intent, root: str) -> tuple[str, Json | str]:
        match intent:
            case Mcp(server, tool, args):
                return self.mcp_name.format(server=server, tool=tool), args
            case Use(tool, args):
                return tool, args
        raise AssertionError(f"{type(self).__name__} has no way to say {intent}")

    def at_once(self, intent: Intent, turn: Turn) -> Result | None:
        """The answer to an intent that this agent's model needs no tool for."""
        return None

    def worked(self, intent: Intent, answer: Answer) -> bool:
        """Whether a tool did what was asked, as far as the agent tells its model."""
        if answer.failed or self.fails.search(answer.text):
            return False
        return not isinstance(intent, Edit | Create) or bool(self.wrote.search(answer.text))

    def heard_instead(self, turn: Turn, extra: tuple[str, ...]) -> Result:
        """What came of a reply without calls."""
        return Result(True, "", extra)


class Claude(Tongue):
    works_with = frozenset({"Edit", "Bash"})

    def tool(self, intent: Intent, root: str) -> tuple[str, Json | str]:
        match intent:
            case Read(path):
                return "Read", {"file_path": f"{root}/{path}"}
            case Edit(path, old, new):
                return "Edit", {
                    "file_path": f"{root}/{path}", "old_string": old, "new_string": new}
            case Create(path, text):
                return "Write", {"file_path": f"{root}/{path}", "content": text}
            case Shell(command):
                return "Bash", {"command": command, "description": "As scripted"}
        return super().tool(intent, root)


class Codex(Tongue):
    works_with = frozenset({"apply_patch", "exec_command"})
    wrote = re.compile(r"^Success\. ", re.MULTILINE)
    fails = re.compile(
        r"^Command blocked|verification failed|^(?:execution|exec_command) (?:error|failed)"
        r"|(?:Exit code: |exited with code )(?!0\b)", re.MULTILINE)

    def tool(self, intent: Intent, root: str) -> tuple[str, Json | str]:
        match intent:
            case Read(path):
                return self._shell(f"cat {shlex.quote(path)}")
            case Edit(path, old, new):
                lines = [f"*** Update File: {path}", "@@", *_each("-", old), *_each("+", new)]
                return self._patch(lines)
            case Create(path, text):
                return self._patch([f"*** Add File: {path}", *_each("+", text)])
            case Shell(command):
                return self._shell(command)
        return super().tool(intent, root)

    def call(self, intent: Intent, root: str) -> Call:
        call = super().call(intent, root)
        if isinstance(intent, Mcp):
            return Call(call.id, intent.tool, call.args, f"mcp__{intent.server}")
        if isinstance(intent, Use):
            return Call(call.id, call.tool, call.args, intent.namespace)
        return call

    @staticmethod
    def _shell(command: str) -> tuple[str, Json | str]:
        return "exec_command", {"cmd": command, "yield_time_ms": 30_000}

    @staticmethod
    def _patch(lines: list[str]) -> tuple[str, Json | str]:
        return "apply_patch", "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def _each(mark: str, text: str) -> list[str]:
    return [mark + line for line in text.splitlines()]


class Gemini(Tongue):
    works_with = frozenset({"replace", "run_shell_command"})
    fails = re.compile(r"^(?:Exit Code: (?!0\b)|Error: (?!\(none\)))", re.MULTILINE)
    mcp_name = "mcp_{server}_{tool}"

    def tool(self, intent: Intent, root: str) -> tuple[str, Json | str]:
        match intent:
            case Read(path):
                return "read_file", {"file_path": f"{root}/{path}"}
            case Edit(path, old, new):
                return "replace", {
                    "file_path": f"{root}/{path}", "instruction": "As scripted.",
                    "old_string": old, "new_string": new}
            case Create(path, text):
                return "write_file", {"file_path": f"{root}/{path}", "content": text}
            case Shell(command):
                return "run_shell_command", {"command": command, "description": "As scripted"}
        return super().tool(intent, root)


class Qwen(Gemini):
    works_with = frozenset({"edit", "run_shell_command"})
    wrote = re.compile(r"^The file: .* has been updated|^Successfully ")
    mcp_name = "mcp__{server}__{tool}"

    def tool(self, intent: Intent, root: str) -> tuple[str, Json | str]:
        match intent:
            case Edit(path, old, new):
                return "edit", {
                    "file_path": f"{root}/{path}", "old_string": old, "new_string": new}
            case Shell(command):
                return "run_shell_command", {
                    "command": command, "description": "As scripted", "is_background": False}
        return super().tool(intent, root)


class OpenCode(Tongue):
    works_with = frozenset({"edit", "bash"})
    wrote = re.compile(r"^(?:Edit applied|Wrote file) successfully")
    tells_exit_codes = False
    mcp_name = "{server}_{tool}"

    def tool(self, intent: Intent, root: str) -> tuple[str, Json | str]:
        match intent:
            case Read(path):
                return "read", {"filePath": f"{root}/{path}"}
            case Edit(path, old, new):
                return "edit", {"filePath": f"{root}/{path}", "oldString": old, "newString": new}
            case Create(path, text):
                return "write", {"filePath": f"{root}/{path}", "content": text}
            case Shell(command):
                return "bash", {"command": command, "description": "As scripted"}
        return super().tool(intent, root)


class Copilot(Tongue):
    works_with = frozenset({"edit", "bash"})
    wrote = re.compile(r"^File .* updated with changes|^Created file ")
    fails = re.compile(r"^Denied by|with exit code (?!0\b)|^Failed ", re.MULTILINE)
    mcp_name = "{server}-{tool}"

    def tool(self, intent: Intent, root: str) -> tuple[str, Json | str]:
        match intent:
            case Read(path):
                return "view", {"path": f"{root}/{path}"}
            case Edit(path, old, new):
                return "edit", {"path": f"{root}/{path}", "old_str": old, "new_str": new}
            case Create(path, text):
                return "create", {"path": f"{root}/{path}", "file_text": text}
            case Shell(command):
                return "bash", {"command": command, "description": "As scripted"}
        return super().tool(intent, root)


class Pi(Tongue):
    works_with = frozenset({"edit", "bash"})
    wrote = re.compile(r"^Successfully ")
    fails = re.compile(r"^Command exited with code (?!0\b)", re.MULTILINE)

    def tool(self, intent: Intent, root: str) -> tuple[str, Json | str]:
        match intent:
            case Read(path):
                return "read", {"path": path}
            case Edit(path, old, new):
                return "edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}
            case Create(path, text):
                return "write", {"path": path, "content": text}
            case Shell(command):
                return "bash", {"command": command}
        return super().tool(intent, root)


class Mini(Tongue):
    """Everything is a shell command; even being finished is one."""

    works_with = frozenset({"bash"})

    def speak(self, intents: Sequence[Intent], root: str) -> Reply:
        reply = super().speak(intents, root)
        if reply.calls:
            return reply
        return Reply(reply.text, (self.call(Shell(f"echo {DONE}"), root),))

    def tool(self, intent: Intent, root: str) -> tuple[str, Json | str]:
        match intent:
            case Read(path):
                return "bash", {"command": f"cat {shlex.quote(path)}"}
            case Edit(path, old, new):
                program = (
                    "import sys; p, old, new = sys.argv[1:]; t = open(p).read(); "
                    "sys.exit('not found') if t.count(old) != 1 else "
                    "open(p, 'w').write(t.replace(old, new))")
                return "bash", {"command": shlex.join(["python3", "-c", program, path, old, new])}
            case Create(path, text):
                return "bash", {"command": f"printf %s {shlex.quote(text)} > {shlex.quote(path)}"}
            case Shell(command):
                return "bash", {"command": command}
        return super().tool(intent, root)

    def worked(self, intent: Intent, answer: Answer) -> bool:
        try:
            return bool(json.loads(answer.text)["returncode"] == 0)
        except (ValueError, KeyError, TypeError):
            return False


class Aider(Tongue):
    """No tools at all: edits are blocks in the text, files are in the conversation already."""

    has_shell = False  # it runs no command unless a person agrees to each

    def speak(self, intents: Sequence[Intent], root: str) -> Reply:
        return Reply("\n\n".join(self._block(i) for i in intents))

    @staticmethod
    def _block(intent: Intent) -> str:
        match intent:
            case Say(text):
                return text
            case Edit(path, old, new):
                search, replace = old, new
            case Create(path, text):
                search, replace = "", text
            case _:
                raise AssertionError(f"aider's model cannot do {intent}")
        marks = ("<<<<<<< SEARCH", *search.splitlines(), "=======", *replace.splitlines())
        return "\n".join((path, "```", *marks, ">>>>>>> REPLACE", "```"))

    def has_begun(self, turn: Turn, said: Set[str]) -> bool:
        """Its instructions come with examples of what a model would say."""
        spoken = {t for m in turn.messages if m.role == "assistant" for t in m.texts}
        return not spoken.isdisjoint(said)

    def at_once(self, intent: Intent, turn: Turn) -> Result | None:
        if not isinstance(intent, Read):
            return None
        shown = re.compile(rf"^{re.escape(intent.path)}\n```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
        found = [m.group(1) for text in turn.user_texts for m in shown.finditer(text)]
        return Result(bool(found), found[-1] if found else "not in the conversation")

    def heard_instead(self, turn: Turn, extra: tuple[str, ...]) -> Result:
        """Aider writes back only to complain; silence, then a person's word, means it went in."""
        last = turn.user_texts[-1]
        return Result(last.startswith(GO_ON), last, extra)


TONGUES: dict[str, Tongue] = {
    "claude": Claude(), "codex": Codex(), "gemini": Gemini(), "opencode": OpenCode(),
    "copilot": Copilot(), "qwen": Qwen(), "pi": Pi(), "aider": Aider(), "mini": Mini(),
}
