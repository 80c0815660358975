-- coord's database, whole. The only DDL; read it from top to bottom.
-- What an older database lacks of it is made from here when it is opened; so a new table or index
-- raises the version below, and columns that change have a migration (coordinator/store/migrations.sql).
PRAGMA user_version = 31;

-- Instants are UTC ISO-8601 text with milliseconds (2026-11-21T14:32:00.000Z), so that text order is
-- time order and a person can read a row. Durations are integers in milliseconds, named *_ms.
-- No statement asks the database for the time: it is always a parameter.
--
-- State tables change only by applying an event (`apply`, in its class), in the
-- transaction that appends it: replaying `events` over the last `snapshots` row gives the state.
-- Tables marked DERIVED are indexes that can be rebuilt, and are not compared by a replay.

-- schema_version, root, created_at, daemon facts.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Counters only rise and are never reused: fencing, waiter, unlock, task, review, notice, …
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL CHECK (value >= 0)
) STRICT, WITHOUT ROWID;

-- The append-only log. `data` is the event's whole payload as JSON.
CREATE TABLE events (
    seq      INTEGER PRIMARY KEY,
    at       TEXT NOT NULL,
    kind     TEXT NOT NULL,
    agent    TEXT,
    task     TEXT,
    resource TEXT,
    data     TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_task ON events (task, seq) WHERE task IS NOT NULL;
CREATE INDEX events_of_lapses ON events (resource, agent) WHERE kind = 'lease_lapsed';

-- What the log began with after compaction: the state tables as they were after event `seq`.
CREATE TABLE snapshots (
    seq   INTEGER PRIMARY KEY,
    at    TEXT NOT NULL,
    state BLOB NOT NULL            -- zlib-compressed JSON: {table: [row, …]}
) STRICT;

-- DERIVED: how things were after some events of the log, so that a question about the past reads
-- the log from the nearest one on. Whoever rebuilds the state to check it reads none of them.
CREATE TABLE waypoints (
    seq   INTEGER PRIMARY KEY,
    state BLOB NOT NULL,           -- as in `snapshots`
    begun BLOB NOT NULL            -- zlib-compressed MessagePack: what had begun and not ended
) STRICT;

-- Holders: registered agent sessions and their sub-agents; never a process id.
-- active -> stale (silent past its heartbeat) -> active again | gone; active -> gone (left, killed).
CREATE TABLE agents (
    agent         TEXT PRIMARY KEY,
    parent        TEXT,
    profile       TEXT NOT NULL,
    description   TEXT NOT NULL,
    token_hash    TEXT,                     -- of the secret that acts for it; NULL: operator only
    state         TEXT NOT NULL CHECK (state IN ('active', 'stale', 'gone')),
    registered_at TEXT NOT NULL,
    seen_at       TEXT NOT NULL,            -- last activity, to within 15 s
    progress_at   TEXT,                     -- last sign that its work moves
    progress      TEXT,                     -- what it said it is doing
    silence_ms    INTEGER,                  -- silent longer than this: stale; NULL: a program after 15 minutes, without
                                            -- connection and lease, others never
    session       TEXT,                     -- the agent CLI's own id of its session, as its hooks say
    hooked_at     TEXT,                     -- when a hook of its first reported in; NULL: never
    rests_until   TEXT,                     -- its provider's limit is reached: it is given nothing before
    rests_why     TEXT,
    explained     TEXT,                     -- sections of the archive that it was shown in this session, a line
                                            -- each: instant, section; it is not shown them again
    -- how it came: it registered; a launch started it; its hooks told of it; a person acted for it
    origin        TEXT NOT NULL DEFAULT 'program'
        CHECK (origin IN ('program', 'launch', 'session', 'sub_agent', 'person'))
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_by_parent ON agents (parent) WHERE parent IS NOT NULL;
CREATE UNIQUE INDEX agents_token ON agents (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX agents_there ON agents (registered_at, agent) WHERE state <> 'gone';
-- Which process registered a program, and whether another has acted with its token since. Not evented,
-- like `answered`: about the machine, not the state.
CREATE TABLE program_processes (
    agent   TEXT PRIMARY KEY,
    process TEXT NOT NULL,                  -- start of the machine, process namespace, number, beginning; '': unknown
    handed  INTEGER NOT NULL CHECK (handed IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Live leases, and lapsed ones that nobody has tidied yet: a lease is dead when now >= expires_at,
-- whoever looks. Granted -> renewed* -> released | lapsed (row deleted; the log keeps the story).
CREATE TABLE file_locks (
    fencing_token    INTEGER PRIMARY KEY,   -- rises by each grant, never reused
    file_path        TEXT NOT NULL,         -- the resource's canonical name
    locked_by        TEXT NOT NULL,
    locked_at        TEXT NOT NULL,
    task_description TEXT NOT NULL,
    expires_at       TEXT NOT NULL,
    -- not IN (…): of more than two SQLite builds a table, for each grant anew
    kind             TEXT NOT NULL CHECK (kind = 'file' OR kind = 'dir' OR kind = 'glob'
                                          OR kind = 'region' OR kind = 'key'),
    mode             TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    scope            TEXT NOT NULL,         -- containment is prefix order of scopes
    slot             TEXT NOT NULL,         -- '' when exclusive, else the holder (and pattern)
    inode            TEXT,                  -- which file at grant: hard links and renames collide
    worktree         TEXT,                  -- linked worktree it was taken in; NULL: the main one
    content_hash     TEXT,                  -- bytes at grant (file, region); NULL: absent
    acquisition_id   TEXT NOT NULL,         -- A-n, n the first fencing token of its set
    task_id          TEXT,
    ttl_ms           INTEGER NOT NULL CHECK (ttl_ms > 0),
    max_until        TEXT NOT NULL,         -- renewals never reach past this (max_hold)
    warned           INTEGER NOT NULL DEFAULT 0 CHECK (warned IN (0, 1)), -- told that it ends soon
    agreed_as        TEXT                   -- U-n: shared with others who write it, too, as they agreed
        CHECK (agreed_as IS NULL OR mode = 'shared'),
    goes_with        TEXT,                  -- a rename made it: it ends with its holder's lease on this
    lent_by          TEXT,                  -- a session, or a sub-agent of it: has it back in the end
    began_at         TEXT,                  -- when what it began with was looked at; NULL: at its grant
    purpose          TEXT NOT NULL DEFAULT 'asked' -- what it is for (coordinator/words/purposes.py)
) STRICT;
-- One exclusive lease to a scope; one shared lease to a scope and holder.
CREATE UNIQUE INDEX one_writer ON file_locks (scope, slot);
CREATE INDEX locks_by_expiry ON file_locks (expires_at);
CREATE INDEX locks_by_holder ON file_locks (locked_by);
CREATE INDEX locks_by_inode  ON file_locks (inode) WHERE inode IS NOT NULL;
CREATE INDEX locks_by_task   ON file_locks (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX locks_renamed   ON file_locks (goes_with) WHERE goes_with IS NOT NULL;

-- Content at grant of each file below a leased directory or glob; of a leased region that of its file.
CREATE TABLE baselines (
    fencing_token INTEGER NOT NULL,
    path          TEXT NOT NULL,
    hash          TEXT NOT NULL,
    PRIMARY KEY (fencing_token, path)
) STRICT, WITHOUT ROWID;

-- Refused acquisitions that stand in line; served by priority (rising with age), then age.
CREATE TABLE waiters (
    acquisition_id TEXT PRIMARY KEY,
    agent          TEXT NOT NULL,
    mode           TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    priority       INTEGER NOT NULL,
    asked_at       TEXT NOT NULL,
    until          TEXT NOT NULL,           -- leaves the line at this instant
    held           INTEGER NOT NULL CHECK (held IN (0, 1)),  -- 1: a request is held open for it
    ttl_ms         INTEGER NOT NULL,
    task_id        TEXT,
    description    TEXT NOT NULL,
    met            TEXT NOT NULL DEFAULT '', -- scope of the lease in its way, were it under another name
    gives_way_to   TEXT,                    -- told to give its work back, for this agent's sake
    purpose        TEXT NOT NULL DEFAULT 'asked' -- of the lease that it waits for
) STRICT, WITHOUT ROWID;
CREATE INDEX waiters_by_agent ON waiters (agent);
CREATE INDEX waiters_by_met   ON waiters (met);
CREATE TABLE waiter_resources (
    acquisition_id TEXT NOT NULL,
    name           TEXT NOT NULL,
    kind           TEXT NOT NULL,
    scope          TEXT NOT NULL,
    worktree       TEXT,                    -- linked worktree it was asked for in; NULL: the main one
    content_hash   TEXT,                    -- of its file, when it was asked for; NULL: not known
    PRIMARY KEY (acquisition_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX waiting_on_scope ON waiter_resources (scope);

-- Unlock requests: a holder is asked to release what overlaps a resource before its lease ends.
-- pending -> approved | narrowed (the holder keeps a part) | coexisting (both hold it, and write it) |
-- rejected (by the holder, or a person by force) | withdrawn (by the asker; by coord, when the lease ended unanswered or the asker left the line). While it is pending, the asker
-- stands in line under the request's own id (waiters.acquisition_id = request_id).
CREATE TABLE unlock_requests (
    request_id   TEXT PRIMARY KEY,            -- U-n
    n            INTEGER NOT NULL UNIQUE,
    requested_by TEXT NOT NULL,
    holder       TEXT NOT NULL,               -- who is asked; follows a hand-over to a sub-agent
    resource     TEXT NOT NULL,
    kind         TEXT NOT NULL,
    scope        TEXT NOT NULL,
    mode         TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    reason       TEXT NOT NULL CHECK (reason <> ''),
    requested_at TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'narrowed', 'coexisting',
                                                 'rejected', 'withdrawn')),
    responded_at TEXT,
    responded_by TEXT,                        -- the holder, a person, the asker, or coord itself
    override     INTEGER NOT NULL DEFAULT 0 CHECK (override IN (0, 1)),  -- a person, by force
    answer       TEXT,
    CHECK ((status = 'pending') = (responded_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX unlock_requests_by_status ON unlock_requests (status, n);
-- One open question to an asker and resource.
CREATE UNIQUE INDEX one_question ON unlock_requests (requested_by, scope, resource)
WHERE status = 'pending';

-- The backlog. Transitions are in coordinator/rules/backlog.py:
-- pending -> ready -> claimed -> done | failed (backoff) -> ready | dead; any open -> cancelled;
-- claimed -> review (partial work flagged) -> done | ready; pending <-> blocked (a dependency ended badly).
CREATE TABLE tasks (
    task_id      TEXT PRIMARY KEY,
    n            INTEGER NOT NULL UNIQUE,     -- order of arrival: ties are broken by it
    title        TEXT NOT NULL,
    prompt       TEXT NOT NULL,
    priority     INTEGER NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('pending', 'ready', 'claimed', 'done', 'failed',
                                                'dead', 'blocked', 'cancelled', 'review')),
    attempts     INTEGER NOT NULL,
    attempts_max INTEGER NOT NULL CHECK (attempts_max >= 1),
    not_before   TEXT,                        -- state failed: ready again from this instant
    claimed_by   TEXT,
    claimed_at   TEXT,
    claim_until  TEXT,                        -- the claim is dead when now >= claim_until
    claim_max    TEXT,
    ttl_ms       INTEGER,
    partial      TEXT,                        -- review whose partial work the next holder starts from
    result       TEXT,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    avoids       TEXT,                        -- profile whose limit was reached at it: until then others
    avoids_until TEXT,                        -- are given it first
    CHECK ((state = 'claimed') = (claimed_by IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_rank    ON tasks (state, priority DESC, n);
CREATE INDEX tasks_by_claim   ON tasks (claim_until) WHERE state = 'claimed';
CREATE INDEX tasks_by_holder  ON tasks (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX tasks_by_partial ON tasks (partial) WHERE partial IS NOT NULL;
CREATE INDEX tasks_by_backoff ON tasks (not_before) WHERE state = 'failed';
CREATE INDEX tasks_by_avoided ON tasks (avoids, avoids_until) WHERE avoids IS NOT NULL;
-- What waits to land on a branch, and what lands now: gone when the claim of its task ends.
CREATE TABLE landings (
    task_id   TEXT PRIMARY KEY,
    agent     TEXT NOT NULL,
    target    TEXT NOT NULL,
    queued_at TEXT NOT NULL,
    began_at  TEXT                            -- NULL: it waits
) STRICT, WITHOUT ROWID;
CREATE TABLE task_resources (
    task_id TEXT NOT NULL,
    name    TEXT NOT NULL,
    kind    TEXT NOT NULL,
    scope   TEXT NOT NULL,
    mode    TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    PRIMARY KEY (task_id, name)
) STRICT, WITHOUT ROWID;
-- Which tasks read what an agent reads already.
CREATE INDEX shared_resources ON task_resources (scope) WHERE mode = 'shared';
CREATE TABLE task_after (
    task_id TEXT NOT NULL,
    after   TEXT NOT NULL,
    PRIMARY KEY (task_id, after)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependents ON task_after (after);

-- The blackboard of an open task: what was tried for it, and what came of that.
CREATE TABLE candidates (
    task_id TEXT NOT NULL,
    n       INTEGER NOT NULL,                 -- counted in the task
    agent   TEXT NOT NULL,
    at      TEXT NOT NULL,
    outcome TEXT NOT NULL,                    -- COMMITTED, or the code of the refusal
    remedy  TEXT NOT NULL CHECK (remedy IN ('none', 'widen', 'escalate', 'afresh', 'correct',
                                            'person')),
    note    TEXT NOT NULL,
    PRIMARY KEY (task_id, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE candidate_regions (
    task_id  TEXT NOT NULL,
    n        INTEGER NOT NULL,
    resource TEXT NOT NULL,
    base     TEXT,                            -- content that it was made from, if that is known
    content  TEXT,                            -- its text's own; NULL: the region is removed
    PRIMARY KEY (task_id, n, resource)
) STRICT, WITHOUT ROWID;

-- A closed task whose dependents are told in slices: those with a higher number than after_n follow.
CREATE TABLE ripples (
    task_id TEXT PRIMARY KEY,
    after_n INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Hints on resources (a task is the resource `task:T-3`): soft, decaying, never a right. How strong one
-- is at an instant follows from strength, half-life and `at` (coordinator/rules/signals.py).
CREATE TABLE signals (
    scope        TEXT NOT NULL,
    name         TEXT NOT NULL,               -- priority, files_blocked, …, or a word of one's own
    subject      TEXT NOT NULL,               -- the resource's name
    strength     REAL NOT NULL,               -- at the instant `at`
    half_life_ms INTEGER NOT NULL CHECK (half_life_ms > 0),
    at           TEXT NOT NULL,
    agent        TEXT,                        -- who added to it last; NULL: coord itself
    note         TEXT NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

-- Values of keys (`key:account:1`), each version of them: the newest is the value. The content is in
-- `blobs`, under a sealed name, and never in the log.
CREATE TABLE state_versions (
    scope         TEXT NOT NULL,
    version       INTEGER NOT NULL CHECK (version > 0),   -- of one key: 1, 2, 3, …
    key           TEXT NOT NULL,
    content       TEXT,                       -- NULL: deleted
    size          INTEGER NOT NULL,           -- bytes
    written_by    TEXT NOT NULL,
    written_at    TEXT NOT NULL,
    fencing_token INTEGER,                    -- of the lease under which it was written
    PRIMARY KEY (scope, version)
) STRICT, WITHOUT ROWID;
-- Changes that a key's owner (whoever holds an exclusive lease on it, or on what it continues) applies
-- one by one. queued -> given -> done | refused; given -> queued (after a rest) | dead; dead -> queued
-- | dropped. Transitions: coordinator/rules/state.py.
CREATE TABLE changes (
    change_id    TEXT PRIMARY KEY,            -- K-n
    n            INTEGER NOT NULL UNIQUE,
    key          TEXT NOT NULL,
    scope        TEXT NOT NULL,
    asked_by     TEXT NOT NULL,
    content      TEXT NOT NULL,               -- what is wanted, in `blobs`
    note         TEXT NOT NULL,
    during       TEXT,                        -- the change in whose course it was asked for
    state        TEXT NOT NULL CHECK (state IN ('queued', 'given', 'done', 'refused', 'dead',
                                                'dropped')),
    attempts     INTEGER NOT NULL,
    attempts_max INTEGER NOT NULL CHECK (attempts_max >= 1),
    not_before   TEXT,
    given_to     TEXT,
    given_until  TEXT,
    version      INTEGER,                     -- of the key, after it was applied
    why          TEXT NOT NULL,
    asked_at     TEXT NOT NULL,
    closed_at    TEXT,
    CHECK ((state = 'given') = (given_to IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_by_state ON changes (state, n);
CREATE INDEX changes_of_key ON changes (scope, n) WHERE state IN ('queued', 'given');
CREATE INDEX changes_within ON changes (during) WHERE during IS NOT NULL;
CREATE INDEX changes_by_close ON changes (closed_at) WHERE closed_at IS NOT NULL;

-- Steps that were blocked and are tried again, or given up. waiting -> given -> done | waiting (after a
-- rest) | dead; dead -> waiting | done | dropped. Transitions: coordinator/rules/steps.py.
CREATE TABLE steps (
    step_id      TEXT PRIMARY KEY,            -- S-n
    n            INTEGER NOT NULL UNIQUE,
    kind         TEXT NOT NULL CHECK (kind IN ('call', 'acquire', 'propose', 'webhook')),
    name         TEXT NOT NULL,               -- the function, what is asked for, the address
    agent        TEXT,                        -- who was blocked
    resources    TEXT NOT NULL,               -- what it was refused for; a JSON list of names
    content      TEXT NOT NULL,               -- arguments, request or event, in `blobs`
    state        TEXT NOT NULL CHECK (state IN ('waiting', 'given', 'done', 'dead', 'dropped')),
    attempts     INTEGER NOT NULL,
    attempts_max INTEGER NOT NULL CHECK (attempts_max >= 1),
    not_before   TEXT,
    given_to     TEXT,
    given_until  TEXT,
    why          TEXT NOT NULL,
    asked_at     TEXT NOT NULL,
    closed_at    TEXT,
    event        INTEGER,                     -- which event a webhook tells
    CHECK ((state = 'given') = (given_to IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX steps_by_state ON steps (state, kind, n);
CREATE INDEX steps_by_close ON steps (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX steps_by_event ON steps (event) WHERE event IS NOT NULL;

-- Writes without a lease that came too late, by agent and resource; `in_a_row`: since it last wrote it.
CREATE TABLE lost_writes (
    agent     TEXT NOT NULL,
    scope     TEXT NOT NULL,
    resource  TEXT NOT NULL,
    in_a_row  INTEGER NOT NULL,
    total     INTEGER NOT NULL,
    wasted_ms INTEGER NOT NULL,               -- between what it had read and its refusals
    last_at   TEXT NOT NULL,
    PRIMARY KEY (agent, scope)
) STRICT, WITHOUT ROWID;

-- What could not be served: a waiter, a task, a lapse. Nobody else waits for it; it is tried again.
CREATE TABLE set_aside (
    what     TEXT NOT NULL CHECK (what IN ('waiter', 'task', 'lapse')),
    subject  TEXT NOT NULL,                   -- W-n, T-n, or holder/task of the lapsed leases
    reason   TEXT NOT NULL,
    since    TEXT NOT NULL,
    tries    INTEGER NOT NULL,
    retry_at TEXT NOT NULL,
    PRIMARY KEY (what, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX set_aside_due ON set_aside (retry_at);

-- DERIVED: ready tasks in dispatch order. A task that met a held scope is parked on that scope;
-- when the scope is free the best one parked on it is offered again, and the next one when that
-- one moves on: dispatch costs the same however much is held.
CREATE TABLE ready_tasks (
    task_id      TEXT PRIMARY KEY,
    rank         INTEGER NOT NULL,            -- -priority: smallest first
    n            INTEGER NOT NULL,
    parked_on    TEXT,
    offered_from TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX ready_to_offer ON ready_tasks (rank, n) WHERE parked_on IS NULL;
CREATE INDEX parked_tasks   ON ready_tasks (parked_on, rank, n) WHERE parked_on IS NOT NULL;

-- Partial or unleased work that waits for a human's verdict.
-- open -> kept | reverted | reassigned; each back to open by undo. Never deleted while open.
CREATE TABLE reviews (
    review_id   TEXT PRIMARY KEY,
    n           INTEGER NOT NULL UNIQUE,
    state       TEXT NOT NULL CHECK (state IN ('open', 'kept', 'reverted', 'reassigned')),
    reason      TEXT NOT NULL CHECK (reason IN ('expired', 'silent', 'left', 'failed', 'unleased',
                                                     'moved', 'overridden', 'unlanded')),
    agent       TEXT,
    task_id     TEXT,
    summary     TEXT NOT NULL,
    log_tail    TEXT NOT NULL,                -- the agent's last lines of output
    leased_at   TEXT,
    opened_at   TEXT NOT NULL,
    decided_at  TEXT,
    decided_by  TEXT,
    note        TEXT,
    events_from INTEGER NOT NULL,             -- the log from here on is kept while it is open
    task_before TEXT,                         -- the task's state before the verdict, for undo
    part_of     TEXT                          -- the review that it was taken out of, by a verdict on a part
) STRICT, WITHOUT ROWID;
CREATE INDEX reviews_by_state ON reviews (state, n);
CREATE INDEX reviews_by_decision ON reviews (decided_at, n) WHERE decided_at IS NOT NULL;
CREATE INDEX reviews_by_whole ON reviews (part_of) WHERE part_of IS NOT NULL;
CREATE TABLE review_files (
    review_id     TEXT NOT NULL,
    path          TEXT NOT NULL,
    scope         TEXT NOT NULL,
    worktree      TEXT,
    change        TEXT NOT NULL CHECK (change IN ('modified', 'created', 'deleted')),
    kept          INTEGER NOT NULL CHECK (kept IN (0, 1)),  -- 0: over the budget, hashes only
    baseline_hash TEXT,
    flagged_hash  TEXT,
    verdict_hash  TEXT,                       -- bytes on disk just before its verdict
    written_hash  TEXT,                       -- bytes that the verdict wrote
    verdict_mode  INTEGER,                    -- permission bits just before it
    inode         TEXT,                       -- which file it was at the grant, of a leased file
    last_hash     TEXT,                       -- of one that is gone, of which parts were leased: its
                                              -- last content, with what others did to other parts
    PRIMARY KEY (review_id, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX review_scopes ON review_files (scope);

-- A verdict that writes files is a journal: recorded whole before the first file is touched, and
-- gone when it has ended (all its steps done, or all taken back). A crash leaves it here, and the
-- coordinator goes on with it. Meanwhile the files are held by leases of the holder `coord/R-n`.
-- A commit of regions is written in the same way, under an id of its own (`C-…`).
CREATE TABLE verdicts (
    review_id TEXT PRIMARY KEY,
    what      TEXT NOT NULL CHECK (what IN ('revert', 'keep', 'undo', 'commit')),
    by        TEXT NOT NULL,
    note      TEXT NOT NULL,
    begun_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- One file each: its content goes from old to new, if it still is old. All contents are in blobs.
CREATE TABLE verdict_steps (
    review_id     TEXT NOT NULL,
    n             INTEGER NOT NULL,           -- in this order
    path          TEXT NOT NULL,
    scope         TEXT NOT NULL,
    worktree      TEXT,
    old_hash      TEXT,                       -- NULL: there is no file
    old_mode      INTEGER NOT NULL,           -- permission bits
    new_hash      TEXT,
    new_mode      INTEGER NOT NULL,
    aside         TEXT NOT NULL,              -- the name, beside the file, of what is being exchanged
    in_place      INTEGER NOT NULL CHECK (in_place IN (0, 1)),  -- all names of the file are written
    done          INTEGER NOT NULL CHECK (done IN (0, 1)),
    PRIMARY KEY (review_id, n)
) STRICT, WITHOUT ROWID;
-- What a verdict that has begun is about, where that is not the whole review: files, or hunks of
-- them. When it is done they leave the review for one of their own, and the rest stays.
CREATE TABLE verdict_parts (
    review_id   TEXT NOT NULL,
    path        TEXT NOT NULL,
    hunks       TEXT NOT NULL,                -- their numbers, '2,3'; empty: the whole file
    part_before TEXT,                         -- what leaves: from this content to that
    part_after  TEXT,
    rest_before TEXT,                         -- what stays, where some hunks do
    rest_after  TEXT,
    PRIMARY KEY (review_id, path)
) STRICT, WITHOUT ROWID;
-- What somebody saved in the very moment of a step, and which could not stay where it was saved.
CREATE TABLE review_saved (
    review_id TEXT NOT NULL,
    path      TEXT NOT NULL,
    hash      TEXT NOT NULL,
    PRIMARY KEY (review_id, path, hash)
) STRICT, WITHOUT ROWID;

-- What done tasks have left in the shared tree, in the order in which they were done, where a command
-- verifies it (`verify.command`).
-- waiting -> good (it is in the base) | broken (reopened) | held (it lies on top of what is broken);
-- broken, held -> waiting's fate, with the repair.
CREATE TABLE finished_work (
    n       INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    agent   TEXT NOT NULL,
    at      TEXT NOT NULL,
    state   TEXT NOT NULL CHECK (state IN ('waiting', 'good', 'broken', 'held')),
    because TEXT,                             -- broken, held: the task whose repair it waits for
    head    TEXT,                             -- the commit that was checked out then
    before  TEXT,                             -- of work that landed: the commits that it is between
    after   TEXT,
    CHECK ((because IS NOT NULL) = (state IN ('broken', 'held')))
) STRICT;
CREATE INDEX finished_by_state ON finished_work (state, n);
CREATE TABLE finished_files (
    n    INTEGER NOT NULL,
    path TEXT NOT NULL,
    hash TEXT,                                -- its content (blobs); NULL: it was deleted
    PRIMARY KEY (n, path)
) STRICT, WITHOUT ROWID;
-- Runs of that command over what was finished: running -> what it came to. Never two at a time.
CREATE TABLE verifications (
    verification_id TEXT PRIMARY KEY,
    n        INTEGER NOT NULL UNIQUE,
    state    TEXT NOT NULL CHECK (state IN ('running', 'good', 'broken', 'base', 'committed',
                                            'flaky', 'untold')),
    by       TEXT NOT NULL,
    begun_at TEXT NOT NULL,
    ended_at TEXT,
    command  TEXT NOT NULL,
    upto     INTEGER NOT NULL,                -- the last finished work that it is about
    runs     INTEGER NOT NULL,
    tasks    TEXT NOT NULL,                   -- those that broke the command
    said     TEXT NOT NULL,
    tail     TEXT NOT NULL,
    CHECK ((state = 'running') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_verification ON verifications (state) WHERE state = 'running';
-- The tree that the command last passed on, as a commit (refs/coord/verify/base), or what the first
-- one begins with.
CREATE TABLE verified_base (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    base_commit TEXT NOT NULL,
    head        TEXT NOT NULL,                -- what had been committed by then is in it
    since       INTEGER NOT NULL,             -- the last finished work before that commit
    at          TEXT NOT NULL
) STRICT;

-- Messages for a running agent: delivered in order, kept until it acknowledges them.
CREATE TABLE notices (
    notice INTEGER PRIMARY KEY,
    agent  TEXT NOT NULL,
    at     TEXT NOT NULL,
    kind   TEXT NOT NULL,
    text   TEXT NOT NULL,
    data   TEXT NOT NULL
) STRICT;
CREATE INDEX notices_of_agent ON notices (agent, notice);

-- What agents and people say to each other. To an agent it is also a notice, which says whether it was
-- told of; a row is what was said, for whoever looks later. Forgotten when it is old (messages.keep_days).
CREATE TABLE messages (
    message_id TEXT PRIMARY KEY,              -- M-n
    n          INTEGER NOT NULL UNIQUE,
    thread     TEXT NOT NULL,                 -- the first message of those that answer each other
    sender     TEXT NOT NULL,                 -- an agent, or `human`
    recipient  TEXT NOT NULL,                 -- an agent, `all` (live agents), or `human` (whoever looks)
    task_id    TEXT,                          -- what it is about
    reply_to   TEXT,
    text       TEXT NOT NULL CHECK (text <> ''),
    sent_at    TEXT NOT NULL,
    seen_at    TEXT                           -- to `human`: when a person had it listed
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_by_sender ON messages (sender, sent_at);
CREATE INDEX messages_of_thread ON messages (thread, n);
CREATE INDEX messages_of_task   ON messages (task_id, n) WHERE task_id IS NOT NULL;
CREATE INDEX messages_unseen    ON messages (n) WHERE recipient = 'human' AND seen_at IS NULL;
CREATE INDEX messages_by_age    ON messages (sent_at);

-- Last content that coord knows of a file, and who wrote it if a lease tells.
CREATE TABLE file_versions (
    path    TEXT PRIMARY KEY,
    hash    TEXT,
    seen_at TEXT NOT NULL,
    agent   TEXT,
    was     TEXT                              -- of a file that is gone: what it was before
) STRICT, WITHOUT ROWID;

-- Content of each file as an agent last read or wrote it: a write that is based on older content
-- than what is there is refused. Forgotten when the agent leaves.
CREATE TABLE agent_reads (
    agent TEXT NOT NULL,
    path  TEXT NOT NULL,
    hash  TEXT,                               -- NULL: it was not there
    at    TEXT NOT NULL,
    -- It has written regions since, beside what others changed: hash has these as they are now, and
    -- all else as it was read.
    partial INTEGER NOT NULL DEFAULT 0 CHECK (partial IN (0, 1)),
    -- A refusal or a notice told it how `told` differs from `base`, which it had read; it has not
    -- read the file since. What replaces the whole file has to carry that difference. '': no file.
    base TEXT,
    told TEXT CHECK ((told IS NULL) = (base IS NULL)),
    PRIMARY KEY (agent, path)
) STRICT, WITHOUT ROWID;

-- What each agent's own edits have made of a file, kept until it is committed or decided on: whoever
-- takes it out, a review has it. Forgotten when the agent leaves, once that was looked at.
CREATE TABLE kept_edits (
    agent    TEXT NOT NULL,
    copy     TEXT NOT NULL,                   -- the file's name, in a linked working tree behind that
    n        INTEGER NOT NULL,                -- the oldest is 0
    path     TEXT NOT NULL,
    worktree TEXT,                            -- NULL: the main one
    before   TEXT,                            -- its content before; NULL: it was not there
    after    TEXT,                            -- and after the edit; NULL: it was deleted
    PRIMARY KEY (agent, copy, n)
) STRICT, WITHOUT ROWID;

-- Content by its name (bytes, type, and whether it is executable); deflated. Not evented: a blob is
-- immutable, named by its hash, and only compaction removes one that nothing refers to.
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    size INTEGER NOT NULL,                    -- bytes before compression
    data BLOB NOT NULL,                       -- empty: they are in a file of .coord/blobs
    mode INTEGER                              -- permission bits that all files of it had
) STRICT;

-- Answers to requests that had an idempotency key, for a day. Not evented, like `blobs`: about the
-- conversation, not the state; written in the transaction of what was done.
CREATE TABLE answered (
    key    TEXT NOT NULL,                     -- begins with the time, where coord's client made it
    asker  TEXT NOT NULL,                     -- the agent whose token was shown; '': a person
    op     TEXT NOT NULL,
    digest TEXT NOT NULL,                     -- of what was asked, sealed
    answer BLOB NOT NULL,                     -- JSON without secrets; empty: too long to be kept
    at     TEXT NOT NULL,
    PRIMARY KEY (key, asker)
) STRICT, WITHOUT ROWID;
CREATE INDEX answered_by_age ON answered (at);
-- Requests with such a key that stand in line, or whose files are being written, the newest last: the
-- answer is kept when it is granted, or all is written. The place in line; or the review, the commit.
CREATE TABLE awaited (
    key            TEXT NOT NULL,
    asker          TEXT NOT NULL,
    op             TEXT NOT NULL,
    digest         TEXT NOT NULL,
    acquisition_id TEXT NOT NULL,
    PRIMARY KEY (key, asker)
) STRICT;
CREATE INDEX awaited_by_place ON awaited (acquisition_id);
