"""Business code with a mutex: four workers book on one account; a step that finds it taken goes
into a queue and is run later. Ends with 1 if a booking was lost."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time

from coordinator.client.client import Client
from coordinator.frameworks.mutex import acquire_agent_lock
from coordinator.frameworks.postponing import StepPostponed

WORKERS, BOOKINGS = 4, 10
balances = {"user-42": 0}
retry_queue: queue.Queue[StepPostponed] = queue.Queue()


def book(client: Client, user_id: str, cents: int) -> None:
    with acquire_agent_lock(user_id, lock_timeout=45, client=client, step="book",
                            arguments={"user_id": user_id, "cents": cents},
                            on_blocked=retry_queue.put):
        before = balances[user_id]
        time.sleep(0.02)  # others run here: without the lock they would read the same
        balances[user_id] = before + cents


def worker(client: Client) -> None:
    for _ in range(BOOKINGS):
        with contextlib.suppress(StepPostponed):  # it is in the queue, with all that it needs
            book(client, "user-42", 1)


def main() -> int:
    with Client(agent="bookings") as client:
        workers = [threading.Thread(target=worker, args=(client,)) for _ in range(WORKERS)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
        postponed = retry_queue.qsize()
        while not retry_queue.empty():
            step = retry_queue.get()
            assert step.arguments is not None
            book(client, **step.arguments)
    print(f"{postponed} steps were postponed; {balances}")
    return 0 if balances["user-42"] == WORKERS * BOOKINGS else 1


if __name__ == "__main__":
    sys.exit(main())
