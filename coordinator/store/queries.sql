-- Every statement that coord sends, by name. Parameters are positional.

-- name: event_append
-- The log's only insert.
INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: event_get
SELECT seq, at, kind, agent, task, resource, data FROM events WHERE seq = ?;

-- name: event_from
SELECT seq FROM events WHERE seq >= ? ORDER BY seq LIMIT 1;

-- name: event_newest
SELECT max(seq) FROM events;

-- name: has_log
SELECT 1 FROM sqlite_schema WHERE name = 'events';

-- name: schema_pages
SELECT pageno FROM dbstat WHERE name IN ('sqlite_schema', 'sqlite_master');

-- name: event_last
SELECT coalesce(max(seq), (SELECT max(seq) FROM snapshots), 0) FROM events;

-- name: events_after
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE seq > ?1 AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR task = ?3)
  AND (?4 IS NULL OR resource = ?4) AND (?5 IS NULL OR kind = ?5)
ORDER BY seq LIMIT ?6;

-- name: events_last
SELECT seq, at, kind, agent, task, resource, data FROM (
    SELECT * FROM events
    WHERE seq > ?1 AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR task = ?3)
      AND (?4 IS NULL OR resource = ?4) AND (?5 IS NULL OR kind = ?5)
    ORDER BY seq DESC LIMIT ?6) ORDER BY seq;

-- name: events_of_interest
-- What a person watching the dashboard wants: not heartbeats and bookkeeping.
SELECT seq, at, kind, agent, task, resource, data FROM (
    SELECT * FROM events
    WHERE kind NOT IN ('agent_seen', 'lease_renewed', 'claim_renewed', 'notices_delivered',
                       'versions_seen', 'waiter_changed', 'notice_posted', 'content_read')
    ORDER BY seq DESC LIMIT ?1) ORDER BY seq;

-- name: events_all
SELECT seq, at, data FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?;

-- name: rights_ended_since
-- Rights that ended from an instant on, in their order: who could write before, the watcher asks.
SELECT seq, at, agent, resource, data FROM events
WHERE seq > ?1 AND at >= ?2 AND kind IN ('lease_released', 'lease_lapsed') ORDER BY seq;

-- name: events_of_task
SELECT seq, at, kind, agent, task, resource, data FROM events WHERE task = ?1 ORDER BY seq LIMIT ?2;

-- name: task_first_event
SELECT min(seq) FROM events WHERE task = ?;

-- name: events_of_resource
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE resource = ?1 OR (kind = 'acquisition_refused' AND instr(data, ?2)) ORDER BY seq LIMIT ?3;

-- name: events_of_agent
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE agent = ?1 AND kind NOT IN ('agent_seen', 'lease_renewed', 'claim_renewed',
                                  'notices_delivered') ORDER BY seq LIMIT ?2;

-- name: events_of_unlock
-- The story of an unlock request, which stands in line under its own id.
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE kind IN ('unlock_asked', 'unlock_passed', 'unlock_answered', 'waiter_queued', 'waiter_left')
  AND (data ->> 'request' = ?1 OR data ->> 'acquisition_id' = ?1) ORDER BY seq LIMIT ?2;

-- name: events_of_review
-- The end of the story of a review's task, or else of its agent; newest first.
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE seq >= ?1 AND (task = ?2 OR (?2 IS NULL AND agent = ?3))
  AND kind NOT IN ('agent_seen', 'lease_renewed', 'claim_renewed', 'notices_delivered')
ORDER BY seq DESC LIMIT ?4;

-- name: events_older_than
SELECT coalesce(max(seq), 0) FROM events WHERE at < ?;

-- name: events_delete_some
DELETE FROM events WHERE seq <= min(?1, (SELECT min(seq) FROM events) + ?2 - 1);

-- name: snapshot_latest
SELECT seq, at, state FROM snapshots ORDER BY seq DESC LIMIT 1;

-- name: snapshot_seq
SELECT max(seq) FROM snapshots;

-- name: snapshot_put
INSERT INTO snapshots (seq, at, state) VALUES (?, ?, ?);

-- name: snapshots_delete_before
DELETE FROM snapshots WHERE seq < ?;

-- name: meta_get
SELECT value FROM meta WHERE key = ?;

-- name: meta_put
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: counter_get
SELECT value FROM counters WHERE name = ?;

