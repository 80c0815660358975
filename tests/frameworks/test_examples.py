"""The examples, each as a program of its own in a fresh repository; and the page, whose code is theirs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.conftest import Repo

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "context_archive" / "frameworks.md"
FRAMEWORKS = {"langgraph_two_writers": "langgraph.checkpoint.sqlite", "openai_agents_tools": "agents.tool_guardrails",
              "claude_sdk_hooks": "claude_agent_sdk"}
#: What takes the exclusion out of each, and nothing else.
WITHOUT = {
    "mutex": ("acquire_agent_lock(user_id,", "acquire_agent_lock(threading.get_ident(),"),
    "asyncio_functions": ('f"key:account:{account}"', 'f"key:{id(asyncio.current_task())}"'),
    "langgraph_two_writers": ('@guard("shared.txt",', '@guard(lambda state: state["text"],'),
    "openai_agents_tools": ("tools=[guarded_append]", "tools=[append]"),
    "claude_sdk_hooks": ("session(two,", "session(one,"),
}
EACH = [pytest.param(name, marks=[pytest.mark.frameworks] if name in FRAMEWORKS else []) for name in WITHOUT]


def run(repo: Repo, file: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-P", str(file)], cwd=repo.root, env=env, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.parametrize("name", EACH)
def test_an_example_loses_nothing(repo: Repo, name: str) -> None:
    if name in FRAMEWORKS:
        pytest.importorskip(FRAMEWORKS[name])
    done = run(repo, EXAMPLES / f"{name}.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("name", EACH)
def test_an_example_would_tell_if_it_did(repo: Repo, name: str, tmp_path: Path) -> None:
    """The same where nobody excludes anybody."""
    if name in FRAMEWORKS:
        pytest.importorskip(FRAMEWORKS[name])
    text = (EXAMPLES / f"{name}.py").read_text()
    old, new = WITHOUT[name]
    assert old in text
    (tmp_path / "without.py").write_text(text.replace(old, new))
    done = run(repo, tmp_path / "without.py")
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stdout + done.stderr


def test_every_example_is_tried_and_listed() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == set(WITHOUT)
    assert set(re.findall(r"^\| `(\w+)\.py`", (EXAMPLES / "README.md").read_text(), re.M)) == names


@pytest.mark.frameworks
def test_every_example_is_strictly_typed(tmp_path: Path) -> None:
    """Against the frameworks' own types; those that need none: tests/client/test_methods.py."""
    for package in FRAMEWORKS.values():
        pytest.importorskip(package)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", "--cache-dir", str(tmp_path),
         *map(str, sorted(EXAMPLES.glob("*.py")))], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_the_code_on_the_page_is_that_of_the_examples() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    texts = [path.read_text() for path in EXAMPLES.glob("*.py")]
    assert len(blocks) >= 7
    for block in blocks:
        assert any(textwrap.dedent(block) in textwrap.dedent(text) or block in text for text in texts), block


@pytest.mark.parametrize(("module", "product", "extra", "package"), [
    ("langgraph", "LangGraph", "langgraph", "langgraph"), ("openai_agents", "the OpenAI Agents SDK", "openai-agents", "agents"),
    ("claude_sdk", "the Claude Agent SDK", "claude-agent-sdk", "claude_agent_sdk"),
])
def test_without_its_extra_a_module_says_which_to_install(module: str, product: str, extra: str, package: str) -> None:
    hidden = f"import sys; sys.modules[{package!r}] = None; import coordinator.frameworks.{module}"
    done = subprocess.run([sys.executable, "-P", "-c", hidden], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"coordinator.frameworks.{module} needs {product}" in done.stderr
    assert f"pip install 'coord[{extra}]'" in done.stderr


def test_the_rest_needs_no_extra() -> None:
    """And nothing of coord imports a framework by itself."""
    asked = ("import sys, coordinator.frameworks.mutex, coordinator.frameworks.asynchronous;"
             "print(sorted({'langgraph', 'agents', 'claude_agent_sdk', 'openai'} & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-P", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
