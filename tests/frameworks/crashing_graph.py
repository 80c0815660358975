"""A program whose graph is run, killed and resumed by the tests: `crashing_graph.py ROOT DATABASE THREAD HOW`.

Reads a number from a file, adds to it under a lease, and writes it back; with HOW `stops` it stops, in
the middle of the writing node, until it is killed. HOW `spans` has the lease go over several nodes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from coordinator.frameworks.langgraph import (
    LeaseState,
    current,
    guard,
    lease_node,
    release_node,
    route_blocked,
    with_lease,
)

TTL_S = 120.0


class State(TypedDict, total=False):
    amount: int
    read: int
    tokens: list[int]
    lease: LeaseState


def build(root: Path, saver: Any, how: str, ttl: float = TTL_S) -> Any:
    file = root / "balance"

    def add(state: State) -> dict[str, Any]:
        before = int(file.read_text())
        (root / f"entered-{how}").touch()
        if how.startswith("stops"):
            while True:
                time.sleep(60)
        file.write_text(str(before + state["amount"]))
        return {"tokens": [*state.get("tokens", []), current().fencing_token]}

    graph = StateGraph(State)
    if how.endswith("spans"):
        graph.add_node("take", lease_node("balance", root=root, ttl=ttl))
        graph.add_node("add", with_lease(root=root, ttl=ttl)(add))
        graph.add_node("give", release_node(root=root))
        graph.add_edge(START, "take")
        graph.add_conditional_edges("take", route_blocked(free="add", blocked=END))
        graph.add_conditional_edges("add", route_blocked(free="give", blocked=END, stale="add"))
        graph.add_edge("give", END)
    else:
        graph.add_node("add", guard("balance", root=root, ttl=ttl)(add))
        graph.add_edge(START, "add")
        graph.add_edge("add", END)
    return graph.compile(checkpointer=saver)


def main() -> int:
    root, database, thread, how = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    with SqliteSaver.from_conn_string(database) as saver:
        given = {"amount": int(sys.argv[5])} if len(sys.argv) > 5 else None
        out = build(root, saver, how).invoke(
            given, {"configurable": {"thread_id": thread}}, durability="sync")
    print(out.get("tokens"), (out.get("lease") or {}).get("status"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
