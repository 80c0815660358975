"""Sessions and sub-agents at work through their hooks, in any order, against a plain model of who
holds what and who knows what: a write passes exactly when nobody else holds the file and the agent
knows what is there, or has held it all along."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coordinator.store.events import NoticesDelivered
from coordinator.words import requests as rq
from tests.effort import examples
from tests.sessions import Session, holders
from tests.world import World

FILES = ["hot.py", "lib/a.py", "lib/b.py"]
WHO = [("ann", ""), ("bob", ""), ("ann", "s1"), ("ann", "s2")]
who, files, texts = st.sampled_from(WHO), st.sampled_from(FILES), st.sampled_from(["1\n", "2\n", "3\n"])
STALE = "Your environment changed while you were thinking"
LACKS = "still lacks what changed since you read it"


class Hooks(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name) / "repo")
        self.sessions = {one: Session(self.world, *one) for one in WHO}
        self.content: dict[str, str] = {}
        self.held: dict[str, tuple[tuple[str, str], int]] = {}  # file -> who, when
        self.knows: dict[tuple[tuple[str, str], str], tuple[str | None, int]] = {}  # content, when
        self.writer: dict[str, tuple[str | None, tuple[str, str]]] = {}  # the last writing by a hook
        self.lent: dict[str, tuple[str, str]] = {}  # file -> of whom its holder has it
        self.line: dict[str, list[tuple[str, str]]] = {file: [] for file in FILES}
        self.granted: dict[tuple[str, str], set[str]] = {one: set() for one in WHO}  # and not yet told
        #: Who was refused what it has never read: it is told once what has become of it, if that is another than it began with.
        self.guesses: set[tuple[tuple[str, str], str]] = set()
        #: Who was told what has changed in a file, and has not read it since.
        self.shown: set[tuple[tuple[str, str], str]] = set()
        self.at = 0

    def teardown(self) -> None:
        if hasattr(self, "world"):
            assert self.world.replay_differs() == []
            self.world.close()
            self.folder.cleanup()

    def tick(self) -> None:
        self.world.clock.advance(1_000)
        self.at += 1

    def learns(self, one: tuple[str, str], file: str) -> None:
        before = self.knows.get((one, file))
        now = self.content.get(file)
        if before is None or before[0] != now:
            self.knows[one, file] = (now, self.at)

    def waits(self, one: tuple[str, str], file: str) -> None:
        if (one, file) not in self.knows:
            self.guesses.add((one, file))
        if one not in self.line[file]:
            self.line[file].append(one)

    def takes(self, one: tuple[str, str], file: str) -> None:
        self.lent.pop(file, None)
        self.held[file] = (one, self.at)
        if one in self.line[file]:
            self.line[file].remove(one)

    def lends(self, one: tuple[str, str], file: str) -> None:
        """It takes it, of its parent or its sub-agent if one of these held it."""
        holder = self.held.get(file, (None, 0))[0]
        came = self.lent.get(file)
        self.takes(one, file)
        if holder is not None and came != one:
            self.lent[file] = holder

    def has(self, one: tuple[str, str], file: str) -> None:
        """It holds the file: it did before, or it takes it."""
        holder = self.held.get(file, (None, 0))[0]
        if holder != one:
            self.lends(one, file)

    def told(self, one: tuple[str, str]) -> None:
        """With the message that a file it waited for is its own comes what changed in it."""
        came = self.sessions[one].came
        if any(isinstance(event, NoticesDelivered) for heeded in came for event in heeded.receipt):
            for file in self.granted[one]:
                if (one, file) in self.knows:
                    self.learns(one, file)
            self.granted[one].clear()
        came.clear()

    @rule(one=who, file=files)
    def reads(self, one: tuple[str, str], file: str) -> None:
        self.tick()
        self.sessions[one].read(file)
        self.learns(one, file)
        self.shown.discard((one, file))
        self.told(one)

    @rule(one=who, file=files, text=texts)
    def edits(self, one: tuple[str, str], file: str, text: str) -> None:
        self.tick()
        self._edits(one, file, text)
        self.told(one)

    def _edits(self, one: tuple[str, str], file: str, text: str) -> None:
        session = self.sessions[one]
        why = session.edit(file, text)
        holder, parent = self.held.get(file), (one[0], "")
        if holder is not None and holder[0] != one and not (one[1] and holder[0] == parent):
            assert f"leased by {self.sessions[holder[0]].name} " in why
            self.waits(one, file)
            return
        self.has(one, file)  # what its parent had is handed down: it holds it from now on
        known, now = self.knows.get((one, file)), self.content.get(file)
        own = self.writer.get(file) == (now, one)
        if LACKS in why and (one, file) in self.shown:
            return  # it was told what changed, has not read it, and its content does not carry it
        missed = known is not None and known[0] != now and not own and self.held[file][1] > known[1]
        if missed and not (why == "" and self._was_written_in_the_family(one, file)):
            assert STALE in why and file in why
            self.shown.add((one, file))
            if file in self.writer:
                assert (f"last by {self.sessions[self.writer[file][1]].name}:" in why) == (
                    self.writer[file][0] == now)
            self.learns(one, file)  # it was told
            return
        if known is None and STALE in why and (one, file) in self.guesses:
            self.learns(one, file)
            return
        if STALE in why and self._was_written_in_the_family(one, file):
            self.learns(one, file)  # that its own session knows it is taken for granted by the model alone
            return
        assert why == "", why
        self.content[file] = text
        self.learns(one, file)
        if self.writer.get(file) != (text, one):
            self.writer[file] = (text, one)

    def _was_written_in_the_family(self, one: tuple[str, str], file: str) -> bool:
        """Whether another of this session has written what is there."""
        text, writer = self.writer.get(file, (None, one))
        return writer != one and writer[0] == one[0] and text == self.content.get(file)

    @rule(file=files, text=texts)
    def a_person_saves(self, file: str, text: str) -> None:
        self.tick()
        self.world.write(file, text)
        self.content[file] = text

    @rule(one=who)
    def ends(self, one: tuple[str, str]) -> None:
        """A session that ends takes its sub-agents with it; a sub-agent ends alone."""
        self.tick()
        self.sessions[one].hook("SubagentStop" if one[1] else "SessionEnd")
        gone = [other for other in WHO if other == one or (not one[1] and other[0] == one[0])]
        for file in FILES:
            self.line[file] = [it for it in self.line[file] if it not in gone]
        for file in [file for file, it in self.held.items() if it[0] in gone]:
            parent = (one[0], "")
            if one[1] and self.lent.get(file) == parent:
                if parent in self.line[file]:
                    self.granted[parent].add(file)
                self.takes(parent, file)
                continue
            del self.held[file]
            if self.line[file]:  # whoever has waited longest is next, and will be told
                first = self.line[file][0]
                self.takes(first, file)
                self.granted[first].add(file)
        for one in gone:
            self.granted[one].clear()
            self.sessions[one].came.clear()
        self.knows = {key: it for key, it in self.knows.items() if key[0] not in gone}
        self.guesses = {key for key in self.guesses if key[0] not in gone}

    @rule(one=st.sampled_from([("ann", ""), ("bob", "")]))
    def rests(self, one: tuple[str, str]) -> None:
        """It keeps what it holds until its session ends (`hooks.keep`)."""
        self.tick()
        self.sessions[one].hook("Stop", stop_hook_active=True)
        self.told(one)

    @rule(one=st.sampled_from([("ann", "s1"), ("ann", "s2")]))
    def commits(self, one: tuple[str, str]) -> None:
        """It is the session's process that commits: what the sub-agent holds is the session's."""
        self.tick()
        assert not self.sessions[one].shell("git commit -qm x").deny
        parent = (one[0], "")
        for file in [file for file, it in self.held.items() if it[0] == one]:
            if parent in self.line[file]:
                self.granted[parent].add(file)
            self.lends(parent, file)
        self.told(one)

    @rule(one=who, file=files)
    def changes_by_a_plain_command(self, one: tuple[str, str], file: str) -> None:
        """`echo > FILE` is asked like an edit; what it did is its own writing."""
        self.tick()
        self._commands(one, file)
        self.told(one)

    def _commands(self, one: tuple[str, str], file: str) -> None:
        session = self.sessions[one]
        text = f"{session.name}\n"
        before = self.content.get(file)
        came = session.shell(f"echo {session.name} > {file}", {file: text})
        if came.deny:
            assert self.content.get(file) == before
            if STALE in came.deny:
                self.has(one, file)
                self.learns(one, file)
            else:
                assert self.held[file][0] != one
                self.waits(one, file)
            return
        holder = self.held.get(file)
        assert holder is None or holder[0] == one or (one[1] and holder[0] == (one[0], ""))
        self.has(one, file)
        self.content[file] = text
        for other, (by, _) in self.held.items():
            if by == one:
                self.learns(one, other)
                if self.writer.get(other) != (self.content.get(other), one):
                    self.writer[other] = (self.content.get(other), one)

    @invariant()
    def all_agree_on_who_holds_what(self) -> None:
        if hasattr(self, "world"):
            model = {file: self.sessions[one].name for file, (one, _) in self.held.items()}
            assert holders(self.world) == model
            told: Any = self.world.ask(rq.Locks())
            assert {lease.resource: lease.locked_by for lease in told.items} == model


Hooks.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=30)
TestHooks = Hooks.TestCase
