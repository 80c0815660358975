"""What the first versions of the schema changed: how `migrations.MIGRATIONS` begins. Only SQL.

What rows of before schema 26 are for, read once from their texts. Only SQL.

Until then a lease's description, and an agent's, stood for its purpose. A migration reads them for
the last time, in the state and in the log, and a restored snapshot that is older is read alike.
"""

from __future__ import annotations

#: From version N to N+1, up to version 14.
OLDER_MIGRATIONS: dict[int, str] = {
    1: """
ALTER TABLE agents ADD COLUMN session TEXT;
ALTER TABLE agents ADD COLUMN hooked_at TEXT;
ALTER TABLE file_locks ADD COLUMN warned INTEGER NOT NULL DEFAULT 0 CHECK (warned IN (0, 1));
CREATE TABLE agent_reads (
    agent TEXT NOT NULL, path TEXT NOT NULL, hash TEXT, at TEXT NOT NULL,
    PRIMARY KEY (agent, path)
) STRICT, WITHOUT ROWID;
""",
    2: """
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
    status       TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'withdrawn')),
    responded_at TEXT,
    responded_by TEXT,
    override     INTEGER NOT NULL DEFAULT 0 CHECK (override IN (0, 1)),
    answer       TEXT,
    CHECK ((status = 'pending') = (responded_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX unlock_requests_by_status ON unlock_requests (status, n);
CREATE UNIQUE INDEX one_question ON unlock_requests (requested_by, scope, resource)
WHERE status = 'pending';
""",
    3: """
ALTER TABLE file_locks RENAME TO older_locks;
CREATE TABLE file_locks (
    fencing_token    INTEGER PRIMARY KEY,
    file_path        TEXT NOT NULL,
    locked_by        TEXT NOT NULL,
    locked_at        TEXT NOT NULL,
    task_description TEXT NOT NULL,
    expires_at       TEXT NOT NULL,
    kind             TEXT NOT NULL CHECK (kind = 'file' OR kind = 'dir' OR kind = 'glob'
                                          OR kind = 'region' OR kind = 'key'),
    mode             TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    scope            TEXT NOT NULL,
    slot             TEXT NOT NULL,
    inode            TEXT,
    worktree         TEXT,
    content_hash     TEXT,
    acquisition_id   TEXT NOT NULL,
    task_id          TEXT,
    ttl_ms           INTEGER NOT NULL CHECK (ttl_ms > 0),
    max_until        TEXT NOT NULL,
    warned           INTEGER NOT NULL DEFAULT 0 CHECK (warned IN (0, 1))
) STRICT;
INSERT INTO file_locks SELECT * FROM older_locks;
DROP TABLE older_locks;
CREATE UNIQUE INDEX one_writer ON file_locks (scope, slot);
CREATE INDEX locks_by_expiry ON file_locks (expires_at);
CREATE INDEX locks_by_holder ON file_locks (locked_by);
CREATE INDEX locks_by_inode  ON file_locks (inode) WHERE inode IS NOT NULL;
CREATE INDEX locks_by_task   ON file_locks (task_id) WHERE task_id IS NOT NULL;
""",
    4: """
CREATE TABLE ripples (
    task_id TEXT PRIMARY KEY,
    after_n INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE set_aside (
    what     TEXT NOT NULL CHECK (what IN ('waiter', 'task', 'lapse')),
    subject  TEXT NOT NULL,
    reason   TEXT NOT NULL,
    since    TEXT NOT NULL,
    tries    INTEGER NOT NULL,
    retry_at TEXT NOT NULL,
    PRIMARY KEY (what, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX set_aside_due ON set_aside (retry_at);
ALTER TABLE waiters ADD COLUMN met TEXT NOT NULL DEFAULT '';
CREATE INDEX waiters_by_met ON waiters (met);
ALTER TABLE reviews RENAME TO older_reviews;
CREATE TABLE reviews (
    review_id   TEXT PRIMARY KEY,
    n           INTEGER NOT NULL UNIQUE,
    state       TEXT NOT NULL CHECK (state IN ('open', 'kept', 'reverted', 'reassigned')),
    reason      TEXT NOT NULL CHECK (reason IN ('expired', 'silent', 'left', 'failed', 'unleased',
                                                'moved', 'overridden')),
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
    task_before TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO reviews SELECT * FROM older_reviews;
DROP TABLE older_reviews;
CREATE INDEX reviews_by_state ON reviews (state, n);
""",
    5: """
ALTER TABLE blobs ADD COLUMN mode INTEGER;
ALTER TABLE review_files RENAME TO older_review_files;
CREATE TABLE review_files (
    review_id     TEXT NOT NULL,
    path          TEXT NOT NULL,
    scope         TEXT NOT NULL,
    worktree      TEXT,
    change        TEXT NOT NULL CHECK (change IN ('modified', 'created', 'deleted')),
    kept          INTEGER NOT NULL CHECK (kept IN (0, 1)),
    baseline_hash TEXT,
    flagged_hash  TEXT,
    verdict_hash  TEXT,
    written_hash  TEXT,
    verdict_mode  INTEGER,
    inode         TEXT,
    PRIMARY KEY (review_id, path)
) STRICT, WITHOUT ROWID;
INSERT INTO review_files SELECT *, NULL, NULL FROM older_review_files;
DROP TABLE older_review_files;
CREATE INDEX review_scopes ON review_files (scope);
CREATE TABLE verdicts (
    review_id TEXT PRIMARY KEY,
    what      TEXT NOT NULL CHECK (what IN ('revert', 'undo')),
    by        TEXT NOT NULL,
    note      TEXT NOT NULL,
    begun_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE verdict_steps (
    review_id     TEXT NOT NULL,
    n             INTEGER NOT NULL,
    path          TEXT NOT NULL,
    scope         TEXT NOT NULL,
    worktree      TEXT,
    old_hash      TEXT,
    old_mode      INTEGER NOT NULL,
    new_hash      TEXT,
    new_mode      INTEGER NOT NULL,
    aside         TEXT NOT NULL,
    in_place      INTEGER NOT NULL CHECK (in_place IN (0, 1)),
    done          INTEGER NOT NULL CHECK (done IN (0, 1)),
    PRIMARY KEY (review_id, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE review_saved (
    review_id TEXT NOT NULL,
    path      TEXT NOT NULL,
    hash      TEXT NOT NULL,
    PRIMARY KEY (review_id, path, hash)
) STRICT, WITHOUT ROWID;
""",
    6: """
ALTER TABLE waiter_resources ADD COLUMN worktree TEXT;
""",
    7: """
ALTER TABLE waiters ADD COLUMN gives_way_to TEXT;
CREATE INDEX agents_by_parent ON agents (parent) WHERE parent IS NOT NULL;
""",
    8: """
ALTER TABLE verdicts RENAME TO older_verdicts;
CREATE TABLE verdicts (
    review_id TEXT PRIMARY KEY,
    what      TEXT NOT NULL CHECK (what IN ('revert', 'undo', 'commit')),
    by        TEXT NOT NULL,
    note      TEXT NOT NULL,
    begun_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO verdicts SELECT * FROM older_verdicts;
DROP TABLE older_verdicts;
""",
    9: """
ALTER TABLE agent_reads ADD COLUMN partial INTEGER NOT NULL DEFAULT 0 CHECK (partial IN (0, 1));
""",
    10: """
CREATE TABLE candidates (
    task_id TEXT NOT NULL,
    n       INTEGER NOT NULL,
    agent   TEXT NOT NULL,
    at      TEXT NOT NULL,
    outcome TEXT NOT NULL,
    remedy  TEXT NOT NULL CHECK (remedy IN ('none', 'widen', 'escalate', 'afresh', 'correct',
                                            'person')),
    note    TEXT NOT NULL,
    PRIMARY KEY (task_id, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE candidate_regions (
    task_id  TEXT NOT NULL,
    n        INTEGER NOT NULL,
    resource TEXT NOT NULL,
    base     TEXT,
    content  TEXT,
    PRIMARY KEY (task_id, n, resource)
) STRICT, WITHOUT ROWID;
""",
    11: """
ALTER TABLE waiter_resources RENAME TO older_waiter_resources;
CREATE TABLE waiter_resources (
    acquisition_id TEXT NOT NULL,
    name           TEXT NOT NULL,
    kind           TEXT NOT NULL,
    scope          TEXT NOT NULL,
    worktree       TEXT,
    content_hash   TEXT,
    PRIMARY KEY (acquisition_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO waiter_resources SELECT *, NULL FROM older_waiter_resources;
DROP TABLE older_waiter_resources;
CREATE INDEX waiting_on_scope ON waiter_resources (scope);
CREATE TABLE signals (
    scope        TEXT NOT NULL,
    name         TEXT NOT NULL,
    subject      TEXT NOT NULL,
    strength     REAL NOT NULL,
    half_life_ms INTEGER NOT NULL CHECK (half_life_ms > 0),
    at           TEXT NOT NULL,
    agent        TEXT,
    note         TEXT NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;
""",
    12: """
CREATE TABLE state_versions (
    scope         TEXT NOT NULL,
    version       INTEGER NOT NULL CHECK (version > 0),
    key           TEXT NOT NULL,
    content       TEXT,
    size          INTEGER NOT NULL,
    written_by    TEXT NOT NULL,
    written_at    TEXT NOT NULL,
    fencing_token INTEGER,
    PRIMARY KEY (scope, version)
) STRICT, WITHOUT ROWID;
CREATE TABLE changes (
    change_id    TEXT PRIMARY KEY,
    n            INTEGER NOT NULL UNIQUE,
    key          TEXT NOT NULL,
    scope        TEXT NOT NULL,
    asked_by     TEXT NOT NULL,
    content      TEXT NOT NULL,
    note         TEXT NOT NULL,
    during       TEXT,
    state        TEXT NOT NULL CHECK (state IN ('queued', 'given', 'done', 'refused', 'dead',
                                                'dropped')),
    attempts     INTEGER NOT NULL,
    attempts_max INTEGER NOT NULL CHECK (attempts_max >= 1),
    not_before   TEXT,
    given_to     TEXT,
    given_until  TEXT,
    version      INTEGER,
    why          TEXT NOT NULL,
    asked_at     TEXT NOT NULL,
    closed_at    TEXT,
    CHECK ((state = 'given') = (given_to IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_by_state ON changes (state, n);
CREATE INDEX changes_of_key ON changes (scope, n) WHERE state IN ('queued', 'given');
CREATE INDEX changes_within ON changes (during) WHERE during IS NOT NULL;
CREATE INDEX changes_by_close ON changes (closed_at) WHERE closed_at IS NOT NULL;
""",
    13: """
CREATE TABLE answered (
    asker  TEXT NOT NULL,
    key    TEXT NOT NULL,
    op     TEXT NOT NULL,
    digest TEXT NOT NULL,
    answer BLOB NOT NULL,
    at     TEXT NOT NULL,
    PRIMARY KEY (asker, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX answered_by_age ON answered (at);
""",
}


