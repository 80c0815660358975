-- Migrations: what each version of the schema changed in tables that were there before. A part is
-- called by the version N that it leads from, to N+1; forward only. A test compares each migrated
-- version with `schema.sql`, which alone makes new tables.

-- part: 1
ALTER TABLE agents ADD COLUMN session TEXT;
ALTER TABLE agents ADD COLUMN hooked_at TEXT;
ALTER TABLE file_locks ADD COLUMN warned INTEGER NOT NULL DEFAULT 0 CHECK (warned IN (0, 1));
CREATE TABLE agent_reads (
    agent TEXT NOT NULL, path TEXT NOT NULL, hash TEXT, at TEXT NOT NULL,
    PRIMARY KEY (agent, path)
) STRICT, WITHOUT ROWID;

-- part: 2
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

-- part: 3
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

-- part: 4
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

-- part: 5
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

-- part: 6
ALTER TABLE waiter_resources ADD COLUMN worktree TEXT;

-- part: 7
ALTER TABLE waiters ADD COLUMN gives_way_to TEXT;

-- part: 8
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

-- part: 9
ALTER TABLE agent_reads ADD COLUMN partial INTEGER NOT NULL DEFAULT 0 CHECK (partial IN (0, 1));

-- part: 11
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

-- part: 13
CREATE TABLE answered (
    asker  TEXT NOT NULL,
    key    TEXT NOT NULL,
    op     TEXT NOT NULL,
    digest TEXT NOT NULL,
    answer BLOB NOT NULL,
    at     TEXT NOT NULL,
    PRIMARY KEY (asker, key)
) STRICT, WITHOUT ROWID;

-- part: 17
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

-- part: 18
-- Keys begin with the time, so that those of many askers are stored side by side.
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

-- part: 19
-- Verdicts on parts of a review.
ALTER TABLE reviews ADD COLUMN part_of TEXT;

-- part: 20
-- An excerpt is shown once a session.
ALTER TABLE agents ADD COLUMN explained TEXT;

-- part: 22
-- Leases that are renewed and released with another, for a rename has made them; what a file was
-- before it was gone, also in reviews.
ALTER TABLE file_versions ADD COLUMN was TEXT;
ALTER TABLE review_files ADD COLUMN last_hash TEXT;
ALTER TABLE file_locks ADD COLUMN goes_with TEXT;

-- part: 23
-- The holder to whom a lease returns when a sub-agent ends.
ALTER TABLE file_locks ADD COLUMN lent_by TEXT;

-- part: 24
-- When what a lease began with was looked at, where that was not at its grant.
ALTER TABLE file_locks ADD COLUMN began_at TEXT;

-- part: 25
-- What an agent was told of a file and has not read.
ALTER TABLE agent_reads ADD COLUMN base TEXT;
ALTER TABLE agent_reads ADD COLUMN told TEXT CHECK ((told IS NULL) = (base IS NULL));

-- part: 26
-- The purpose of a lease and of a place in the queue, and the origin of an agent. Until now
-- their texts had them.
ALTER TABLE file_locks ADD COLUMN purpose TEXT NOT NULL DEFAULT 'asked';
ALTER TABLE waiters ADD COLUMN purpose TEXT NOT NULL DEFAULT 'asked';
ALTER TABLE agents ADD COLUMN origin TEXT NOT NULL DEFAULT 'program'
    CHECK (origin IN ('program', 'launch', 'session', 'sub_agent', 'person'));

-- part: 27
-- A window of a state's tasks in the order in which they are given out.
DROP INDEX tasks_by_state;

-- part: 29
-- A verdict may keep a text that a person has edited; a review may be of work that did not land.
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

-- part: rows without a purpose
-- Before version 26 the description of a lease, or of an agent, stood for its purpose. It is read for
-- the last time: in the state, and in that of a restored older snapshot.
UPDATE file_locks SET purpose = CASE
    WHEN locked_by GLOB 'coord/C-*' THEN 'commit:' || substr(locked_by, 7)
    WHEN locked_by GLOB 'coord/*' THEN 'verdict:' || substr(locked_by, 7)
    WHEN scope GLOB 'k/edit/*' THEN 'window'
    WHEN scope GLOB 'k/git/index/*' AND task_description GLOB 'git *' THEN 'turn'
    WHEN task_description GLOB 'writes C-[0-9]*' THEN 'commit:' || substr(task_description, 8)
    WHEN task_description GLOB '* by its hook' THEN 'hook:' || substr(task_description, 1, length(task_description) - 12)
    WHEN task_description = 'it has lost its writes too often' THEN 'losses'
    WHEN task_description = 'changed by its command' THEN 'adopted'
    WHEN task_id IS NOT NULL THEN 'claim'
    ELSE 'asked' END;
