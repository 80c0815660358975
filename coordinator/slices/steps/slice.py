"""Steps of programs that were blocked, and dead letters: their operations."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, take_work, write, write_by
from coordinator.slices.steps import dead_letters, steps
from coordinator.slices.steps.dead_letters import DeadSteps
from coordinator.words import requests as rq


class Steps(Slice):
    """See `kernel.hooks.Slice`."""

    dead_kind = DeadSteps()
    operations = (
        Operation(rq.StepAdd, write(steps.add)),
        Operation(rq.StepNext, take_work(steps.give_next)),
        Operation(rq.StepDone, write(steps.done)),
        Operation(rq.StepFail, write(steps.fail)),
        Operation(rq.Steps, read(steps.listing)),
        Operation(rq.Dead, read(dead_letters.listing)),
        Operation(rq.DeadShow, read(dead_letters.show)),
        Operation(rq.DeadRetry, write_by(dead_letters.retry, dead_letters.retry_needs)),
        Operation(rq.DeadDrop, write(dead_letters.drop)),
    )
