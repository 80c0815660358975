"""Plain asyncio functions: twenty coroutines share one client and book on two accounts. Ends with 1
if a booking was lost."""

from __future__ import annotations

import asyncio
import sys

from coordinator.client.client import Client
from coordinator.frameworks.asynchronous import current, guarded, lease

balances = {"a": 0, "b": 0}
client = Client(agent="bookings")


@guarded(lambda account, cents: f"key:account:{account}", client=client, wait=60)
async def book(account: str, cents: int) -> int:
    before = balances[account]
    await asyncio.sleep(0.05)  # others run here: without the lease they would read the same
    balances[account] = before + cents
    return current().fencing_token  # rises with each grant: hand it to what you write to


async def transfer(cents: int) -> None:
    async with lease("key:account:a", "key:account:b", client=client, wait=60):  # both, or none
        await book("a", -cents)  # a call within is the same holder
        await book("b", cents)


async def main() -> int:
    await asyncio.gather(*(book("a", 10) for _ in range(10)), *(transfer(1) for _ in range(10)))
    print(balances)
    return 0 if balances == {"a": 90, "b": 10} else 1


if __name__ == "__main__":
    with client:
        sys.exit(asyncio.run(main()))