def _purpose(agent: str, scope: str, text: str, task: str) -> str:
    """The expression for the purpose of a lease, or of a place in line, by its columns."""
    return f"""CASE
    WHEN {agent} GLOB 'coord/C-*' THEN 'commit:' || substr({agent}, 7)
    WHEN {agent} GLOB 'coord/*' THEN 'verdict:' || substr({agent}, 7)
    WHEN {scope} GLOB 'k/edit/*' THEN 'window'
    WHEN {scope} GLOB 'k/git/index/*' AND {text} GLOB 'git *' THEN 'turn'
    WHEN {text} GLOB 'writes C-[0-9]*' THEN 'commit:' || substr({text}, 8)
    WHEN {text} GLOB '* by its hook' THEN 'hook:' || substr({text}, 1, length({text}) - 12)
    WHEN {text} = 'it has lost its writes too often' THEN 'losses'
    WHEN {text} = 'changed by its command' THEN 'adopted'
    WHEN {task} IS NOT NULL THEN 'claim'
    ELSE 'asked' END"""


def _origin(profile: str, parent: str, text: str, token: str) -> str:
    """The expression for how an agent came, by its columns."""
    return f"""CASE
    WHEN {text} GLOB 'launched by run *' THEN 'launch'
    WHEN {token} IS NOT NULL THEN 'program'
    WHEN {profile} = 'manual' AND {text} = 'acted for by a person' THEN 'person'
    WHEN {text} = 'a session of ' || {profile} THEN 'session'
    WHEN {text} GLOB '* of ' || {parent} THEN 'sub_agent'
    ELSE 'program' END"""


