"""The operations that tell about everything: events, reports, status, and the archive."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.kernel.operations import Operation
from coordinator.kernel.use_cases import read, read_apart
from coordinator.slices.story import report, status, story, timeline, work
from coordinator.words import requests as rq


class Story(Slice):
    """See `kernel.hooks.Slice`."""

    operations = (
        Operation(rq.Work, read_apart(work.work)),
        Operation(rq.ArchiveSearch, read(status.search)),
        Operation(rq.ArchiveShow, read(status.show)),
        Operation(rq.ArchiveIndexNow, read(status.index)),
        Operation(rq.Status, read(status.status)),
        Operation(rq.Events, read(story.events)),
        Operation(rq.Explain, read(story.explain)),
        Operation(rq.Report, read_apart(report.report)),
        Operation(rq.Timeline, read_apart(timeline.timeline)),
        Operation(rq.Moment, read_apart(timeline.moment)),
        Operation(rq.Replay, read_apart(story.replay)),
        Operation(rq.Health, read(status.health)),
    )