-- name: numbers_shown
-- The highest number of each counter that the state and the log still show, in the order of
-- `ledger.COUNTERS`.
SELECT max((SELECT coalesce(max(fencing_token), 0) FROM file_locks),
           (SELECT coalesce(max(data ->> 'fencing_token'), 0) FROM events WHERE kind = 'lease_granted')),
       (SELECT coalesce(max(CAST(substr(acquisition_id, 3) AS INTEGER)), 0) FROM waiters
        WHERE acquisition_id LIKE 'W-%'),
       (SELECT coalesce(max(n), 0) FROM tasks), (SELECT coalesce(max(n), 0) FROM reviews),
       (SELECT coalesce(max(notice), 0) FROM notices),
       (SELECT coalesce(max(n), 0) FROM unlock_requests),
       max((SELECT coalesce(max(CAST(substr(review_id, 3) AS INTEGER)), 0) FROM verdicts
            WHERE review_id LIKE 'C-%'),
           (SELECT coalesce(max(CAST(substr(data ->> 'review', 3) AS INTEGER)), 0) FROM events
            WHERE kind = 'verdict_begun' AND data ->> 'review' LIKE 'C-%'));

-- name: counters_all
SELECT name, value FROM counters;

-- name: counter_put
INSERT INTO counters (name, value) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: agent_get
SELECT agent, parent, profile, description, token_hash, state, registered_at, seen_at, progress_at,
       progress, silence_ms, session, hooked_at FROM agents WHERE agent = ?;

-- name: agent_by_token
SELECT agent, parent, profile, description, token_hash, state, registered_at, seen_at, progress_at,
       progress, silence_ms, session, hooked_at FROM agents WHERE token_hash = ? AND state <> 'gone';

-- name: agent_children
SELECT agent FROM agents WHERE parent = ? AND state <> 'gone';

-- name: agents_all
SELECT agent, parent, profile, description, token_hash, state, registered_at, seen_at, progress_at,
       progress, silence_ms, session, hooked_at FROM agents WHERE ?1 OR state <> 'gone' ORDER BY registered_at, agent;

-- name: agents_named
SELECT agent FROM agents WHERE agent = ?1 OR substr(agent, 1, length(?1) + 1) = ?1 || '-';

-- name: agents_silent
-- Heard of last longer ago than they promised: seen_at is compared by the caller.
SELECT agent, seen_at, silence_ms FROM agents WHERE state = 'active' AND silence_ms IS NOT NULL;

-- name: agents_active
SELECT count(*) FROM agents WHERE state = 'active';

-- name: agent_put
INSERT INTO agents (agent, parent, profile, description, token_hash, state, registered_at, seen_at,
                    progress_at, silence_ms)
VALUES (?1, ?2, ?3, ?4, ?5, 'active', ?6, ?6, ?6, ?7)
ON CONFLICT (agent) DO UPDATE SET parent = excluded.parent, profile = excluded.profile,
    description = excluded.description, token_hash = excluded.token_hash, state = 'active',
    seen_at = excluded.seen_at, silence_ms = excluded.silence_ms;

-- name: agent_has_left
SELECT 1 FROM agents WHERE agent = ? AND state = 'gone';

-- name: agent_delete
DELETE FROM agents WHERE agent = ?;

-- name: agent_touch
UPDATE agents SET seen_at = ?2, state = 'active',
    progress = coalesce(?3, progress), progress_at = CASE WHEN ?4 THEN ?2 ELSE progress_at END
WHERE agent = ?1;

-- name: agent_state_set
UPDATE agents SET state = ?2, token_hash = CASE WHEN ?2 = 'gone' THEN NULL ELSE token_hash END
WHERE agent = ?1;

-- name: agent_hooked
-- Its session is kept; when its hooks first reported in stays.
UPDATE agents SET session = ?2, hooked_at = coalesce(hooked_at, ?3) WHERE agent = ?1;

-- name: lease_insert
-- In the schema's order of columns; nobody was warned yet.
INSERT INTO file_locks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0);

-- name: leases_near_end
-- Live leases of a holder that end by an instant, cannot be renewed past it, and were not told of.
SELECT fencing_token, file_path, expires_at FROM file_locks
WHERE locked_by = ?1 AND warned = 0 AND expires_at > ?2 AND expires_at <= ?3
  AND expires_at >= max_until;

-- name: lease_warned
UPDATE file_locks SET warned = 1 WHERE fencing_token = ?;

-- name: baseline_insert
INSERT INTO baselines (fencing_token, path, hash) VALUES (?, ?, ?);

-- name: baselines_of
SELECT path, hash FROM baselines WHERE fencing_token = ? ORDER BY path;

-- name: baseline_get
SELECT hash FROM baselines WHERE fencing_token = ? AND path = ?;

-- name: baselines_delete
DELETE FROM baselines WHERE fencing_token = ?;

