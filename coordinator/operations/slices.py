"""The one list of slices, in the order in which they hear of things."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.slices.backlog.slice import Backlog
from coordinator.slices.guard.slice import Guard
from coordinator.slices.landing.slice import Landing
from coordinator.slices.messages.slice import Messages
from coordinator.slices.proposals.slice import Proposals
from coordinator.slices.regions.slice import Regions
from coordinator.slices.review.slice import Review
from coordinator.slices.signals.slice import Signals
from coordinator.slices.state.slice import State
from coordinator.slices.steps.slice import Steps
from coordinator.slices.story.slice import Story
from coordinator.slices.verify.slice import Verify

SLICES: tuple[Slice, ...] = (
    Backlog(), Signals(), State(), Steps(), Messages(), Review(), Verify(), Guard(), Regions(),
    Proposals(), Landing(), Story(),
)
