"""Migrations: what each version of the schema changed in tables that were there before.

New tables are made from `schema.sql`, which alone has them. Only SQL, no decision.
"""

import re

from coordinator.resources import packaged
from coordinator.store import older_migrations
from coordinator.store.older_migrations import OLDER_MIGRATIONS

#: Which version a database says that `schema.sql` has made.
SCHEMA_VERSION = int(re.findall(
    r"^PRAGMA user_version = (\d+);", packaged("schema.sql").read_text("utf-8"), re.MULTILINE)[0])
#: From version N to N+1, where tables change; forward only. A test compares each migrated version
#: with `schema.sql`.
MIGRATIONS: dict[int, str] = {
    **OLDER_MIGRATIONS,
    17: """
ALTER TABLE file_locks ADD COLUMN agreed_as TEXT CHECK (agreed_as IS NULL OR mode = 'shared');
ALTER TABLE unlock_requests RENAME TO older_requests;
CREATE TABLE unlock_requests (
    request_id   TEXT PRIMARY KEY,
    n            INTEGER NOT NULL UNIQUE,
    requested_by TEXT NOT NULL,
    holder       TEXT NOT NULL,
    resource     TEXT NOT NULL,
    kind         TEXT NOT NULL,
    scope        TEXT NOT NULL,
    mode         TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    reason       TEXT NOT NULL CHECK (reason <> ''),
    requested_at TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'narrowed', 'coexisting',
                                                 'rejected', 'withdrawn')),
    responded_at TEXT,
    responded_by TEXT,
    override     INTEGER NOT NULL DEFAULT 0 CHECK (override IN (0, 1)),
    answer       TEXT,
    CHECK ((status = 'pending') = (responded_at IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO unlock_requests SELECT * FROM older_requests;
DROP TABLE older_requests;
ALTER TABLE agents ADD COLUMN rests_until TEXT;
ALTER TABLE agents ADD COLUMN rests_why TEXT;
ALTER TABLE tasks ADD COLUMN avoids TEXT;
ALTER TABLE tasks ADD COLUMN avoids_until TEXT;
""",
    # Keys begin with the time, so that those of many askers are stored side by side.
    18: """
ALTER TABLE answered RENAME TO answered_before;
CREATE TABLE answered (
    key    TEXT NOT NULL,
    asker  TEXT NOT NULL,
    op     TEXT NOT NULL,
    digest TEXT NOT NULL,
    answer BLOB NOT NULL,
    at     TEXT NOT NULL,
    PRIMARY KEY (key, asker)
) STRICT, WITHOUT ROWID;
INSERT INTO answered SELECT key, asker, op, digest, answer, at FROM answered_before;
DROP TABLE answered_before;
""",
    # Verdicts on parts of a review.
    19: """
ALTER TABLE reviews ADD COLUMN part_of TEXT;
""",
    # An excerpt is shown once a session.
    20: """
ALTER TABLE agents ADD COLUMN explained TEXT;
""",
    # Leases that are renewed and released with another, for a rename has made them; what a file was
    # before it was gone, also in reviews.
    22: """
ALTER TABLE file_versions ADD COLUMN was TEXT;
ALTER TABLE review_files ADD COLUMN last_hash TEXT;
ALTER TABLE file_locks ADD COLUMN goes_with TEXT;
""",
    # The holder to whom a lease returns when a sub-agent ends.
    23: """
ALTER TABLE file_locks ADD COLUMN lent_by TEXT;
""",
    # When what a lease began with was looked at, where that was not at its grant.
    24: """
ALTER TABLE file_locks ADD COLUMN began_at TEXT;
""",
    # What an agent was told of a file and has not read.
    25: """
ALTER TABLE agent_reads ADD COLUMN base TEXT;
ALTER TABLE agent_reads ADD COLUMN told TEXT CHECK ((told IS NULL) = (base IS NULL));
""",
    # The purpose of a lease and of a place in the queue, and the origin of an agent. Until now
    # their texts had them.
    26: """
ALTER TABLE file_locks ADD COLUMN purpose TEXT NOT NULL DEFAULT 'asked';
ALTER TABLE waiters ADD COLUMN purpose TEXT NOT NULL DEFAULT 'asked';
ALTER TABLE agents ADD COLUMN origin TEXT NOT NULL DEFAULT 'program'
    CHECK (origin IN ('program', 'launch', 'session', 'sub_agent', 'person'));
""" + older_migrations.OF_ROWS + older_migrations.OF_EVENTS,
    # A window of a state's tasks in the order in which they are given out.
    27: "DROP INDEX tasks_by_state",
    # A verdict may keep a text that a person has edited; a review may be of work that did not land.
    29: """
ALTER TABLE verdicts RENAME TO older_verdicts;
CREATE TABLE verdicts (
    review_id TEXT PRIMARY KEY,
    what      TEXT NOT NULL CHECK (what IN ('revert', 'keep', 'undo', 'commit')),
    by        TEXT NOT NULL,
    note      TEXT NOT NULL,
    begun_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO verdicts SELECT * FROM older_verdicts;
DROP TABLE older_verdicts;
ALTER TABLE reviews RENAME TO older_reviews;
CREATE TABLE reviews (
    review_id   TEXT PRIMARY KEY,
    n           INTEGER NOT NULL UNIQUE,
    state       TEXT NOT NULL CHECK (state IN ('open', 'kept', 'reverted', 'reassigned')),
    reason      TEXT NOT NULL CHECK (reason IN ('expired', 'silent', 'left', 'failed', 'unleased',
                                                     'moved', 'overridden', 'unlanded')),
    agent       TEXT,
    task_id     TEXT,
    summary     TEXT NOT NULL,
    log_tail    TEXT NOT NULL,
    leased_at   TEXT,
    opened_at   TEXT NOT NULL,
    decided_at  TEXT,
    decided_by  TEXT,
    note        TEXT,
    events_from INTEGER NOT NULL,
    task_before TEXT,
    part_of     TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO reviews SELECT * FROM older_reviews;
DROP TABLE older_reviews;
""",
}