-- name: baselines_move
-- A leased directory was renamed: what lay below it lies below its new name.
UPDATE baselines SET path = ?3 || substr(path, length(?2) + 1)
WHERE fencing_token = ?1 AND substr(path, 1, length(?2)) = ?2;

-- name: lease_delete
DELETE FROM file_locks WHERE fencing_token = ?;

-- name: lease_of_token
SELECT * FROM file_locks WHERE fencing_token = ?1;

-- name: lease_extend
UPDATE file_locks SET expires_at = ?2 WHERE fencing_token = ?1;

-- name: lease_shift
UPDATE file_locks SET expires_at = ?2, max_until = ?3 WHERE fencing_token = ?1;

-- name: lease_move
UPDATE file_locks SET file_path = ?2, scope = ?3, slot = ?4 WHERE fencing_token = ?1;

-- name: lease_place
UPDATE file_locks SET worktree = ?2, content_hash = ?3 WHERE fencing_token = ?1;

-- name: lease_at_scope
SELECT 1 FROM file_locks WHERE scope = ? LIMIT 1;

-- name: rivals
-- Leases that may overlap a resource: where it may be contained, and from its own scope down.
-- Parameters: scopes…, then the range (low, high) that begins with its scope (see words/resource_names.py).
SELECT * FROM file_locks WHERE {scope is one, or} (scope >= ? AND scope < ?);

-- name: rivals_by_inode
-- The same file under another name: a hard link, or renamed since.
SELECT * FROM file_locks WHERE inode = ?;

-- name: leases_of_holder
SELECT * FROM file_locks WHERE locked_by = ? ORDER BY fencing_token;

-- name: windows_of_holder
-- The write windows that an agent has: which of its edits are in the middle.
SELECT * FROM file_locks WHERE locked_by = ? AND scope >= 'k/edit/' AND scope < 'k/edit0'
ORDER BY fencing_token;

-- name: leases_of_commits
-- Write windows that coord itself has, while it commits regions.
SELECT * FROM file_locks WHERE locked_by >= 'coord/C-' AND locked_by < 'coord/C.';

-- name: lease_by_token
SELECT * FROM file_locks WHERE fencing_token = ?;

-- name: lease_get
SELECT 1 FROM file_locks WHERE fencing_token = ?;

-- name: leases_of_task
SELECT * FROM file_locks WHERE task_id = ? ORDER BY fencing_token;

-- name: leases_of_acquisition
-- An acquisition is named for its first fencing token, and its tokens follow each other.
SELECT * FROM file_locks WHERE fencing_token >= ?1 AND fencing_token < ?1 + ?2 AND acquisition_id = ?3
ORDER BY fencing_token;

-- name: leases_at_scope
SELECT * FROM file_locks WHERE scope = ?;

-- name: leases_of_git
-- Working trees that a git command changes as a whole.
SELECT * FROM file_locks WHERE scope >= 'k/git/index/' AND scope < 'k/git/index0';

-- name: any_lapsed
SELECT 1 FROM file_locks WHERE expires_at <= ?1
UNION ALL SELECT 1 FROM tasks WHERE state = 'claimed' AND claim_until <= ?1 LIMIT 1;

-- name: leases_live
SELECT * FROM file_locks
WHERE expires_at > ?1 AND fencing_token > ?2 AND (?3 IS NULL OR locked_by = ?3)
ORDER BY fencing_token LIMIT ?4;

-- name: held_by_others
SELECT 1 FROM file_locks
WHERE expires_at > ?1 AND locked_by NOT IN (?2, ?3) AND kind != 'key' LIMIT 1;

-- name: lease_count
SELECT count(*) FROM file_locks WHERE locked_by = ?1 AND expires_at > ?2;

-- name: waiters_any
SELECT 1 FROM waiters LIMIT 1;

-- name: waiters_all
SELECT acquisition_id, agent, mode, priority, asked_at, until, held, ttl_ms, task_id,
       description FROM waiters ORDER BY asked_at, acquisition_id;

-- name: waiter_get
SELECT acquisition_id, agent, mode, priority, asked_at, until, held, ttl_ms, task_id,
       description FROM waiters WHERE acquisition_id = ?;

-- name: waiters_of_agent
SELECT acquisition_id, agent, mode, priority, asked_at, until, held, ttl_ms, task_id,
       description FROM waiters WHERE agent = ? ORDER BY acquisition_id;

-- name: waiters_met
-- Who met a lease of this scope in its way, whatever the name under which it asked.
SELECT acquisition_id FROM waiters WHERE met = ?;

-- name: waiters_due
SELECT 1 FROM waiters WHERE until <= ? LIMIT 1;

-- name: waiter_resources_of
SELECT name, kind, scope FROM waiter_resources WHERE acquisition_id = ? ORDER BY name;

