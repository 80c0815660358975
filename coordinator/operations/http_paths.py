"""Further HTTP paths of operations: what people expect to find below a task or a resource.

`POST /v1/tasks/T-3/lock` is `acquire` of `task:T-3`. An operation is served once, by one path of
its own (`Request.http`); what stands here only says which fields of it the path fills in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator.words.resource_names import TASK


@dataclass(frozen=True)
class HttpPath:
    """One more path of an operation.

    Attributes:
        path: with the placeholders `{task}` or `{resource:path}`, and `{request}`.
        op: the operation's name.
        names: the field that takes the resource, and whether it takes a list of them.
        fixed: fields that this path has already said.
    """

    method: str
    path: str
    op: str
    names: tuple[str, bool]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def fields(self, given: Mapping[str, str]) -> dict[str, Any]:
        """What the placeholders say, as fields of the request."""
        out: dict[str, Any] = {k: v for k, v in given.items() if k not in ("task", "resource")}
        resource = given["resource"] if "resource" in given else TASK + _task_id(given["task"])
        name, many = self.names
        out[name] = [resource] if many else resource
        return {**out, **self.fixed}

    @property
    def operation_id(self) -> str:
        """What it is called in the description of all paths."""
        of = "task" if "{task}" in self.path else "resource"
        last = re.sub(r"\W+", "_", self.path.rpartition("}/")[2] or "withdraw").strip("_")
        return f"{of}_{last}_{self.method.lower()}"


def _task_id(text: str) -> str:
    bare = text.strip().upper()
    return f"T-{bare}" if bare.isdigit() else bare


def _below(root: str) -> list[HttpPath]:
    asked = f"{root}/unlock-requests"
    return [
        HttpPath("POST", f"{root}/lock", "acquire", ("resources", True)),
        HttpPath("POST", f"{root}/unlock", "release", ("resources", True)),
        HttpPath("GET", asked, "requests", ("resource", False)),
        HttpPath("POST", asked, "request_file", ("resource", False)),
        *(HttpPath("POST", f"{asked}/{{request}}/{verdict}", "request_answer", ("resource", False),
                   {"verdict": verdict}) for verdict in ("approve", "narrow", "coexist", "reject")),
        HttpPath("DELETE", f"{asked}/{{request}}", "request_withdraw", ("resource", False)),
    ]


HTTP_PATHS: tuple[HttpPath, ...] = (
    *_below("/v1/tasks/{task}"),
    # A resource's own name has slashes in it; what follows it decides which path it is.
    *_below("/v1/resources/{resource:path}"),
)
