"""What has failed too often, of whatever kind."""

from __future__ import annotations

import msgspec

from coordinator.words.requests.base import Reply

NULL = msgspec.Raw(b"null")


class DeadLetter(Reply):
    id: str  # of the task, change or step: T-3, K-3 or S-3
    kind: str  # task, change, call, acquire, propose, webhook
    what: str
    agent: str | None
    attempts: int
    why: str
    since: str
    content: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)  # all, when shown alone
