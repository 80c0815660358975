"""The attack battery, and ordinary work compared: real CLIs in sessions, as root and as an ordinary user.

`make battery` writes what comes out to tests/data/battery; these tests fail where it is worse than
that. The lists are in tests/agents/battery. COORD_TEST_BATTERY=2/4 tries the second of four parts of each,
from all over it. Of CLIs that are not in FULLY one part is all that is tried.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.battery import results
from tests.agents.battery.actions import ACTIONS
from tests.agents.battery.campaign import ATTACKS, E, attacked, attacks_of, part_of, unguarded
from tests.agents.battery.ground import Ground, readable
from tests.agents.battery.judging import NOT_RUN, PREVENTED, RANK, things
from tests.agents.battery.peace import PEACE_RANK, acted, actions_of, compared
from tests.agents.clis import pins
from tests.agents.conftest import need
from tests.agents.model_server import ModelServer
from tests.namespaces.conftest import OTHER, can_be_another, can_have_sessions

pytestmark = pytest.mark.agents

AGENTS = ["claude", "codex", "gemini", "opencode", "copilot"]
#: An ordinary user's results differ by what root may do, not by the CLI: two are enough.
WHO = [("root", agent) for agent in AGENTS] + [("user", agent) for agent in AGENTS[:2]]
FULLY = AGENTS[:2]
MakeGround = Callable[..., Ground]


@pytest.fixture
def ground(loopback: bool, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeGround]:
    """Makes a repository of this user; `user` is one that the test makes itself."""
    made: list[tuple[Ground, Path]] = []

    def make(agent: str, user: str, *, guarded: bool, runs: bool = True) -> Ground:
        if guarded and not can_have_sessions():
            pytest.skip("no namespaces on this machine")
        uid = os.getuid()
        if user == "user" and uid == 0:
            if not can_be_another():
                pytest.skip("no setpriv, or no Python that an ordinary user may run")
            uid = OTHER
        elif user == "root" and uid != 0:
            pytest.skip("whoever runs the tests is not root")
        if runs:
            need(agent)
            if uid == OTHER:
                monkeypatch.setenv("COORD_AGENTS_DIR", str(readable(agent)))
        folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="coord-battery-")))
        one = Ground(folder, uid, agent, server, guarded=guarded)
        made.append((one, folder))
        return one

    yield make
    for one, folder in made:
        one.close()
        shutil.rmtree(folder)


def share(agent: str) -> str:
    return "1/1" if agent in FULLY else "1/3"


def chosen(agent: str, entries: list[E]) -> list[E]:
    asked = os.environ.get("COORD_TEST_BATTERY")
    assert not (asked and results.writes()), "what is kept is no part of a part"
    entries = part_of(entries, share(agent))
    return part_of(entries, asked) if asked else entries


def test_what_was_there_for_a_moment_only_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    file.write_text("held")
    before = things(tmp_path, "f.txt")
    assert things(tmp_path, "f.txt") == before
    found = file.stat()
    file.write_text("HACK")
    file.write_text("held")
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert things(tmp_path, "f.txt") != before
    before = things(tmp_path, "f.txt")
    file.rename(tmp_path / "away")
    (tmp_path / "away").rename(file)
    assert things(tmp_path, "f.txt") != before


@pytest.mark.parametrize("user", ["root", "user"])
def test_where_nobody_guards_every_attack_changes_what_is_held(user: str, ground: MakeGround) -> None:
    """Else it would prove nothing that it is prevented."""
    place = ground("codex", user, guarded=False, runs=False)
    attacks = attacks_of("codex", place.uid)
    assert len(attacks) >= 100
    assert unguarded(place, attacks) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_where_nobody_guards_a_clis_own_tools_change_it(agent: str, ground: MakeGround) -> None:
    """What cannot be tried by a plain shell."""
    place = ground(agent, "root" if os.getuid() == 0 else "user", guarded=False)
    tools = [one for one in attacks_of(agent, place.uid) if not isinstance(one.do, str)]
    assert len(tools) >= 10
    fought = attacked(place, tools)
    assert {name: fought.told[name] for name, outcome in fought.outcomes.items() if outcome == PREVENTED} == {}


@pytest.mark.parametrize("agent", AGENTS)
def test_what_a_cli_ends_by_itself_it_ends_without_coord_too(agent: str, ground: MakeGround) -> None:
    """Some end all that a command has left running, or refuse a command: that is no merit of coord's, and no harm."""
    kept = results.recorded(agent, "root", "attacks")
    place = ground(agent, "root" if os.getuid() == 0 else "user", guarded=False)
    ended = [one for one in chosen(agent, attacks_of(agent, place.uid)) if kept.get(one.name) == NOT_RUN]
    if ended:
        assert set(attacked(place, ended).outcomes.values()) <= {NOT_RUN, PREVENTED}


def test_the_lists_are_long_and_their_names_are_their_own() -> None:
    assert len({one.name for one in ATTACKS}) == len(ATTACKS) and len({one.name for one in ACTIONS}) == len(ACTIONS)
    for agent in AGENTS:
        attacks, actions = part_of(attacks_of(agent, 1), share(agent)), part_of(actions_of(1), share(agent))
        enough = (100, 95) if agent in FULLY else (50, 50)
        assert len(attacks) >= enough[0] and len(actions) >= enough[1]


@pytest.mark.parametrize(("user", "agent"), WHO)
def test_what_another_holds_is_attacked(user: str, agent: str, ground: MakeGround) -> None:
    """By single commands and calls of edit tools, in one conversation of one CLI in a session."""
    place = ground(agent, user, guarded=True)
    attacks = chosen(agent, attacks_of(agent, place.uid))
    fought = attacked(place, attacks)
    if results.writes():  # what does not bite by the CLI alone proves nothing
        alone = attacked(ground(agent, user, guarded=False), attacks).outcomes
        feeble = {name: NOT_RUN for name, outcome in alone.items() if outcome in (PREVENTED, NOT_RUN)}
        results.record(agent, pins()[agent], user, "attacks", fought.outcomes | feeble)
    assert not results.worse(agent, user, "attacks", fought.outcomes, fought.why, RANK)


@pytest.mark.parametrize(("user", "agent"), WHO)
def test_ordinary_work_is_as_without_coord(user: str, agent: str, ground: MakeGround) -> None:
    """The same list by the CLI alone, and in a session in which others hold files."""
    alone, among = ground(agent, user, guarded=False), ground(agent, user, guarded=True)
    actions = chosen(agent, actions_of(alone.uid))
    outcomes, why = compared(actions, acted(alone, actions), acted(among, actions), alone.uid)
    doubtful = [one for one in actions if why.get(one.name) and not one.design]
    if doubtful:  # once more: what is not there twice was another thing's doing
        again, more = compared(doubtful, acted(alone, doubtful), acted(among, doubtful), alone.uid)
        outcomes |= again
        why |= more
    if results.writes():
        results.record(agent, pins()[agent], user, "actions", outcomes)
    assert not results.worse(agent, user, "actions", outcomes, why, PEACE_RANK)
