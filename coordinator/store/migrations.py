"""Older databases brought forward: what each version of the schema changed. Only SQL, no decision.
"""

from coordinator.store import older_migrations
from coordinator.store.older_migrations import OLDER_MIGRATIONS

SCHEMA_VERSION = 30
#: From version N to N+1; forward only. A test compares each migrated version with `schema.sql`.
MIGRATIONS: dict[int, str] = {
    **OLDER_MIGRATIONS,
    14: """
CREATE TABLE steps (
    step_id      TEXT PRIMARY KEY,
    n            INTEGER NOT NULL UNIQUE,
    kind         TEXT NOT NULL CHECK (kind IN ('call', 'acquire', 'propose', 'webhook')),
    name         TEXT NOT NULL,
    agent        TEXT,
    resources    TEXT NOT NULL,
    content      TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('waiting', 'given', 'done', 'dead', 'dropped')),
    attempts     INTEGER NOT NULL,
    attempts_max INTEGER NOT NULL CHECK (attempts_max >= 1),
    not_before   TEXT,
    given_to     TEXT,
    given_until  TEXT,
    why          TEXT NOT NULL,
    asked_at     TEXT NOT NULL,
    closed_at    TEXT,
    event        INTEGER,
    CHECK ((state = 'given') = (given_to IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX steps_by_state ON steps (state, kind, n);
CREATE INDEX steps_by_close ON steps (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX steps_by_event ON steps (event) WHERE event IS NOT NULL;
""",
    15: """
CREATE TABLE lost_writes (
    agent     TEXT NOT NULL,
    scope     TEXT NOT NULL,
    resource  TEXT NOT NULL,
    in_a_row  INTEGER NOT NULL,
    total     INTEGER NOT NULL,
    wasted_ms INTEGER NOT NULL,
    last_at   TEXT NOT NULL,
    PRIMARY KEY (agent, scope)
) STRICT, WITHOUT ROWID;
""",
    16: """
CREATE TABLE finished_work (
    n       INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    agent   TEXT NOT NULL,
    at      TEXT NOT NULL,
    state   TEXT NOT NULL CHECK (state IN ('waiting', 'good', 'broken', 'held')),
    because TEXT,
    head    TEXT,
    before  TEXT,
    after   TEXT,
    CHECK ((because IS NOT NULL) = (state IN ('broken', 'held')))
) STRICT;
CREATE INDEX finished_by_state ON finished_work (state, n);
CREATE TABLE finished_files (
    n    INTEGER NOT NULL,
    path TEXT NOT NULL,
    hash TEXT,
    PRIMARY KEY (n, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE verifications (
    verification_id TEXT PRIMARY KEY,
    n        INTEGER NOT NULL UNIQUE,
    state    TEXT NOT NULL CHECK (state IN ('running', 'good', 'broken', 'base', 'committed',
                                            'flaky', 'untold')),
    by       TEXT NOT NULL,
    begun_at TEXT NOT NULL,
    ended_at TEXT,
    command  TEXT NOT NULL,
    upto     INTEGER NOT NULL,
    runs     INTEGER NOT NULL,
    tasks    TEXT NOT NULL,
    said     TEXT NOT NULL,
    tail     TEXT NOT NULL,
    CHECK ((state = 'running') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_verification ON verifications (state) WHERE state = 'running';
CREATE TABLE verified_base (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    base_commit TEXT NOT NULL,
    head        TEXT NOT NULL,
    since       INTEGER NOT NULL,
    at          TEXT NOT NULL
) STRICT;
""",
    17: """
CREATE TABLE messages (
    message_id TEXT PRIMARY KEY,
    n          INTEGER NOT NULL UNIQUE,
    thread     TEXT NOT NULL,
    sender     TEXT NOT NULL,
    recipient  TEXT NOT NULL,
    task_id    TEXT,
    reply_to   TEXT,
    text       TEXT NOT NULL CHECK (text <> ''),
    sent_at    TEXT NOT NULL,
    seen_at    TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_by_sender ON messages (sender, sent_at);
CREATE INDEX messages_of_thread ON messages (thread, n);
CREATE INDEX messages_of_task   ON messages (task_id, n) WHERE task_id IS NOT NULL;
CREATE INDEX messages_unseen    ON messages (n) WHERE recipient = 'human' AND seen_at IS NULL;
CREATE INDEX messages_by_age    ON messages (sent_at);
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
CREATE INDEX unlock_requests_by_status ON unlock_requests (status, n);
CREATE UNIQUE INDEX one_question ON unlock_requests (requested_by, scope, resource)
WHERE status = 'pending';
ALTER TABLE agents ADD COLUMN rests_until TEXT;
ALTER TABLE agents ADD COLUMN rests_why TEXT;
ALTER TABLE tasks ADD COLUMN avoids TEXT;
ALTER TABLE tasks ADD COLUMN avoids_until TEXT;
CREATE INDEX tasks_by_avoided ON tasks (avoids, avoids_until) WHERE avoids IS NOT NULL;
""",
    # Keys begin with the time, so that those of many askers lie side by side.
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
CREATE INDEX answered_by_age ON answered (at);
""",
    # Verdicts on parts of a review.
    19: """
ALTER TABLE reviews ADD COLUMN part_of TEXT;
CREATE INDEX reviews_by_whole ON reviews (part_of) WHERE part_of IS NOT NULL;
CREATE TABLE verdict_parts (
    review_id   TEXT NOT NULL,
    path        TEXT NOT NULL,
    hunks       TEXT NOT NULL,
    part_before TEXT,
    part_after  TEXT,
    rest_before TEXT,
    rest_after  TEXT,
    PRIMARY KEY (review_id, path)
) STRICT, WITHOUT ROWID;
""",
    # An excerpt is shown once a session.
    20: """
ALTER TABLE agents ADD COLUMN explained TEXT;
""",
    # Which tasks read what an agent reads already.
    21: """
CREATE INDEX shared_resources ON task_resources (scope) WHERE mode = 'shared';
""",
    # Leases that are renewed and released with another, for a rename has made them; requests in
    # line whose answers are to be kept; what a file was before it was gone, also in reviews; which
    # leases have lapsed.
    22: """
CREATE INDEX events_of_lapses ON events (resource, agent) WHERE kind = 'lease_lapsed';
ALTER TABLE file_versions ADD COLUMN was TEXT;
ALTER TABLE review_files ADD COLUMN last_hash TEXT;
ALTER TABLE file_locks ADD COLUMN goes_with TEXT;
CREATE INDEX locks_renamed ON file_locks (goes_with) WHERE goes_with IS NOT NULL;
CREATE TABLE awaited (
    key            TEXT NOT NULL,
    asker          TEXT NOT NULL,
    op             TEXT NOT NULL,
    digest         TEXT NOT NULL,
    acquisition_id TEXT NOT NULL,
    PRIMARY KEY (key, asker)
) STRICT;
CREATE INDEX awaited_by_place ON awaited (acquisition_id);
""",
    # Whose a lease is again when a sub-agent ends.
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
CREATE TABLE kept_edits (
    agent TEXT NOT NULL, copy TEXT NOT NULL, n INTEGER NOT NULL, path TEXT NOT NULL, worktree TEXT,
    before TEXT, after TEXT, PRIMARY KEY (agent, copy, n)
) STRICT, WITHOUT ROWID;
""",
    # What a lease and a place in line are for, and how an agent came: until now in their texts.
    26: """
ALTER TABLE file_locks ADD COLUMN purpose TEXT NOT NULL DEFAULT 'asked';
ALTER TABLE waiters ADD COLUMN purpose TEXT NOT NULL DEFAULT 'asked';
ALTER TABLE agents ADD COLUMN origin TEXT NOT NULL DEFAULT 'program'
    CHECK (origin IN ('program', 'launch', 'session', 'sub_agent', 'person'));
""" + older_migrations.OF_ROWS + older_migrations.OF_EVENTS,
    # A window of a state's tasks in the order in which they are given out.
    27: "DROP INDEX tasks_by_state; CREATE INDEX tasks_by_rank ON tasks (state, priority DESC, n)",
    28: "CREATE TABLE waypoints (seq INTEGER PRIMARY KEY, state BLOB NOT NULL, "
        "begun BLOB NOT NULL) STRICT",
    # A verdict may keep a text that a person has edited; a review may be of work that did not land;
    # what waits to land.
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
CREATE INDEX reviews_by_state ON reviews (state, n);
CREATE INDEX reviews_by_whole ON reviews (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX reviews_by_decision ON reviews (decided_at, n) WHERE decided_at IS NOT NULL;
CREATE TABLE landings (
    task_id TEXT PRIMARY KEY, agent TEXT NOT NULL, target TEXT NOT NULL, queued_at TEXT NOT NULL,
    began_at TEXT
) STRICT, WITHOUT ROWID;
""",
}
