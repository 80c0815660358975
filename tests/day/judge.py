"""What has to hold at the end of a day: each commit, line, lock and refusal against the agents' journals."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.day.agent import Attempt, Journal
from tests.day.repositories import NICKS, Repository

LINE = re.compile(rf"\b((?:{'|'.join(NICKS)}|launched)_\d+_\d+)\b")
#: A refusal may name what was let go a moment before (seconds).
NEAR_S = 1.0


def judge_day(repository: Repository, journal: Journal, alone: set[tuple[str, str]]) -> list[str]:
    """All faults of a day.

    Args:
        alone: the calls that fail for one agent alone, too: kind of job and label.
    """
    faults = list(journal.faults)
    faults += judge_attempts(repository, journal, alone)
    counted: Counter[str] = Counter()
    for place in repository.places():
        faults += judge_commits(repository, place, journal, counted)
    for name, commit in journal.commits.items():
        if commit.acknowledged and counted[name] != 1:
            faults.append(f"{commit.nick}: the commit {name} is there {counted[name]} times")
    faults += judge_lines(journal)
    for place in repository.places():
        left = repository.git("status", "--short", place=place) + repository.git("stash", "list", place=place)
        if left:
            faults.append(f"left in {place.name}: {left}")
        git_dir = Path(repository.git("rev-parse", "--absolute-git-dir", place=place).strip())
        faults += [f"left behind: {lock}" for lock in git_dir.rglob("*.lock") if not lock.name.startswith("coord-")]
    return faults + judge_coordinator(repository)


def judge_attempts(repository: Repository, journal: Journal, alone: set[tuple[str, str]]) -> list[str]:
    """Calls that failed though they succeed for one agent alone, and nobody else held anything."""
    leases = None
    faults = []
    for attempt in journal.attempts:
        if not attempt.locked:
            if (attempt.kind, attempt.label) not in alone:
                faults.append(f"{attempt.nick}: {attempt.kind}/{attempt.label} failed: {attempt.command}: {attempt.text.strip()[-500:]}")
            continue
        leases = leases if leases is not None else list_leases(repository, journal.names)
        if not any(_explains(lease, attempt) for lease in leases):
            faults.append(f"{attempt.nick}: {attempt.kind}/{attempt.label} was refused, and nobody else held anything of it: {attempt.command}: "
                          f"{attempt.text.strip()[-500:]}")
    return faults


@dataclass
class Lease:
    """A lease of the day, from its events; times in seconds since the epoch."""

    nick: str
    resource: str
    began: float
    ended: float = math.inf


def _explains(lease: Lease, attempt: Attempt) -> bool:
    """Whether the lease is of another, lived while the call was tried, and is of a file that the call or its refusal names."""
    name = lease.resource.partition("::")[0].rpartition("/")[2]
    return (attempt.nick != lease.nick and lease.began <= attempt.ended + NEAR_S and lease.ended >= attempt.began - NEAR_S
            and (name in attempt.text or name in attempt.command or attempt.label == "amend" or lease.resource.startswith("git:index")))


def list_leases(repository: Repository, names: dict[str, str]) -> list[Lease]:
    """Each lease of the day."""
    leases: dict[int, Lease] = {}
    for line in repository.stand.coord("events", "--json", "--limit", "100000").splitlines():
        event = json.loads(line)
        kind, data = event["kind"], event.get("data", {})
        when = datetime.fromisoformat(event["at"]).timestamp()
        if kind == "lease_granted":
            leases[data["fencing_token"]] = Lease(names.get(data["agent"], data["agent"]), data["resource"], when)
        elif kind in ("lease_released", "lease_lapsed") and data["fencing_token"] in leases:
            leases[data["fencing_token"]].ended = when
    return [*leases.values()]


def judge_commits(repository: Repository, place: Path, journal: Journal, counted: Counter[str]) -> list[str]:
    """Commits with files or lines that are not their author's."""
    faults = []
    for entry in repository.git("log", "--branches", "--no-merges", "--format=%H%x00%an%x00%s", place=place).splitlines():
        digest, author, subject = entry.split("\0")
        counted[subject] += 1
        if author not in NICKS:
            continue
        files = set(repository.git("show", "--name-only", "--format=", digest, place=place).split())
        asked = journal.commits.get(subject)
        if asked is None or asked.nick != author or files != asked.files:
            faults.append(f"{author}: the commit {subject} has {sorted(files)}, not {sorted(asked.files) if asked else 'any'}")
        added = {line for text in repository.git("show", "-U0", "--format=", digest, place=place).splitlines()
                 if text.startswith("+") for line in LINE.findall(text)}
        others = sorted(line for line in added if not line.startswith(f"{author}_"))
        if others:
            faults.append(f"{author}: the commit {subject} has lines of others: {others}")
    return faults


def judge_lines(journal: Journal) -> list[str]:
    """Acknowledged lines that are not in their file exactly once."""
    faults = []
    texts = {path: Counter(LINE.findall(path.read_text())) if path.exists() else Counter() for path in {*journal.written.values()}}
    for line, path in journal.written.items():
        wanted = 0 if line in journal.withdrawn else 1
        if texts[path][line] != wanted:
            faults.append(f"the line {line} is {texts[path][line]} times in {path.name}, not {wanted}")
    return faults


def judge_coordinator(repository: Repository) -> list[str]:
    """Locks and reviews that are left, and what `doctor` finds."""
    stand = repository.stand
    faults = [f"a lock is left: {lock['resource']} of {lock['locked_by']}" for lock in stand.asks("locks")["items"]]
    faults += [f"a review is left: {review['summary']} {[file['path'] for file in review['files']]}" for review in stand.asks("review", "list")["items"]]
    doctor: dict[str, Any] = json.loads(stand.tries("doctor", "--json").stdout)
    return faults + [f"doctor: {problem}" for problem in doctor.get("problems", [])]
