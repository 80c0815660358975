"""Real agents that a person starts in a folder of the repository, not at its root."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.wiring import session_wiring
from coordinator.words import requests as rq
from tests.agents.clis import Extra
from tests.agents.conftest import need
from tests.agents.conversation import Edit, Read, Result, Say, Script, Scripted
from tests.agents.stand import Ran, Stand
from tests.agents.wired import PROFILES, Wired

pytestmark = pytest.mark.agents

AGENTS = ["claude", "codex", "gemini", "opencode", "copilot"]


#: Gemini takes no settings but the folder's own and the user's from where others than root can write.
IN_A_SESSION = [agent for agent in AGENTS if agent != "gemini"]
TYPED = {"claude": "the repository's hooks", "codex": "the repository's hooks", "opencode": "the repository's hooks",
         "gemini": "the user's hooks", "copilot": "the user's hooks"}


def wire_the_user(wired: Wired, agent: str) -> Extra:
    """The user's own settings with coord's hooks, which find the repository from any folder."""
    home = wired.root.parent / "person"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        wired.coord("init", "--agent", PROFILES[agent], "--user", "--yes", "--no-guard")
    return Extra(home_files={str(file.relative_to(home)): file.read_text() for file in home.rglob("*.json")})


def guards(agent: str, wired: Wired, run: Callable[..., Ran], **how: Any) -> Ran:
    """A session in `lib`: an edit of what ann holds is refused in words, its own edit is leased."""
    (wired.root / "lib/held.txt").write_text("first line\nsecond line\n")
    (wired.root / "lib/free.txt").write_text("first line\nsecond line\n")
    heard: dict[str, Result] = {}
    leased: list[tuple[str, str]] = []
    with wired.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["lib/held.txt"], description="reordering them"))

        def script(_: Scripted) -> Script:
            yield Read("held.txt")
            heard["held"] = yield Edit("held.txt", "second line", "HACK")
            yield Read("free.txt")
            heard["free"] = yield Edit("free.txt", "second line", "mine")
            leased.extend((one.resource, one.locked_by) for one in client.call(rq.Locks()).items)
            yield Say("done")

        ran = run(agent, script, at="lib", **how)
        assert ran.code == 0, ran.tail()
        assert wired.read("lib/held.txt") == "first line\nsecond line\n", ran.tail()
        assert wired.read("lib/free.txt") == "first line\nmine\n", ran.tail()
        said = heard["held"].text
        assert "ann" in said and "reordering them" in said, said + ran.tail()
        (mine,) = [holder for resource, holder in leased if resource == "lib/free.txt"]
        assert mine.startswith(PROFILES[agent])
        (known,) = [one for one in client.call(rq.Agents(all=True)).items if one.agent == mine]
        assert known.hooked_at
        assert [one.resource for one in client.call(rq.Locks()).items] == ["lib/held.txt"]
    return ran


@pytest.mark.parametrize("agent", IN_A_SESSION)
def test_a_session_that_is_started_in_a_folder_is_guarded(agent: str, wired: Wired) -> None:
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    guards(agent, wired, wired.run_in_session)
    assert not (wired.root / "lib" / ".github").exists()


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_is_typed_in_a_folder_is_guarded(agent: str, wired: Wired) -> None:
    need(agent)
    if TYPED[agent] == "the user's hooks":
        guards(agent, wired, wired.run, more=wire_the_user(wired, agent))
    else:
        wired.coord("init", "--agent", PROFILES[agent], "--yes")
        guards(agent, wired, wired.run)


def test_a_session_of_gemini_in_a_folder_is_guarded_by_the_users_hooks(wired: Wired) -> None:
    need("gemini")
    wired.coord("init", "--agent", "gemini", "--yes")
    guards("gemini", wired, wired.run_in_session, more=wire_the_user(wired, "gemini"))


def test_a_session_of_gemini_in_a_folder_has_hooks_where_only_root_can_write(stand: Stand) -> None:
    need("gemini")
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    if os.geteuid() != 0 or not session_wiring._is_roots(home):
        pytest.skip("needs to be root, with a home that nobody else can write to")
    with tempfile.TemporaryDirectory(dir=home, prefix=".coord-test-") as name:
        root = Path(name).resolve()
        (root / "lib").mkdir()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        wired = Wired(root, stand)
        wired.coord("init", "--agent", "gemini", "--yes")
        try:
            ran = guards("gemini", wired, wired.run_in_session)
            assert "Security Warning" not in ran.err
        finally:
            wired.coord("down")


def test_a_session_of_gemini_that_cannot_have_hooks_says_so(wired: Wired) -> None:
    need("gemini")
    wired.coord("init", "--agent", "gemini", "--yes")
    wired.root.chmod(0o777)

    def script(_: Scripted) -> Script:
        yield Say("done")

    ran = wired.run_in_session("gemini", script, at="lib")
    assert "this session has no hooks" in ran.err and "coord init --agent gemini --user" in ran.err
    assert "coord init --agent gemini --user" in wired.coord("init", "--agent", "gemini", "--yes")
