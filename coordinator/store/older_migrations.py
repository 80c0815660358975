"""The migrations of the first versions of the schema, and the purposes of rows from before version
26. Only SQL.

Before version 26 the description of a lease, or of an agent, stood for its purpose. A migration
reads the descriptions for the last time, in the state and in the log. A restored older snapshot is
read alike.
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
""",
    4: """
ALTER TABLE waiters ADD COLUMN met TEXT NOT NULL DEFAULT '';
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
CREATE TABLE verdicts (
    review_id TEXT PRIMARY KEY,
    what      TEXT NOT NULL CHECK (what IN ('revert', 'undo')),
    by        TEXT NOT NULL,
    note      TEXT NOT NULL,
    begun_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
""",
    6: """
ALTER TABLE waiter_resources ADD COLUMN worktree TEXT;
""",
    7: """
ALTER TABLE waiters ADD COLUMN gives_way_to TEXT;
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
""",
}


def _purpose(agent: str, scope: str, text: str, task: str) -> str:
    """The expression for the purpose of a lease, or of a place in the queue, by its columns."""
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


#: For rows of the state that have no purpose yet.
OF_ROWS = f"""
UPDATE file_locks SET purpose = {_purpose('locked_by', 'scope', 'task_description', 'task_id')};
UPDATE waiters SET purpose = {_purpose('agent', "''", 'description', 'NULL')};
UPDATE agents SET origin = {_origin('profile', 'parent', 'description', 'token_hash')}
WHERE state <> 'gone';
"""
#: For the events that the state follows from.
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
