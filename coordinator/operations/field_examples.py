"""Examples of fields for `/openapi.json`, by name or by `Shape.field`.

A field without an entry gets an example made from its type. Data only; a test decodes each example.
"""

from __future__ import annotations

from typing import Any

_AT = "2026-11-21T14:32:00.000Z"
_LATER = "2026-11-21T15:02:00.000Z"

#: Optional fields that an example of a request has, too.
SHOWN = frozenset({
    "ttl_s", "description", "prompt", "priority", "progress", "result", "version", "note", "limit",
    "Acquire.wait_s", "TaskAdd.resources",
})
#: Overrides the rule: these fields, and no others.
SHOWN_ONLY: dict[str, tuple[str, ...]] = {
    "Release": ("agent", "resources"), "Renew": ("agent", "resources", "ttl_s"),
    "TaskFail": ("agent", "task", "reason"), "TaskClaim": ("agent", "ttl_s"),
}

EXAMPLES: dict[str, Any] = {
    "expires_at": _LATER,
    "address": "http://127.0.0.1:43210", "PageOpened.code": "pW3vZc0bYw2Jq8Xk", "valid_s": 60.0,
    "agent": "ann", "holder": "ann", "locked_by": "ann", "claimed_by": "ann", "sender": "ann",
    "requested_by": "bob", "asked_by": "bob", "by": "Maria", "to": "bob", "written_by": "ann",
    "parent": None, "profile": "claude-code",
    "task": "T-3", "review": "R-2", "request": "U-1", "change": "K-4", "step": "S-1", "id": "T-3",
    "ReviewFile.change": "modified", "acquisition_id": "A-7", "message": "M-5", "thread": "M-5",
    "UnlockAnswered.message": "src/pay.py went to bob.", "verification": "V-1",
    "resource": "src/pay.py", "resources": ["src/pay.py"], "path": "src/pay.py",
    "paths": ["/home/maria/shop/src/pay.py"], "key": "key:account:12345", "prefix": "key:account",
    "RegionText.resource": "src/pay.py::charge", "subject": "T-3", "cwd": "/home/maria/shop",
    "root": "/home/maria/shop", "title": "Retry failed payments", "prompt": "Retry three times.",
    "description": "retries of payments", "reason": "I fix a bug in it", "why": "the bank is down",
    "text": "The retries are done.", "RegionText.text": "def charge(): ...\n",
    "TaskImport.text": "- title: Retry failed payments\n  resources: [src/pay.py]\n",
    "format": "yaml", "query": "retries", "ref": "4.2", "number": "4.2", "name": "priority",
    "StepAdd.name": "shop:charge", "names": ["shop:charge"], "outcome": "VERIFY_FAILED",
    "mode": "exclusive", "verdict": "approve", "ReviewDecide.verdict": "keep", "kind": "file",
    "EventRow.kind": "lease_granted", "state": "ready", "Reviews.state": "open",
    "Review.state": "open", "Requests.state": "pending", "status": "pending",
    "ttl_s": 1800.0, "wait_s": 10.0, "half_life_s": 600.0, "strength": 1.0, "priority": 5,
    "attempt": 1, "limit": 50, "version": 3, "fencing_token": 41, "size": 17, "up_to": 5,
    "HealthReply.version": "1.2.3", "pid": 4242, "value": {"owes": 12}, "patch": {"owes": 12},
    "ProposedChange.patch": None, "ProposedChange.version": "sha256:0f3c", "Proposed.version":
    "sha256:0f3c", "ProposedChange.content": "x = 2\n", "wanted": {"add": 5},
    "arguments": {"amount": 12}, "progress": "writing the tests", "result": "3 retries, tests pass",
    "content_hash": "sha256:0f3c", "lease_token": "59145ef0648bba43", "token": "9a1b5c7d",
    "target": "refs/heads/main", "before": "4f1c2e", "Land.after": "9d0e31",
    "LandBack.after": "9d0e31", "Landed.after": "9d0e31", "Task.after": ["T-1"],
    "TaskAdd.after": [], "TaskEdit.after": ["T-1"], "TaskEdit.seen": _AT, "after": None,
    "Events.after": 0, "next": None, "command": "git stash",
    "top": "/home/maria/shop", "worktree": "/home/maria/shop/.coord/worktrees/T-3",
    "action": "git commit", "since": _AT, "until": _AT, "note": "",
    "explanation": "T-3 can be claimed.", "Span.kind": "task", "Moment.event": 7, "Moment.at": None,
    "LimitReached.until": None, "sentences": [
        "ann has src/pay.py."], "silence_s": None, "data": {}, "at": _AT,
}
