"""One round by the Python client that openapi-python-client made (its package: `made`): lock, be
refused, claim, review. Arguments: the address, the operator's token, the repository. Types are
checked strictly (test_generated.py)."""

import sys
from pathlib import Path

from made.api.agents import leave, register
from made.api.backlog import task_add, task_claim, task_done
from made.api.leases import acquire, locks
from made.api.reviews import review_decide, review_show, reviews
from made.api.story import health
from made.client import AuthenticatedClient
from made.models.acquire_body import AcquireBody
from made.models.acquired import Acquired
from made.models.claimed import Claimed
from made.models.leave_body import LeaveBody
from made.models.left import Left
from made.models.lock_list import LockList
from made.models.refusal import Refusal
from made.models.register_body import RegisterBody
from made.models.registered import Registered
from made.models.review import Review
from made.models.review_decide_body import ReviewDecideBody
from made.models.review_decide_body_verdict import ReviewDecideBodyVerdict
from made.models.review_list import ReviewList
from made.models.task import Task
from made.models.task_add_body import TaskAddBody
from made.models.task_claim_body import TaskClaimBody
from made.models.task_done_body import TaskDoneBody

base, bearer, root = sys.argv[1:]
person = AuthenticatedClient(base_url=base, token=bearer)
assert not isinstance(health.sync(client=person), (Refusal, type(None)))


def agent(name: str) -> AuthenticatedClient:
    known = register.sync(client=person, body=RegisterBody(agent=name))
    assert isinstance(known, Registered)
    return AuthenticatedClient(base_url=base, token=known.token)


ann, bob = agent("ann"), agent("bob")
got = acquire.sync(client=ann, body=AcquireBody(agent="ann", resources=["a.py"], ttl_s=60.0))
assert isinstance(got, Acquired) and got.leases[0].fencing_token > 0
refused = acquire.sync_detailed(client=bob, body=AcquireBody(agent="bob", resources=["a.py"]))
assert refused.status_code == 423 and isinstance(refused.parsed, Refusal)
assert refused.parsed.error.code == "LOCKED" and "ann" in refused.parsed.error.message
listed = locks.sync(client=bob)
assert isinstance(listed, LockList) and [one.locked_by for one in listed.items] == ["ann"]

task = task_add.sync(client=person, body=TaskAddBody(title="B", resources=["b.py"]))
assert isinstance(task, Task)
claimed = task_claim.sync(client=bob, body=TaskClaimBody(agent="bob"))
assert isinstance(claimed, Claimed) and claimed.task.task == task.task
done = task_done.sync(client=bob, task=task.task, body=TaskDoneBody(agent="bob", result="done"))
assert isinstance(done, Task) and done.state == "done"
wrong = task_done.sync_detailed(client=bob, task="T-99", body=TaskDoneBody(agent="bob"))
assert wrong.status_code == 404 and isinstance(wrong.parsed, Refusal)

Path(root, "a.py").write_text("half\n")
left = leave.sync(client=ann, body=LeaveBody(agent="ann", clean=False, reason="it was stopped"))
assert isinstance(left, Left) and left.reviews
waiting = reviews.sync(client=person)
assert isinstance(waiting, ReviewList) and waiting.items[0].review == left.reviews[0]
shown = review_show.sync(client=person, review=left.reviews[0])
assert isinstance(shown, Review) and "+half" in shown.files[0].diff
kept = review_decide.sync(client=person, review=left.reviews[0],
                          body=ReviewDecideBody(verdict=ReviewDecideBodyVerdict.KEEP, by="Maria"))
assert isinstance(kept, Review) and kept.state == "kept"
print("a whole round")
