"""The blocking client is made from the asynchronous one: the rule, and that what is made is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "blocking_client.py"
sys.path.insert(0, str(SCRIPT.parent))
import blocking_client  # noqa: E402

ASYNCHRONOUS = '''"""`async with AsyncClient() as client: await client.status()`."""
from coordinator.client.async_transport import connect  # of the async_transport
from coordinator.client.asynchronous import Operations

class AsyncBody(_AsyncBase):
    async def __aenter__(self) -> AsyncIterator[int]:
        async with self._lock:  # awaited by whoever waits
            return [row async for row in await (self
                .rows())]
'''
BLOCKING = '''"""`with Client() as client: client.status()`."""
from coordinator.client.transport import connect  # of the transport
from coordinator.client.blocking import Operations

class Body(_Base):
    def __enter__(self) -> Iterator[int]:
        with self._lock:  # awaited by whoever waits
            return [row for row in (self
                .rows())]
'''


def test_waiting_words_go_and_comments_and_layout_stay() -> None:
    assert blocking_client.make_blocking(ASYNCHRONOUS) == BLOCKING


def test_what_is_made_is_current_and_says_so_in_its_first_line() -> None:
    done = subprocess.run([sys.executable, "-P", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for path in blocking_client.list_made():
        assert path.read_text("utf-8").startswith("# Made by scripts/blocking_client.py from "), path


def test_what_is_stale_fails_and_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "coordinator" / "client" / "async_client.py"
    source.parent.mkdir(parents=True)
    source.write_text(ASYNCHRONOUS)
    monkeypatch.setattr(blocking_client, "CLIENT", source.parent)
    monkeypatch.setattr(blocking_client, "MADE", {"async_client.py": "client.py"})
    assert blocking_client.main([]) == 1
    assert "stale: coordinator/client/client.py" in capsys.readouterr().err
    assert blocking_client.main(["--write"]) == 0
    assert blocking_client.main([]) == 0
    assert source.with_name("client.py").read_text().endswith(BLOCKING)


def test_no_asyncio_is_loaded_by_the_blocking_client() -> None:
    """A command starts in the time that its imports take."""
    program = "import sys, coordinator.client.client, coordinator.client.connection; print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False\n"