-- name: waiter_places_of
SELECT name, kind, scope, worktree FROM waiter_resources WHERE acquisition_id = ? ORDER BY name;

-- name: waiters_near
-- Waiters that may overlap a resource (parameters as for `overlapping`).
SELECT w.acquisition_id, w.agent, w.mode, w.priority, w.asked_at, w.until, r.name, r.kind, r.scope
FROM waiter_resources r JOIN waiters w USING (acquisition_id) WHERE r.scope IN ({scopes})
UNION ALL
SELECT w.acquisition_id, w.agent, w.mode, w.priority, w.asked_at, w.until, r.name, r.kind, r.scope
FROM waiter_resources r JOIN waiters w USING (acquisition_id) WHERE r.scope >= ? AND r.scope < ?;

-- name: wants_of_agent
-- What an agent's waiters want, a row for each resource.
SELECT w.acquisition_id, w.agent, w.mode, w.priority, w.asked_at, w.until, w.met, w.gives_way_to,
       r.name, r.kind, r.scope
FROM waiters w JOIN waiter_resources r USING (acquisition_id) WHERE w.agent = ?
ORDER BY w.acquisition_id, r.name;

-- name: wants_of
-- The same of one waiter.
SELECT w.acquisition_id, w.agent, w.mode, w.priority, w.asked_at, w.until, w.met, w.gives_way_to,
       r.name, r.kind, r.scope
FROM waiters w JOIN waiter_resources r USING (acquisition_id) WHERE w.acquisition_id = ?
ORDER BY r.name;

-- name: children_in_line
-- Sub-agents of an agent that stand in line.
SELECT agent FROM agents WHERE parent = ? AND state <> 'gone'
  AND EXISTS (SELECT 1 FROM waiters w WHERE w.agent = agents.agent) ORDER BY agent;

-- name: waiter_position
-- How many stand before a waiter at one of its resources, in the order of asking.
SELECT count(DISTINCT w.acquisition_id) FROM waiter_resources mine
JOIN waiters me ON me.acquisition_id = mine.acquisition_id
JOIN waiter_resources r ON r.scope = mine.scope
JOIN waiters w ON w.acquisition_id = r.acquisition_id
WHERE mine.acquisition_id = ?1
  AND (w.asked_at, w.acquisition_id) < (me.asked_at, me.acquisition_id);

-- name: waiter_put
INSERT INTO waiters (acquisition_id, agent, mode, priority, asked_at, until, held, ttl_ms,
    task_id, description, met, gives_way_to) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: waiter_gives_way
UPDATE waiters SET gives_way_to = ?2 WHERE acquisition_id = ?1;

-- name: waiter_resource_put
INSERT INTO waiter_resources (acquisition_id, name, kind, scope, worktree)
VALUES (?, ?, ?, ?, ?);

-- name: waiter_change
UPDATE waiters SET held = ?2 WHERE acquisition_id = ?1;

-- name: waiter_shift
UPDATE waiters SET until = ?2 WHERE acquisition_id = ?1;

-- name: waiters_held
-- Those whose request is held open: after a restart there is none.
SELECT acquisition_id, agent FROM waiters WHERE held = 1;

-- name: waiter_delete
DELETE FROM waiters WHERE acquisition_id = ?;

-- name: waiter_resources_delete
DELETE FROM waiter_resources WHERE acquisition_id = ?;

