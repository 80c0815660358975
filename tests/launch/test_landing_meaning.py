"""A landing that git merges cleanly, and that does not fit with what landed meanwhile, is refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.launch.branch_landing import Lander
from coordinator.launch.merge_meaning import MergeMeaning
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.launch.test_lander import Ground, git

PAY = "def charge(account):\n    return 1\n"
MORE = "def charge(account, amount):\n    return 1\n"
USES = "from pay import charge\n\n\ndef a():\n    return charge(1)\n"


@pytest.fixture(params=["", "sub"])
def ground(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ground]:
    made = Ground(tmp_path, request.param)
    made.by_hand({"pay.py": PAY, "a.py": USES})
    meaning = MergeMeaning(made.root, made.world.state_dir.meaning)
    made.lander = Lander(made.world.state_dir, made.target, made.world.ask, meaning=meaning)
    yield made
    meaning.close()
    made.world.close()


def test_the_agent_changed_what_a_person_began_to_use(ground: Ground) -> None:
    work = ground.agent(["pay.py", "a.py"], {"pay.py": MORE, "a.py": USES.replace("charge(1)", "charge(1, 2)")})
    ground.by_hand({"b.py": "import pay\n\n\ndef b():\n    return pay.charge(2)\n"})
    before = ground.trunk
    with pytest.raises(Refusal) as refused:
        ground.lander.land(work, ground.finish)
    said = refused.value.message
    assert refused.value.code is Code.VERSION_CHANGED and "does not fit with what landed on trunk after the branch began" in said
    assert "b() in b.py calls pay.charge() with one argument; it needs 'amount' now" in said and "Nothing of it landed" in said
    assert ground.trunk == before and ground.finished == []


def test_a_person_changed_what_the_agent_began_to_use(ground: Ground) -> None:
    work = ground.agent(["b.py"], {"b.py": "import pay\n\n\ndef b():\n    return pay.charge(2)\n"})
    ground.by_hand({"pay.py": MORE, "a.py": USES.replace("charge(1)", "charge(1, 2)")})
    with pytest.raises(Refusal) as refused:
        ground.lander.land(work, ground.finish)
    assert "b() in b.py calls pay.charge() with one argument" in refused.value.message


def test_what_fits_lands_and_the_index_follows(ground: Ground) -> None:
    """What the index was told once is brought up to date by what the target changed since."""
    work = ground.agent(["b.py"], {"b.py": "import pay\n\n\ndef b():\n    return pay.charge(2)\n"})
    ground.by_hand({"c.py": "import pay\n\n\ndef c():\n    return pay.charge(3)\n"})
    ground.lander.land(work, ground.finish)
    assert ground.finished == [ground.trunk] and "b.py" in ground.there()
    ground.by_hand({"api.py": "from pay import charge\n"})
    git(ground.top, "worktree", "remove", "--force", str(ground.place))
    git(ground.top, "branch", "-D", "work")
    ground.world.ask(rq.TaskDone(agent="me", task=work.task))
    again = ground.agent(["pay.py", "a.py"], {"pay.py": MORE, "a.py": USES.replace("charge(1)", "charge(1, 2)")})
    ground.by_hand({"e.py": "import api\n\n\ndef e():\n    return api.charge(2)\n"})
    with pytest.raises(Refusal) as refused:
        ground.lander.land(again, ground.finish)
    assert "e() in e.py calls api.charge() with one argument" in refused.value.message


def test_where_only_one_side_changed_code_nothing_is_asked(ground: Ground) -> None:
    work = ground.agent(["pay.py"], {"pay.py": MORE})
    ground.by_hand({"x": "by hand\n"})
    ground.lander.land(work, ground.finish)
    assert ground.lander._meaning is not None and ground.lander._meaning._meaning is None
    assert ground.finished == [ground.trunk]


def test_where_nobody_knows_it_lands_as_without_the_question(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "in the way").write_text("x")
    blind = MergeMeaning(ground.root, tmp_path / "in the way" / "index")
    ground.lander = Lander(ground.world.state_dir, ground.target, ground.world.ask, meaning=blind)
    work = ground.agent(["b.py"], {"b.py": "import pay\n\n\ndef b():\n    return pay.charge(2)\n"})
    ground.by_hand({"pay.py": MORE})
    ground.lander.land(work, ground.finish)
    assert ground.finished == [ground.trunk]
    blind.close()
