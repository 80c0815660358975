"""Two LangGraph writers of one file, in two processes; one is killed in the middle of its node. The
other's branch is redirected meanwhile; the killed one's graph is resumed by a new process, as the
same agent. Ends with 1 if an update was lost.

    python -P examples/langgraph_two_writers.py
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from coordinator.frameworks.langgraph import LeaseState, current, guard, route_blocked

LINES = Path("shared.txt")


class State(TypedDict, total=False):
    text: str
    lease: LeaseState
    report: str


@guard("shared.txt", key="lease", ttl=600)
def write(state: State) -> dict[str, Any]:
    before = LINES.read_text()
    if os.environ.get("STOPS"):  # in the middle: it has read, and has not written
        print(f"in the node under fencing token {current().fencing_token}", flush=True)
        while True:
            time.sleep(60)
    LINES.write_text(before + state["text"] + "\n")
    return {"report": f"wrote under fencing token {current().fencing_token}"}


def other_work(state: State) -> dict[str, Any]:
    return {"report": f"did something else: {state['lease']['message']}"}


def build(saver: SqliteSaver) -> Any:
    graph = StateGraph(State)
    graph.add_node("write", write)
    graph.add_node("other_work", other_work)
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", route_blocked(free=END, blocked="other_work"))
    graph.add_edge("other_work", END)
    return graph.compile(checkpointer=saver)


def run(database: str, thread: str, text: str | None) -> None:
    """One process: begin a thread with `text`, or go on with it."""
    with SqliteSaver.from_conn_string(database) as saver:
        given = {"text": text} if text is not None else None
        out = build(saver).invoke(given, {"configurable": {"thread_id": thread}},
                                  durability="sync")
        print(f"{thread}: {out['report']}", flush=True)


def process(*words: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-P", __file__, *words], text=True,
                            env={**os.environ, **env}, stdout=subprocess.PIPE)


def said(child: subprocess.Popen[str]) -> str:
    out, _ = child.communicate(timeout=120)
    print(out, end="")
    return out


def main() -> int:
    LINES.write_text("")
    database = str(Path(tempfile.mkdtemp()) / "checkpoints.sqlite")
    doomed = process(database, "writer-1", "one", STOPS="1")
    assert doomed.stdout is not None
    first = doomed.stdout.readline().rpartition(" ")[2]  # it is in its node
    blocked = said(process(database, "writer-2", "two"))
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    resumed = said(process(database, "writer-1"))
    said(process(database, "writer-2", "two"))
    right = LINES.read_text() == "one\ntwo\n"
    redirected = "shared.txt is leased by langgraph-writer-1-write" in blocked
    same = f"wrote under fencing token {first}" in resumed
    print(f"nothing lost: {right}; redirected: {redirected}; resumed with its own lease: {same}")
    return 0 if right and redirected and same else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    else:
        sys.exit(main())