-- name: unlock_insert
INSERT INTO unlock_requests (request_id, n, requested_by, holder, resource, kind, scope, mode,
    reason, requested_at, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending');

-- name: unlock_pass
UPDATE unlock_requests SET holder = ?2 WHERE request_id = ?1;

-- name: unlock_answer
UPDATE unlock_requests SET status = ?2, responded_at = ?3, responded_by = ?4, override = ?5,
    answer = ?6 WHERE request_id = ?1;

-- name: unlock_get
SELECT request_id, n, requested_by, holder, resource, kind, scope, mode, reason, requested_at,
       status, responded_at, responded_by, override, answer
FROM unlock_requests WHERE request_id = ?;

-- name: unlocks_list
SELECT request_id, n, requested_by, holder, resource, kind, scope, mode, reason, requested_at,
       status, responded_at, responded_by, override, answer
FROM unlock_requests WHERE n > ?1 AND (?2 = 'all' OR status = ?2)
  AND (?3 IS NULL OR requested_by = ?3 OR holder = ?3) ORDER BY n LIMIT ?4;

-- name: unlock_count
-- Questions of one asker that wait for an answer.
SELECT count(*) FROM unlock_requests WHERE status = 'pending' AND requested_by = ?;

-- name: task_insert
INSERT INTO tasks (task_id, n, title, prompt, priority, state, attempts, attempts_max, created_at,
    updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?8);

-- name: task_resource_insert
INSERT OR IGNORE INTO task_resources (task_id, name, kind, scope, mode) VALUES (?, ?, ?, ?, ?);

-- name: task_after_insert
INSERT OR IGNORE INTO task_after (task_id, after) VALUES (?, ?);

-- name: candidate_insert
INSERT INTO candidates (task_id, n, agent, at, outcome, remedy, note) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: candidate_region_insert
INSERT INTO candidate_regions (task_id, n, resource, base, content) VALUES (?, ?, ?, ?, ?);

-- name: candidates_trim
DELETE FROM candidates WHERE task_id = ? AND n <= ?;

-- name: candidate_regions_trim
DELETE FROM candidate_regions WHERE task_id = ? AND n <= ?;

-- name: candidate_last
SELECT max(n) FROM candidates WHERE task_id = ? GROUP BY task_id;

-- name: candidate_rounds
-- Attempts since the claim in a row of which nothing was written.
SELECT count(*) FROM candidates WHERE task_id = ?1 AND agent = ?2 AND at >= ?3 AND remedy <> 'none'
AND n > coalesce((SELECT max(n) FROM candidates WHERE task_id = ?1 AND remedy = 'none'), 0);

-- name: candidates_of
SELECT n, agent, at, outcome, remedy, note FROM candidates WHERE task_id = ? ORDER BY n;

-- name: candidate_regions_of
SELECT n, resource, base, content FROM candidate_regions WHERE task_id = ? ORDER BY n, resource;

-- name: ripple_put
INSERT INTO ripples (task_id, after_n) VALUES (?1, ?2)
ON CONFLICT (task_id) DO UPDATE SET after_n = min(after_n, excluded.after_n);

-- name: ripple_delete
DELETE FROM ripples WHERE task_id = ?;

-- name: ripples_some
SELECT task_id, after_n FROM ripples ORDER BY task_id LIMIT ?;

-- name: aside_put
INSERT INTO set_aside (what, subject, reason, since, tries, retry_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (what, subject) DO UPDATE SET reason = excluded.reason, tries = excluded.tries,
    retry_at = excluded.retry_at;

-- name: aside_delete
DELETE FROM set_aside WHERE what = ? AND subject = ?;

-- name: aside_get
SELECT what, subject, reason, since, tries, retry_at FROM set_aside WHERE what = ? AND subject = ?;

-- name: aside_due
SELECT what, subject, reason, since, tries, retry_at FROM set_aside WHERE retry_at <= ?
ORDER BY retry_at LIMIT ?;

-- name: aside_all
SELECT what, subject, reason, since, tries, retry_at FROM set_aside ORDER BY since, what, subject
LIMIT ?;

-- name: task_update
UPDATE tasks SET state = ?2, attempts = ?3, not_before = ?4, claimed_by = ?5, claimed_at = ?6,
    claim_until = ?7, claim_max = ?8, ttl_ms = ?9, partial = ?10, result = ?11, updated_at = ?12
WHERE task_id = ?1;

-- name: task_claim_extend
UPDATE tasks SET claim_until = ?2 WHERE task_id = ?1;

-- name: task_claim_shift
UPDATE tasks SET claim_until = ?2, claim_max = ?3 WHERE task_id = ?1;

-- name: task_partial
SELECT partial FROM tasks WHERE task_id = ?;

-- name: task_get
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE task_id = ?;

-- name: tasks_list
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE n > ?1 AND (?2 IS NULL OR state = ?2) ORDER BY n LIMIT ?3;

-- name: tasks_claimed
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE state = 'claimed' ORDER BY n;

-- name: tasks_of_holder
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE claimed_by = ? ORDER BY n;

-- name: lapsed_groups
-- Whose leases have ended and were not closed, by holder and task, the oldest first.
SELECT locked_by, task_id, min(expires_at) FROM file_locks WHERE expires_at <= ?1
GROUP BY locked_by, task_id
UNION SELECT claimed_by, task_id, claim_until FROM tasks
WHERE state = 'claimed' AND claim_until <= ?1 ORDER BY 3 LIMIT ?2;

-- name: tasks_backed_off
SELECT task_id FROM tasks WHERE state = 'failed' AND not_before <= ? ORDER BY not_before, n LIMIT ?;

-- name: task_counts
SELECT state, count(*) FROM tasks GROUP BY state;

-- name: task_count
SELECT count(*) FROM tasks;

-- name: task_resources_of
SELECT name, kind, scope, mode FROM task_resources WHERE task_id = ? ORDER BY name;

-- name: task_after_of
SELECT after FROM task_after WHERE task_id = ? ORDER BY after;

-- name: task_dependencies
SELECT a.after, t.state FROM task_after a JOIN tasks t ON t.task_id = a.after
WHERE a.task_id = ? ORDER BY t.n;

-- name: task_dependents
-- Tasks that come after one and wait for it, numbered above `after`; a ready one, too, for what it
-- comes after may be taken back.
SELECT a.task_id, t.n FROM task_after a JOIN tasks t USING (task_id)
WHERE a.after = ?1 AND t.n > ?2 AND t.state IN ('pending', 'blocked', 'ready') ORDER BY t.n LIMIT ?3;

-- name: task_has_dependents
SELECT 1 FROM task_after WHERE after = ? LIMIT 1;

-- name: task_due_state
-- Whether a dependency of a task has ended badly, and whether one is not done yet.
SELECT EXISTS (SELECT 1 FROM task_after a JOIN tasks t ON t.task_id = a.after
               WHERE a.task_id = ?1 AND t.state IN ('dead', 'cancelled', 'blocked')),
       EXISTS (SELECT 1 FROM task_after a JOIN tasks t ON t.task_id = a.after
               WHERE a.task_id = ?1 AND t.state <> 'done');

-- name: task_dependents_begun
-- Tasks that come after this one and are further than waiting for it.
SELECT a.task_id, t.state FROM task_after a JOIN tasks t USING (task_id)
WHERE a.after = ? AND t.state NOT IN ('pending', 'blocked', 'cancelled') ORDER BY t.n;

-- name: ready_enter
INSERT INTO ready_tasks (task_id, rank, n)
SELECT task_id, -priority, n FROM tasks WHERE task_id = ?1
ON CONFLICT (task_id) DO NOTHING;

-- name: ready_get
SELECT parked_on, offered_from FROM ready_tasks WHERE task_id = ?;

-- name: ready_leave
DELETE FROM ready_tasks WHERE task_id = ?;

-- name: ready_park
UPDATE ready_tasks SET parked_on = ?2, offered_from = NULL WHERE task_id = ?1;

-- name: ready_offer
-- Offer the best of what is parked on a scope.
UPDATE ready_tasks SET parked_on = NULL, offered_from = ?1
WHERE task_id = (SELECT task_id FROM ready_tasks WHERE parked_on = ?1 ORDER BY rank, n LIMIT 1);

-- name: ready_unpark
UPDATE ready_tasks SET parked_on = NULL, offered_from = NULL WHERE task_id = ?1 AND parked_on = ?2;

-- name: ready_next
-- The next candidates, the best first.
SELECT task_id, rank, n FROM ready_tasks WHERE parked_on IS NULL ORDER BY rank, n LIMIT ?;

-- name: parked_on_nothing
-- Scopes that tasks are parked on and that nobody holds or waits for, and reviews that keep nobody
-- back any more.
SELECT DISTINCT parked_on FROM ready_tasks r WHERE parked_on IS NOT NULL AND parked_on <> '!aside'
  AND NOT EXISTS (SELECT 1 FROM file_locks l WHERE l.scope = r.parked_on)
  AND NOT EXISTS (SELECT 1 FROM waiter_resources w WHERE w.scope = r.parked_on)
  AND NOT EXISTS (SELECT 1 FROM reviews v WHERE v.review_id = substr(r.parked_on, 2)
                  AND r.parked_on LIKE '!%' AND (v.state = 'open' OR (v.state = 'reassigned'
                      AND EXISTS (SELECT 1 FROM tasks t WHERE t.partial = v.review_id
                                  AND t.state IN ('ready', 'failed')))))
LIMIT ?;

-- name: ready_best
SELECT task_id, rank, n FROM ready_tasks WHERE parked_on IS NULL ORDER BY rank, n LIMIT 1;

-- name: parked_best
SELECT task_id, rank, n FROM ready_tasks WHERE parked_on = ? ORDER BY rank, n LIMIT 1;

-- name: needed
-- Is anything held (or lapsed and not tidied yet), claimed, or waited for?
SELECT 1 FROM file_locks UNION ALL SELECT 1 FROM tasks WHERE state = 'claimed'
UNION ALL SELECT 1 FROM waiters LIMIT 1;

-- name: presence
-- Is there anybody in line, any partial work that is not settled, any parked task, any turn of git?
-- (The index is named, for by state this would read every ready task at each request.)
SELECT EXISTS (SELECT 1 FROM waiters),
       EXISTS (SELECT 1 FROM reviews WHERE state = 'open')
       OR EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_by_partial
                  WHERE partial IS NOT NULL AND state IN ('ready', 'failed')),
       EXISTS (SELECT 1 FROM ready_tasks WHERE parked_on IS NOT NULL),
       EXISTS (SELECT 1 FROM file_locks WHERE scope >= 'k/git/index/' AND scope < 'k/git/index0');

-- name: ready_clear
DELETE FROM ready_tasks;

-- name: ready_fill
INSERT INTO ready_tasks (task_id, rank, n) SELECT task_id, -priority, n FROM tasks
WHERE state = 'ready';

-- name: review_insert
INSERT INTO reviews (review_id, n, state, reason, agent, task_id, summary, log_tail, leased_at,
    opened_at, events_from) VALUES (?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?);

-- name: review_file_insert
INSERT INTO review_files (review_id, path, scope, worktree, change, kept, baseline_hash,
    flagged_hash, inode) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: review_get
SELECT review_id, n, state, reason, agent, task_id, summary, log_tail, leased_at, opened_at,
       decided_at, decided_by, note, events_from, task_before FROM reviews WHERE review_id = ?;

-- name: reviews_list
SELECT review_id, n, state, reason, agent, task_id, summary, log_tail, leased_at, opened_at,
       decided_at, decided_by, note, events_from, task_before
FROM reviews WHERE (?1 = 'all' OR state = ?1) ORDER BY n LIMIT ?2;

-- name: review_files_of
SELECT path, scope, worktree, change, kept, baseline_hash, flagged_hash, verdict_hash, written_hash,
       verdict_mode, inode FROM review_files WHERE review_id = ? ORDER BY path;

-- name: review_written_last
-- What a verdict last wrote to a path; NULL: it removed it.
SELECT f.written_hash FROM review_files f JOIN reviews v USING (review_id)
WHERE f.path = ? AND f.written_hash IS NOT f.verdict_hash ORDER BY v.n DESC LIMIT 1;

-- name: reviews_near
-- Files under open review, or whose reassigned task has not gone on yet, that may overlap a
-- resource (parameters as for `overlapping`); the last column: their partial work is kept nowhere.
SELECT f.review_id, f.path, f.scope, v.state, v.task_id,
       f.kept = 0 AND f.flagged_hash IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.hash = f.flagged_hash) FROM review_files f
