"""The one list of slices that hang into the kernel, in the order in which they hear of things."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.slices.backlog.hooks import Backlog
from coordinator.slices.messages.hooks import Messages
from coordinator.slices.signals.hooks import Signals
from coordinator.slices.state.hooks import State
from coordinator.slices.steps.hooks import Steps

SLICES: tuple[Slice, ...] = (Backlog(), Signals(), State(), Steps(), Messages())
