"""Attribution: whose write it was. No other module decides that.

The hooks of agents tell when their calls begin and end, and `daemon/running_calls.py` remembers
that. The rules here look at the calls that ran when a file was written. Where several agents may
have written it, the words of their commands decide. Where these do not decide either, the write is
nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from coordinator.kernel.core import owner
from coordinator.rules.commands import may_mean
from coordinator.store.ledger import View
from coordinator.store.rows import AgentRow
from coordinator.words.resource_names import path_scope

if TYPE_CHECKING:
    from coordinator.slices.guard.seen_writes import Seen


class Running(NamedTuple):
    """A call of an agent that ran when a file was written.

    Attributes:
        words: the words of its command, which may name files.
        files: the resources that an edit names.
        confined: its command runs where it cannot write what others hold.
    """

    holder: str
    is_command: bool
    words: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    confined: bool = False

    def may_have_written(self, path: str, fold_case: bool) -> bool:
        """Whether this call can have written that file: an edit writes only what it names."""
        return self.is_command or not self.files or path_scope(path, fold_case) in {
            path_scope(file, fold_case) for file in self.files}

    def names(self, path: str) -> bool:
        """Whether a word of its command may name that file."""
        return any(may_mean(word, path) for word in self.words)


def find_writer(view: View, change: Seen, *, but: str = "") -> str | None:
    """The agent whose command wrote this file, where only one can have. `but`: never this agent."""
    left_out = owner(view, but)
    commands = [call for call in change.calls
                if call.is_command and owner(view, call.holder) != left_out]
    owners = {owner(view, command.holder) for command in commands}
    if len(owners) > 1:
        commands = [command for command in commands if command.names(change.path)]
        owners = {owner(view, command.holder) for command in commands}
    if len(owners) != 1:
        return None
    holders = {command.holder for command in commands}
    holder = (holders if len(holders) == 1 else owners).pop()
    row = view.agent(holder)
    return holder if row is not None and row.state != "gone" else None


def find_late_writer(view: View, change: Seen, holder: str) -> str | None:
    """The agent whose command left a process running that wrote this file. No command ran at the
    write, only one agent's command ended a moment before, and the holder had none."""
    if any(call.is_command for call in change.calls) or any(
            owner(view, call.holder) == owner(view, holder) for call in change.lately):
        return None
    return find_writer(view, replace(change, calls=change.lately))


def list_other_writers(view: View, path: str, command: Running, holder: str,
                       calls: Iterable[Running]) -> list[str]:
    """The agents beside `command`'s whose commands may have written a file that `holder` holds;
    none where this command alone names the file. `calls`: what ran when the file was written."""
    own_agents = {owner(view, command.holder), owner(view, holder)}
    others = [call for call in calls if call.is_command and not call.confined
              and owner(view, call.holder) not in own_agents]
    naming = [call for call in others if call.names(path)]
    if naming or command.names(path):
        others = naming
    return sorted({owner(view, call.holder) for call in others})


def has_hooks(view: View, holder: str) -> bool:
    """Whether hooks tell what this agent does."""
    row = view.first(AgentRow, "agent_get", owner(view, holder))
    return row is not None and row.hooked_at is not None


def is_foreign(view: View, change: Seen, holder: str, fold_case: bool) -> bool:
    """Whether the holder of a file certainly did not write it. A holder without hooks is taken for
    the writer of what it holds, and of nothing else."""
    if not has_hooks(view, holder):
        return False
    return not any(call.may_have_written(change.path, fold_case)
                   and owner(view, call.holder) == owner(view, holder) for call in change.calls)