JOIN reviews v USING (review_id) WHERE (v.state = 'open' OR (v.state = 'reassigned' AND EXISTS (
    SELECT 1 FROM tasks t WHERE t.partial = v.review_id AND t.state IN ('ready', 'failed'))))
  AND f.scope IN ({scopes})
UNION ALL
SELECT f.review_id, f.path, f.scope, v.state, v.task_id,
       f.kept = 0 AND f.flagged_hash IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.hash = f.flagged_hash) FROM review_files f
JOIN reviews v USING (review_id) WHERE (v.state = 'open' OR (v.state = 'reassigned' AND EXISTS (
    SELECT 1 FROM tasks t WHERE t.partial = v.review_id AND t.state IN ('ready', 'failed'))))
  AND f.scope >= ? AND f.scope < ?;

-- name: review_set
UPDATE reviews SET state = ?2, decided_at = ?3, decided_by = ?4, note = ?5, task_before = ?6
WHERE review_id = ?1;

-- name: review_file_set
UPDATE review_files SET verdict_hash = ?3, written_hash = ?4, verdict_mode = ?5
WHERE review_id = ?1 AND path = ?2;

-- name: verdict_insert
INSERT INTO verdicts (review_id, what, by, note, begun_at) VALUES (?, ?, ?, ?, ?);