#: Of rows of the state whose purposes are those of no column yet.
OF_ROWS = f"""
UPDATE file_locks SET purpose = {_purpose('locked_by', 'scope', 'task_description', 'task_id')};
UPDATE waiters SET purpose = {_purpose('agent', "''", 'description', 'NULL')};
UPDATE agents SET origin = {_origin('profile', 'parent', 'description', 'token_hash')}
WHERE state <> 'gone';
"""
#: Of the events that the state follows from.
OF_EVENTS = f"""
UPDATE events SET data = json_set(data, '$.purpose', {_purpose(
    "(data ->> 'agent')", "(data ->> 'scope')", "(data ->> 'description')", "(data ->> 'task')")})
WHERE kind = 'lease_granted';
UPDATE events SET data = json_set(data, '$.purpose', {_purpose(
    "(data ->> 'agent')", "''", "(data ->> 'description')", 'NULL')})
WHERE kind = 'waiter_queued';
UPDATE events SET data = json_set(data, '$.origin', {_origin(
    "(data ->> 'profile')", "(data ->> 'parent')", "(data ->> 'description')",
    "(data ->> 'token_hash')")})
WHERE kind = 'agent_registered';
UPDATE agents SET origin = coalesce((
    SELECT data ->> 'origin' FROM events WHERE kind = 'agent_registered'
    AND agent = agents.agent ORDER BY seq DESC LIMIT 1), origin);
"""
