"""Real agents that know nothing of regions edit one file, each its own function, in turns."""

from __future__ import annotations

import pytest

from coordinator.words import requests as rq
from tests.agents.conftest import need
from tests.agents.conversation import Edit, Read, Result, Say, Script, Scripted, Writer
from tests.agents.wired import PROFILES, Wired
from tests.waiting import until

pytestmark = pytest.mark.agents
TURNS = 3


def text_of(turns: dict[str, int]) -> str:
    return "import os\n\n\n" + "\n\n".join(f"def {name}():\n    value = '{name} {turn}'\n    return value\n" for name, turn in turns.items())


@pytest.mark.parametrize("pair", [("claude", "codex"), ("claude", "claude"), ("gemini", "opencode"), ("copilot", "codex")], ids="-".join)
def test_two_agents_edit_two_functions_of_one_file_in_turns(pair: tuple[str, str], wired: Wired) -> None:
    """After each edit the other's view of the file is old. What a CLI insists on (to read it again) costs one reading."""
    names = ("left", "right")
    for agent in set(pair):
        need(agent)
        wired.coord("init", "--agent", PROFILES[agent], "--yes")
    (wired.root / "a.py").write_text(text_of(dict.fromkeys(names, 0)))
    done = dict.fromkeys(names, 0)
    heard: list[tuple[str, Result]] = []

    def works(me: str, other: str) -> Writer:
        def script(_: Scripted) -> Script:
            yield Read("a.py")
            for turn in range(TURNS):
                until(lambda turn=turn: done[other] >= (turn if me == "left" else turn + 1), 90)  # type: ignore[misc]
                for _ in range(2):
                    said = yield Edit("a.py", f"    value = '{me} {turn}'", f"    value = '{me} {turn + 1}'")
                    heard.append((me, said))
                    if f"'{me} {turn + 1}'" in wired.read("a.py"):
                        break
                    heard.append((me, (yield Read("a.py"))))
                done[me] = turn + 1
            yield Say("done")

        return script

    with wired.client() as client:
        one = wired.stand.start(pair[0], wired.root, works(*names), extra=wired.extra(pair[0]))
        two = wired.run(pair[1], works(*names[::-1]))
        ran = one.wait()
        assert (ran.code, two.code) == (0, 0), ran.tail() + two.tail()
        assert wired.read("a.py") == text_of(dict.fromkeys(names, TURNS)), [(me, one.text) for me, one in heard]
        assert client.call(rq.Reviews()).items == []
        assert client.call(rq.Events(kind="acquisition_refused")).items == []
        granted = {event.data["resource"] for event in client.call(rq.Events(kind="lease_granted", limit=1000)).items}
        assert granted == {"a.py::left", "a.py::right", "edit:a.py"}