-- name: verdict_step_insert
INSERT INTO verdict_steps (review_id, n, path, scope, worktree, old_hash, old_mode, new_hash,
    new_mode, aside, in_place, done) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0);

-- name: verdict_step_done
UPDATE verdict_steps SET done = ?3 WHERE review_id = ?1 AND n = ?2;

-- name: verdict_delete
DELETE FROM verdicts WHERE review_id = ?;

-- name: verdict_steps_delete
DELETE FROM verdict_steps WHERE review_id = ?;

-- name: verdict_get
SELECT review_id, what, by, note, begun_at FROM verdicts WHERE review_id = ?;

-- name: verdicts_open
SELECT review_id FROM verdicts ORDER BY begun_at, review_id;

-- name: verdict_steps_of
SELECT n, path, scope, worktree, old_hash, old_mode, new_hash, new_mode, aside, in_place, done
FROM verdict_steps WHERE review_id = ? ORDER BY n;

-- name: review_saved_insert
INSERT OR IGNORE INTO review_saved (review_id, path, hash) VALUES (?, ?, ?);

-- name: review_saved_of
SELECT path, hash FROM review_saved WHERE review_id = ? ORDER BY path, hash;

-- name: notice_insert
INSERT INTO notices (notice, agent, at, kind, text, data) VALUES (?, ?, ?, ?, ?, ?);

