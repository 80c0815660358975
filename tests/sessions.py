"""Agents as their hooks show them, in a `World`: the dialect is heard and the service decides, with
no daemon and no process. What was decided is what a test looks at, not its words in a dialect."""

from __future__ import annotations

import msgspec

from coordinator.dialects.decode import HookCall, decode
from coordinator.dialects.encode import can_add
from coordinator.dialects.table import HookTable
from coordinator.kernel.core import OPERATOR, Actor, token_hash
from coordinator.profiles import load
from coordinator.slices.guard import seen_writes, shell_commands, tool_calls
from coordinator.slices.guard.tool_calls import Heeded
from coordinator.store.ledger import Tx
from tests.world import World


def table_of(world: World, profile: str) -> HookTable:
    table = load(profile, world.root).hooks
    assert table is not None
    return table


class Session:
    """One session of an agent's CLI, or a sub-agent of it.

    `prints`: whether its hooks print what they are told (else nothing of that is confirmed).
    `busy`: whether commands of others run.
    `came`: what its hook calls came to.
    """

    def __init__(self, world: World, session: str, sub: str = "", *, profile: str = "claude-code",
                 token: str | None = None) -> None:
        self.world, self.session, self.sub, self.profile = world, session, sub, profile
        self.token = token
        self.table = table_of(world, profile)
        self.prints, self.busy = True, False
        self.calls = 0
        self.came: list[Heeded] = []

    @property
    def name(self) -> str:
        return f"{self.profile}-{self.session}" + (f".{self.sub}" if self.sub else "")

    def heard(self, event: str, **more: object) -> HookCall:
        said = {"session_id": self.session, "cwd": str(self.world.root), "hook_event_name": event,
                "permission_mode": "bypassPermissions", **more}
        if self.sub:
            said |= {"agent_id": self.sub, "agent_type": "general-purpose"}
        return decode(self.table, msgspec.json.encode(said))

    def hook(self, event: str, *, wait_s: float = 0.0, window_wait_s: float = 0.0, broken: list[str] | None = None,
             on_the_way: tuple[str, ...] = (), goes_on: bool = False, **more: object) -> Heeded:
        heard = self.heard(event, **more)

        def job(tx: Tx) -> Heeded:
            actor = OPERATOR if self.token is None else Actor(tx.agent_of(token_hash(self.token)))
            heeded = tool_calls.serve(
                self.world.service, tx, actor, self.profile, heard, tool_calls.Surroundings(
                    can_add=can_add(self.table, heard), patience=tool_calls.Patience(wait_s, 0.0, window_wait_s),
                    broken=broken or [], on_the_way=on_the_way, goes_on=goes_on, is_busy=lambda agent: self.busy))
            if self.prints and not (heeded.waiting and wait_s):
                tool_calls.settle(tx, heeded)
            return heeded

        self.world.engine.now_ms = self.world.clock.now_ms()
        try:
            heeded = self.world.engine.decide(job, tool_calls.needs(heard))
        finally:
            self.world.raise_unsound()
        assert isinstance(heeded, Heeded)
        self.came.append(heeded)
        return heeded

    def call(self, tool: str, given: dict[str, object], event: str = "PreToolUse", **more: object) -> Heeded:
        if event == "PreToolUse":
            self.calls += 1
        return self.hook(event, tool_name=tool, tool_input=given, tool_use_id=f"{self.session}{self.calls}",
                         **more)  # type: ignore[arg-type]

    def edit(self, path: str, text: str) -> str:
        """Write a file; why not, if it was denied."""
        given: dict[str, object] = {"file_path": str(self.world.root / path), "content": text}
        self.before = self.call("Write", given)
        if self.before.deny:
            return self.before.deny
        self.world.write(path, text)
        self.after = self.call("Write", given, "PostToolUse", tool_response={})
        return ""

    def read(self, path: str) -> None:
        given: dict[str, object] = {"file_path": str(self.world.root / path)}
        self.call("Read", given)
        self.call("Read", given, "PostToolUse", tool_response={})

    def shell(self, command: str, does: dict[str, str] | None = None, output: str = "") -> Heeded:
        """A command that writes `does`; what came of its first hook, or of its last if it ran."""
        given: dict[str, object] = {"command": command, "description": "x"}
        self.before = self.call("Bash", given)
        if self.before.deny:
            return self.before
        for path, text in (does or {}).items():
            self.world.write(path, text)
        return self.call("Bash", given, "PostToolUse", tool_response={"stdout": output})

    def broke(self, *files: shell_commands.Broken) -> list[str]:
        """Its command was found to have changed these; what it is told of that."""
        said = self.world.decide(lambda tx: shell_commands.violation(self.world.service, tx, self.name, files))
        assert isinstance(said, list)
        return said


def saw(world: World, *changes: seen_writes.Seen) -> None:
    """What the watcher tells."""
    world.decide(lambda tx: seen_writes.seen(world.service, tx, changes))
    world.raise_unsound()


def holders(world: World) -> dict[str, str]:
    return {row.file_path: row.locked_by for row in world.live()}
