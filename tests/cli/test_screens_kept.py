"""Each reading command as it looks with ordinary data: at 60, 80 and 120 columns, and in a pipe.

The pictures are kept whole (tests/data/golden/screens/); what must hold at any width, and with any data, is a property
below. The commands are carried out as the daemon carries them out, over the real service, at a time that stands still.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from coordinator.commands.listing import parse_served
from coordinator.commands.lists import columns
from coordinator.commands.shell import Shell
from coordinator.commands.signatures import COMMANDS
from coordinator.slices.story import dashboard
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.golden import assert_golden
from tests.world import World

JAVA = "src/main/java/org/springframework/boot/autoconfigure/jdbc/DataSourceProperties.java"
LONG = "Rework the connection pool so that idle HTTP/2 connections are closed after keepalive_expiry, add tests"
SUB = "claude-code-1f3a9c2b.general-purpose-77"
WIDTHS = (60, 80, 120, None)
#: Commands that only read, as they are typed.
READING = [
    "locks", "locks --waiting", "task list", "task list --state ready", "task list --order priority", "task list --filter MAIN", "task show T-1", "request list", "request list --state all", "signal list",
    "messages", "dead list", "dead show T-5", "review list", "review list --state all", "review show R-1", "events -n 12", "status --events 5", "archive search pool",
    "archive show 1", "explain T-1", f"explain {JAVA}", "agents", "agents --all", "lost-writes", "state list", "state get key:account:12345", "state history key:account:12345",
    "state changes --state all",
]
#: Commands that have something to print in the other forms.
LISTS = [line for line in READING if "--quiet" in COMMANDS[parse_served(shlex.split(line)).name].options]  # type: ignore[union-attr]
SHORT = [line for line in READING if "--short" in COMMANDS[parse_served(shlex.split(line)).name].options]  # type: ignore[union-attr]


def carried_out(world: World, line: str, width: int | None, agent: str | None = None) -> tuple[int, str]:
    """The exit code, and all that is printed."""
    typed = parse_served(shlex.split(line))
    assert typed is not None, line
    shell = Shell(cwd=str(world.root), now_ms=world.clock.now_ms(), agent=agent, user="kim", width=width)
    asking, code, reply = COMMANDS[typed.name].function(shell, **typed.values), 0, None
    try:
        request = next(asking)
        while True:
            try:
                if isinstance(request, rq.AgentOfProcess):  # (the daemon's own question)
                    raise Refusal(Code.UNKNOWN_AGENT, "It is in no agent's session.")
                reply = _still(world.ask(request))
            except Refusal as refusal:
                request = asking.throw(refusal)
            else:
                request = asking.send(reply)
    except StopIteration:
        pass
    except Refusal as refusal:
        code = shell.refused(refusal, bool(typed.values.get("as_json")))
    return code, "".join(text for _, text in shell.taken())


def _still(reply: Any) -> Any:
    """Without what is of this machine and this run."""
    if isinstance(reply, rq.StatusReply):
        reply.root, reply.health = "/srv/spring boot", {
            "version": "1.0", "pid": 4711, "started_at": reply.at, "resident_bytes": 48_000_000, "watcher": {"mode": "inotify"}}
    return reply


@pytest.fixture
def busy(world: World) -> World:
    """An ordinary afternoon: long titles, long paths, sub-agents, wide characters, work that waits for a verdict."""
    for path in (JAVA, "httpx/_pool.py", "docs/日本語/設計書.md", "ü x.py", "left.py"):
        world.write(path, "one\ntwo\nthree\n")
    world.write("context_archive/a.md", "# House\n\n## 1. Connection pool\n\nHow the pool closes what is idle.\n")
    world.ask(rq.Register(agent="claude-code-1f3a9c2b"))
    world.ask(rq.Register(agent=SUB, parent="claude-code-1f3a9c2b"))
    world.task(LONG, "httpx/", priority=2)
    world.task("日本語のとても長い題名です。" * 6, "docs/日本語/設計書.md")
    world.task("Use it", "main.py", after=["T-1"])
    world.task("Small")
    world.task("Never works", "w.py", attempts_max=1)
    world.ask(rq.TaskClaim(agent="eve", task="T-5"))
    world.ask(rq.TaskFail(agent="eve", task="T-5", reason="the build is red: " + "error " * 30))
    world.acquire("tom", "left.py", ttl_s=60, description="half of it")
    world.write("left.py", "one\n2\nthree\n")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    world.ask(rq.TaskClaim(agent=SUB, task="T-1"))
    world.acquire("claude-code-1f3a9c2b", JAVA, description="Refactor the data source configuration " * 3)
    world.acquire("bob", "docs/日本語/設計書.md", "ü x.py", mode="shared")
    world.refused(rq.Acquire(agent="bob", resources=[JAVA], retry=True, description="needs the new name"))
    world.ask(rq.RequestFile(agent="eve", resource=JAVA, reason="I only add a getter, it takes a minute. " * 4))
    world.ask(rq.SignalAdd(agent="bob", subject=JAVA, name="warning", note="the format changes " * 8))
    world.ask(rq.MessageSend(agent="bob", to="human", text="Which of the two names do you want?\nBoth are in use. " * 3))
    world.ask(rq.StatePut(agent="bob", key="key:account:12345", version=0, value=msgspec.Raw(b'{"balance": 130, "owner": "ann"}')))
    world.ask(rq.StatePut(agent="bob", key="key:account:12345", version=1, value=msgspec.Raw(b'{"balance": 131, "owner": "ann"}')))
    world.ask(rq.ChangeAdd(agent="bob", key="key:account:12345", wanted=msgspec.Raw(b'{"add": 5}'), note="the invoice of May"))
    world.ask(rq.ArchiveIndexNow())
    world.clock.advance(90_000)
    return world


@pytest.mark.parametrize("line", READING)
def test_the_screens_are_those_that_are_kept(busy: World, line: str) -> None:
    shown = []
    for width in WIDTHS:
        code, text = carried_out(busy, line, width)
        assert code == 0, text
        shown.append(f"$ coord {line}    ({f'{width} columns' if width else 'a pipe'})\n{text}\n")
        assert width is None or line in WIDER or all(cell_len(row) <= width for row in text.splitlines()), text
        for one in re.findall(r"\b(?:[TRUMK]-\d+)\b", carried_out(busy, line, None)[1]) if line in LISTS else ():
            assert one in text, f"{one} is lost at {width} columns"
    assert_golden(f"screens/{re.sub(r'[^a-z]+', '-', line.replace(JAVA, 'path').lower()).strip('-')}.txt", "\n".join(shown))


#: Stories, sections and whole values are text: a terminal folds them, and nothing of them may be cut.
WIDER = {line for line in READING if line.startswith(("explain", "archive show", "task show", "dead show", "review show", "state get", "events"))}


@pytest.mark.parametrize("line", LISTS)
def test_names_alone_and_as_many_as_were_asked_for(busy: World, line: str) -> None:
    code, quiet = carried_out(busy, f"{line} -q", 60)
    names = quiet.splitlines()
    assert code == 0 and len(names) == len(set(names)) and (names or line == "lost-writes")
    whole = carried_out(busy, f"{line} --json" if "--json" in COMMANDS[parse_served(shlex.split(line)).name].options else line, None)[1]  # type: ignore[union-attr]
    assert all(name.partition("@")[0] in whole for name in names), names
    if "--limit" in COMMANDS[parse_served(shlex.split(line)).name].options:  # type: ignore[union-attr]
        first, *more = carried_out(busy, f"{line} -q --limit 1", None)[1].splitlines()
        assert first in (names[0], names[-1])
        assert more == (["coord: 1 are shown, and there are more (`--limit 10`)"] if len(names) > 1 and names[0] == first else more)
        code, refused = carried_out(busy, f"{line} --limit 0", None)
        assert code == 2 and "limit" in refused and "next: " in refused


@pytest.mark.parametrize("line", SHORT)
def test_the_short_form_is_a_line_of_json_with_what_one_acts_on(busy: World, line: str) -> None:
    code, text = carried_out(busy, f"{line} --short", 60)
    rows = text.splitlines()
    assert code == 0 and (len(rows) == 1 or line.startswith("events"))
    whole = carried_out(busy, f"{line} --json", None)[1]
    assert len(text) <= len(whole)
    for row in rows:
        assert _valued(msgspec.json.decode(row))


def _valued(value: Any) -> bool:
    """No field without a value."""
    if isinstance(value, dict):
        return all(one not in (None, "", [], {}) and _valued(one) for name, one in value.items() if name != "items")
    return all(_valued(one) for one in value) if isinstance(value, list) else True


PIECES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=130)


@given(rows=st.lists(st.tuples(st.integers(1, 99_999), PIECES, PIECES, st.sampled_from(["claimed", "ready"])), min_size=1, max_size=20), width=st.sampled_from([60, 80, 120]))
def test_no_id_and_no_state_is_lost_in_any_list(rows: list[tuple[int, str, str, str]], width: int) -> None:
    cells = [(f"T-{number}", state, title, f"src/{path}/name.py") for number, title, path, state in rows]
    shown = columns(("task", "state", "title", "file"), cells, "==~/", width)
    assert len(shown) == len(rows) + 1, "one line a row"
    for row, (name, state, _, path) in zip(shown[1:], cells, strict=True):
        assert row.startswith(name) and f"  {state}" in row and cell_len(row) <= width
        assert row.rstrip().endswith("me.py"), f"the end of {path} is what tells one file from the next"
    piped = columns(("task", "state", "title", "file"), cells, "==~/", None)
    assert all("…" not in row or "…" in "".join(cell) for row, cell in zip(piped[1:], cells, strict=True))


def test_two_hundred_leases_and_two_thousand_tasks(world: World) -> None:
    for n in range(200):
        path = f"deep/very/long/directory/of/module{n % 7}/package/File{n:03}.java"
        world.write(path, "x\n")
        world.acquire(f"agent-{n % 10}", path, description="because " * 12)
    world.ask(rq.TaskImport(text="\n".join(f"- [ ] Task number {n} {'with a long title ' * 6}(files: src/file{n}.py)" for n in range(2000)), format="markdown"))
    for width in WIDTHS:
        leases = carried_out(world, "locks", width)[1].splitlines()
        assert len(leases) == 201 and all(f"{n:03}.java" in "\n".join(leases) for n in range(200))
        assert len(carried_out(world, "task list --limit 5000", width)[1].splitlines()) == 2001
        assert len(carried_out(world, "task list -q --limit 5000", width)[1].splitlines()) == 2000
    folder = Path(__file__).parents[1] / "data/golden/screens"
    assert {one.stem for one in folder.iterdir()} - {"of-the-program"} == {re.sub(r"[^a-z]+", "-", line.replace(JAVA, "path").lower()).strip("-") for line in READING}


def test_lists_of_one_agent_or_task_alone(busy: World) -> None:
    assert carried_out(busy, f"task list -q --agent {SUB}", None) == (0, "T-1\n")
    assert carried_out(busy, "task list --agent bob", None) == (0, "bob has claimed none of these.\n")
    assert carried_out(busy, "review list -q --agent tom", None) == (0, "R-1\n")
    assert carried_out(busy, "review list -q --agent ann", None) == carried_out(busy, "review list -q --task T-1", None) == (0, "")


LOCAL = ["regions src/shop/orders/discount_rules_for_companies.py", "regions --nested src/shop/orders/discount_rules_for_companies.py", "impact src/shop/orders/discount_rules_for_companies.py", "help exit-codes",
         "verify --list", "lost-writes", "trust"]


def test_the_screens_of_commands_that_read_files_are_kept_too(repo: Repo) -> None:
    """These are carried out by the program itself."""
    repo.write("src/shop/orders/discount_rules_for_companies.py", "RATE = 3\n\n\nclass DiscountForCompaniesAndSchools:\n    def of_a_year_with_many_orders(self, orders: list[int]) -> int:\n"
               "        def inner() -> int:\n            return 1\n        return sum(orders) * RATE\n\n\ndef 税率(x: int) -> int:\n    return x\n")
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=kim", "-c", "user.email=kim@example.org", "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=repo.root, check=True)
    name = "src/shop/orders/discount_rules_for_companies.py"
    repo.write(name, repo.read(name).replace("税率(x: int)", "税率(x: int, y: int)"))
    repo.write("src/shop/pay.py", "from shop.orders.discount_rules_for_companies import 税率\n\nprint(税率(1))\n")
    shown = []
    repo.client().call(rq.Status())
    for line in LOCAL:
        for width in WIDTHS:
            done = repo.coord(*line.split(), env={"COLUMNS": str(width)} if width else {})
            assert done.returncode == 0, done
            shown.append(f"$ coord {line}    ({f'{width} columns' if width else 'a pipe'})\n{done.stdout}\n")
            assert width is None or line == "trust" or all(cell_len(row) <= width for row in done.stdout.splitlines()), done.stdout
    assert_golden("screens/of-the-program.txt", "\n".join(shown).replace(str(repo.root), "/srv/work"))


def test_every_place_knows_the_same_states_of_a_task(world: World) -> None:
    kept = re.search(r"CREATE TABLE tasks \(.*?CHECK \(state IN \((.*?)\)\)", (Path(__file__).parents[2] / "schema.sql").read_text("utf-8"), re.DOTALL)
    assert kept is not None and set(re.findall(r"'(\w+)'", kept[1])) == set(rq.TASK_STATES) == set(dashboard.ORDER)
