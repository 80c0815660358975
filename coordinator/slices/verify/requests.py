"""Verifying what was finished."""

from __future__ import annotations

from coordinator.words.requests.base import Count, Request
from coordinator.words.requests.verification import Verification, VerificationList
from coordinator.words.texts import Name


class Verify(Request[Verification]):
    """Run the command now on what tasks have finished since it last passed (`verify.command`); the
    reply does not wait for its end. `afresh`: begin with the commit that is checked out, and take
    all that was finished until now as being in it."""

    op = "verify"
    http = ("POST", "/v1/verifications")
    operator_only = True
    by: Name | None = None
    afresh: bool = False


class Verifications(Request[VerificationList]):
    """The last verifications, the newest first, and what is not verified."""

    op = "verifications"
    http = ("GET", "/v1/verifications")
    writes = False
    limit: Count = 20
