"""MCP's own conformance suite, unmodified, against `/mcp` of a running coordinator.

The suite's other scenarios want a server that offers the suite's own sample tools, prompts and
pictures; these four are about any server. It cannot send a token, so a relay adds that, and hands
on everything else as it came.
"""

from __future__ import annotations

import http.client
import http.server
import os
import subprocess
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from tests.agents.clis import cache_folder
from tests.agents.conftest import need
from tests.conftest import Repo

pytestmark = pytest.mark.agents


class Relay(http.server.BaseHTTPRequestHandler):
    """One request, on to the coordinator with the token of the person at the keyboard."""

    protocol_version = "HTTP/1.1"
    door = ""
    token = ""
    seen: ClassVar[list[str]] = []  # what came in, what was answered, what broke: for a test that fails

    def _on(self) -> None:
        self.seen.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        mine = f":{self.server.server_address[1]}"
        theirs = f":{urlsplit(self.door).port}"
        told = {name: value.replace(mine, theirs) if name.lower() in ("host", "origin") else value
                for name, value in self.headers.items()}
        told["Authorization"] = f"Bearer {self.token}"
        line = http.client.HTTPConnection(urlsplit(self.door).netloc, timeout=20)
        line.request(self.command, self.path, body, told)
        answer = line.getresponse()
        data = b"" if self.command == "GET" else answer.read()  # a stream that has no end
        self.seen.append(f"{answer.status} {data[:200]!r}")
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        line.close()

    do_GET = do_POST = do_DELETE = _on  # noqa: N815  (the names that the base class looks for)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Quiet(http.server.ThreadingHTTPServer):
    """Clients that hang up are no news, but a coordinator that does not answer is."""

    def handle_error(self, *_: Any) -> None:
        Relay.seen.append(traceback.format_exc())


# Node's `fetch failed` keeps its reason to itself.
REASON = """
const fetched = globalThis.fetch;
globalThis.fetch = (...wanted) => fetched(...wanted).catch(
    (failed) => { console.log("because", failed.cause); throw failed; });
"""


@pytest.fixture
def relay(from_nothing: None, repo: Repo) -> Iterator[str]:
    """From nothing: other tests cut this process off from the network (`loopback`), and a server of forks that was
    started before has its daemons in the network outside."""
    repo.coord("init")
    repo.coord("up", "--http", "0")
    Relay.door = repo.state.http.read_text().strip()
    Relay.token = repo.state.bearer.read_text().strip()
    Relay.seen = []
    server = Quiet(("127.0.0.1", 0), Relay)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_address[1]}/mcp"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "scenario", ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"]
)
def test_it_passes_the_protocols_own_suite(repo: Repo, relay: str, scenario: str, tmp_path: Path) -> None:
    need("conformance")
    reason = tmp_path / "reason.cjs"
    reason.write_text(REASON)

    def run() -> tuple[int, str]:
        done = subprocess.run(
            [str(cache_folder() / "conformance" / "node_modules" / ".bin" / "conformance"),
             "server", "--url", relay, "--scenario", scenario],
            capture_output=True, text=True, check=False, timeout=60,
            # Node gives each address of `localhost` 250 ms, also while it reads itself in.
            env={"PATH": os.environ["PATH"], "NODE_OPTIONS":
                 f'--require "{reason}" --dns-result-order=ipv4first --no-network-family-autoselection'},
        )
        return done.returncode, done.stdout + done.stderr

    code, told = run()
    if code and not Relay.seen:  # it gave up before it had asked anything: that is no answer of ours
        code, told = run()
    assert code == 0, "\n".join([told, *Relay.seen, "the coordinator's log:", repo.state.log.read_text()])
    assert " 0 failed, 0 warnings" in told and "Passed: 0/" not in told