UPDATE waiters SET purpose = CASE
    WHEN agent GLOB 'coord/C-*' THEN 'commit:' || substr(agent, 7)
    WHEN agent GLOB 'coord/*' THEN 'verdict:' || substr(agent, 7)
    WHEN '' GLOB 'k/edit/*' THEN 'window'
    WHEN '' GLOB 'k/git/index/*' AND description GLOB 'git *' THEN 'turn'
    WHEN description GLOB 'writes C-[0-9]*' THEN 'commit:' || substr(description, 8)
    WHEN description GLOB '* by its hook' THEN 'hook:' || substr(description, 1, length(description) - 12)
    WHEN description = 'it has lost its writes too often' THEN 'losses'
    WHEN description = 'changed by its command' THEN 'adopted'
    WHEN NULL IS NOT NULL THEN 'claim'
    ELSE 'asked' END;
UPDATE agents SET origin = CASE
    WHEN description GLOB 'launched by run *' THEN 'launch'
    WHEN token_hash IS NOT NULL THEN 'program'
    WHEN profile = 'manual' AND description = 'acted for by a person' THEN 'person'
    WHEN description = 'a session of ' || profile THEN 'session'
    WHEN description GLOB '* of ' || parent THEN 'sub_agent'
    ELSE 'program' END
WHERE state <> 'gone';

-- part: events without a purpose
-- The same in the log, from which the state follows.
UPDATE events SET data = json_set(data, '$.purpose', CASE
    WHEN (data ->> 'agent') GLOB 'coord/C-*' THEN 'commit:' || substr((data ->> 'agent'), 7)
    WHEN (data ->> 'agent') GLOB 'coord/*' THEN 'verdict:' || substr((data ->> 'agent'), 7)
    WHEN (data ->> 'scope') GLOB 'k/edit/*' THEN 'window'
    WHEN (data ->> 'scope') GLOB 'k/git/index/*' AND (data ->> 'description') GLOB 'git *' THEN 'turn'
    WHEN (data ->> 'description') GLOB 'writes C-[0-9]*' THEN 'commit:' || substr((data ->> 'description'), 8)
    WHEN (data ->> 'description') GLOB '* by its hook' THEN 'hook:' || substr((data ->> 'description'), 1, length((data ->> 'description')) - 12)
    WHEN (data ->> 'description') = 'it has lost its writes too often' THEN 'losses'
    WHEN (data ->> 'description') = 'changed by its command' THEN 'adopted'
    WHEN (data ->> 'task') IS NOT NULL THEN 'claim'
    ELSE 'asked' END)
WHERE kind = 'lease_granted';
UPDATE events SET data = json_set(data, '$.purpose', CASE
    WHEN (data ->> 'agent') GLOB 'coord/C-*' THEN 'commit:' || substr((data ->> 'agent'), 7)
    WHEN (data ->> 'agent') GLOB 'coord/*' THEN 'verdict:' || substr((data ->> 'agent'), 7)
    WHEN '' GLOB 'k/edit/*' THEN 'window'
    WHEN '' GLOB 'k/git/index/*' AND (data ->> 'description') GLOB 'git *' THEN 'turn'
    WHEN (data ->> 'description') GLOB 'writes C-[0-9]*' THEN 'commit:' || substr((data ->> 'description'), 8)
    WHEN (data ->> 'description') GLOB '* by its hook' THEN 'hook:' || substr((data ->> 'description'), 1, length((data ->> 'description')) - 12)
    WHEN (data ->> 'description') = 'it has lost its writes too often' THEN 'losses'
    WHEN (data ->> 'description') = 'changed by its command' THEN 'adopted'
    WHEN NULL IS NOT NULL THEN 'claim'
    ELSE 'asked' END)
WHERE kind = 'waiter_queued';
UPDATE events SET data = json_set(data, '$.origin', CASE
    WHEN (data ->> 'description') GLOB 'launched by run *' THEN 'launch'
    WHEN (data ->> 'token_hash') IS NOT NULL THEN 'program'
    WHEN (data ->> 'profile') = 'manual' AND (data ->> 'description') = 'acted for by a person' THEN 'person'
    WHEN (data ->> 'description') = 'a session of ' || (data ->> 'profile') THEN 'session'
    WHEN (data ->> 'description') GLOB '* of ' || (data ->> 'parent') THEN 'sub_agent'
    ELSE 'program' END)
WHERE kind = 'agent_registered';
UPDATE agents SET origin = coalesce((
    SELECT data ->> 'origin' FROM events WHERE kind = 'agent_registered'
    AND agent = agents.agent ORDER BY seq DESC LIMIT 1), origin);
