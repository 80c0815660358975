"""What a plugin inside an agent does where no coordinator is there any more."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import gone

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")

#: OpenCode, as far as its plugin sees it: a session, and its tools.
OPENCODE = """
import { pathToFileURL } from "node:url"
import { createInterface } from "node:readline"
const root = process.cwd()
const { CoordPlugin } = await import(pathToFileURL(root + "/.opencode/plugins/coord.js"))
const plugin = await CoordPlugin({ directory: root })
await plugin.event({ event: { type: "session.created", properties: { info: { id: "s" } } } })
let n = 0
const call = async (tool, args) => {
  const callID = `c${++n}`
  try {
    await plugin["tool.execute.before"]({ tool, sessionID: "s", callID }, { args })
  } catch (bad) {
    return bad.message
  }
  await plugin["tool.execute.after"]({ tool, sessionID: "s", callID, args }, { output: "" })
  return "done"
}
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "rests") await plugin.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
  const said = line === "rests" ? "rested" : (await Promise.all(
    JSON.parse(line).map(([tool, args]) => call(tool, args)))).join("; ")
  console.log(said.replaceAll("\\n", " "))
}
"""


@pytest.mark.parametrize("how", ["killed", "down"])
def test_opencode_goes_on_where_its_coordinator_has_ended(repo: Repo, how: str) -> None:
    repo.coord("init", "--agent", "opencode", "--yes")
    repo.write("held.txt", "x\n")
    (repo.root.parent / "opencode.mjs").write_text(OPENCODE)
    with subprocess.Popen(["node", str(repo.root.parent / "opencode.mjs")], cwd=repo.root, text=True, env={**os.environ, "NODE_NO_WARNINGS": "1"},
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        def says(line: str) -> str:
            assert agent.stdin is not None and agent.stdout is not None
            print(line, file=agent.stdin, flush=True)
            return agent.stdout.readline().strip()

        try:
            assert says('[["write", {"filePath": "mine.txt", "content": "x"}]]') == "done"
            with repo.client() as client:
                client.call(rq.Acquire(agent="ann", resources=["held.txt"]))
                pid = client.call(rq.Health()).pid
            if how == "killed":
                os.kill(pid, signal.SIGKILL)
                gone(pid)
            else:
                repo.down()
            both = '["read", {"filePath": "mine.txt"}], ["bash", {"command": "ls"}]'
            assert says(f"[{both}]") == "done; done", "whoever asks starts it, once"
            assert "held.txt is leased by ann" in says('[["write", {"filePath": "held.txt", "content": "y"}]]')
            repo.down()
            assert says("rests") == "rested" and not os.path.exists(repo.state.socket()), "for an end nothing is started"
        finally:
            agent.kill()