-- name: notices_of
SELECT notice, at, kind, text, data FROM notices WHERE agent = ? AND notice > ? ORDER BY notice
LIMIT 100;

-- name: notices_delete
DELETE FROM notices WHERE agent = ? AND notice <= ?;

-- name: notices_first
SELECT min(notice) FROM notices WHERE agent = ?;

-- name: version_get
SELECT hash, seen_at, agent FROM file_versions WHERE path = ?;

-- name: version_put
INSERT INTO file_versions (path, hash, seen_at, agent) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, seen_at = excluded.seen_at,
    agent = excluded.agent;

-- name: read_get
SELECT hash, at, partial FROM agent_reads WHERE agent = ? AND path = ?;

-- name: read_put
INSERT INTO agent_reads (agent, path, hash, at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (agent, path) DO UPDATE SET hash = excluded.hash, at = excluded.at, partial = 0;

-- name: read_put_partial
-- What it wrote of a file, put into what it had read: all else is as old as before.
UPDATE agent_reads SET hash = ?3, partial = 1 WHERE agent = ?1 AND path = ?2;

-- name: reads_delete
DELETE FROM agent_reads WHERE agent = ?;

-- name: blob_has
SELECT mode, length(data) FROM blobs WHERE hash = ?;

-- name: blob_put
INSERT INTO blobs (hash, size, data, mode) VALUES (?, ?, ?, ?)
ON CONFLICT (hash) DO UPDATE SET data = excluded.data;

-- name: blob_mode
UPDATE blobs SET mode = ?2 WHERE hash = ?1;

-- name: blob_get
SELECT data, size, mode FROM blobs WHERE hash = ?;

-- name: blobs_stored
-- Contents that are kept as files.
SELECT hash FROM blobs WHERE length(data) = 0;

-- name: blob_row
-- As `blob_put` takes it.
SELECT hash, size, data, mode FROM blobs WHERE hash = ?;

-- name: blobs_missing
-- Content that the state refers to and that is not here; and whether a review relies on it.
SELECT hash, max(needed) FROM (
    SELECT content_hash AS hash, 0 AS needed FROM file_locks
    UNION ALL SELECT hash, 0 FROM baselines
    UNION ALL SELECT hash, 0 FROM agent_reads
    UNION ALL SELECT baseline_hash, kept FROM review_files
    UNION ALL SELECT flagged_hash, kept FROM review_files
    UNION ALL SELECT verdict_hash, kept FROM review_files
    UNION ALL SELECT written_hash, 0 FROM review_files
    UNION ALL SELECT old_hash, 1 FROM verdict_steps
    UNION ALL SELECT new_hash, 1 FROM verdict_steps
    UNION ALL SELECT hash, 1 FROM review_saved)
WHERE hash LIKE '%:%' AND hash NOT IN (SELECT hash FROM blobs) GROUP BY hash;

-- name: blobs_unreferenced
-- What no lease, no review and no open claim's baseline refers to.
SELECT hash FROM blobs WHERE hash NOT IN (
    SELECT content_hash FROM file_locks WHERE content_hash IS NOT NULL
    UNION SELECT hash FROM baselines
    UNION SELECT content FROM candidate_regions WHERE content IS NOT NULL
    UNION SELECT hash FROM agent_reads WHERE hash IS NOT NULL
    UNION SELECT baseline_hash FROM review_files WHERE baseline_hash IS NOT NULL
    UNION SELECT flagged_hash FROM review_files WHERE flagged_hash IS NOT NULL
    UNION SELECT verdict_hash FROM review_files WHERE verdict_hash IS NOT NULL
    UNION SELECT written_hash FROM review_files WHERE written_hash IS NOT NULL
    UNION SELECT old_hash FROM verdict_steps WHERE old_hash IS NOT NULL
    UNION SELECT new_hash FROM verdict_steps WHERE new_hash IS NOT NULL
    UNION SELECT hash FROM review_saved);

-- name: blob_delete
DELETE FROM blobs WHERE hash = ?;

-- name: oldest_needed
-- The log from the oldest open review or unfinished task on is kept.
SELECT min(seq) FROM (
    SELECT min(events_from) AS seq FROM reviews WHERE state = 'open'
    UNION ALL SELECT min(e.seq) FROM events e JOIN tasks t ON t.task_id = e.task
              WHERE e.kind = 'task_added' AND t.state NOT IN ('done', 'dead', 'cancelled'));
