-- name: waiters_any
SELECT 1 FROM waiters LIMIT 1;

-- name: waiters_all
SELECT acquisition_id, agent, mode, priority, asked_at, until, held, ttl_ms, task_id,
       description, purpose FROM waiters ORDER BY asked_at, acquisition_id;

-- name: waiter_get
SELECT acquisition_id, agent, mode, priority, asked_at, until, held, ttl_ms, task_id,
       description, purpose FROM waiters WHERE acquisition_id = ?;

-- name: waiters_of_agent
SELECT acquisition_id, agent, mode, priority, asked_at, until, held, ttl_ms, task_id,
       description, purpose FROM waiters WHERE agent = ? ORDER BY acquisition_id;

-- name: waiter_met
SELECT met FROM waiters WHERE acquisition_id = ?;

-- name: waiters_met
-- Who met a lease of this scope in its way, whatever the name under which it asked.
SELECT acquisition_id FROM waiters WHERE met = ?;

-- name: waiters_due
SELECT 1 FROM waiters WHERE until <= ? LIMIT 1;

-- name: waiter_places_of
SELECT name, kind, scope, worktree FROM waiter_resources WHERE acquisition_id = ? ORDER BY name;

-- name: waiters_near
-- Waiters that may overlap a resource (parameters as for `overlapping`).
SELECT w.acquisition_id, w.agent, w.mode, w.priority, w.asked_at, w.until, r.name, r.kind, r.scope,
       w.purpose, r.worktree
FROM waiter_resources r JOIN waiters w USING (acquisition_id) WHERE r.scope IN ({scopes})
UNION ALL
SELECT w.acquisition_id, w.agent, w.mode, w.priority, w.asked_at, w.until, r.name, r.kind, r.scope,
       w.purpose, r.worktree
FROM waiter_resources r JOIN waiters w USING (acquisition_id) WHERE r.scope >= ? AND r.scope < ?;

-- name: wants_of_agent
-- What an agent's waiters want, a row for each resource.
SELECT w.acquisition_id, w.agent, w.mode, w.priority, w.asked_at, w.until, w.met, w.gives_way_to,
       r.name, r.kind, r.scope, w.purpose, r.worktree
FROM waiters w JOIN waiter_resources r USING (acquisition_id) WHERE w.agent = ?
ORDER BY w.acquisition_id, r.name;

-- name: wants_of
-- The same of one waiter.
SELECT w.acquisition_id, w.agent, w.mode, w.priority, w.asked_at, w.until, w.met, w.gives_way_to,
       r.name, r.kind, r.scope, w.purpose, r.worktree
FROM waiters w JOIN waiter_resources r USING (acquisition_id) WHERE w.acquisition_id = ?
ORDER BY r.name;

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
    task_id, description, met, gives_way_to, purpose) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: waiter_gives_way
UPDATE waiters SET gives_way_to = ?2 WHERE acquisition_id = ?1;

-- name: waiter_resource_put
INSERT INTO waiter_resources (acquisition_id, name, kind, scope, worktree, content_hash)
VALUES (?, ?, ?, ?, ?, ?);

-- name: waiter_contents_of
-- What was in the files of a waiter when it asked.
SELECT name AS path, content_hash AS hash FROM waiter_resources
WHERE acquisition_id = ? AND content_hash IS NOT NULL;

-- name: waiter_change
UPDATE waiters SET held = ?2 WHERE acquisition_id = ?1;

-- name: waiter_shift
UPDATE waiters SET until = ?2 WHERE acquisition_id = ?1;

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
  AND (?3 IS NULL OR requested_by = ?3 OR holder = ?3) AND (?5 IS NULL OR resource = ?5)
ORDER BY n LIMIT ?4;

-- name: unlocks_shared
-- Who has agreed with an agent to write this together, since then.
SELECT iif(holder = ?3, requested_by, holder) FROM unlock_requests
WHERE status = 'coexisting' AND scope = ?1 AND responded_at >= ?2 AND ?3 IN (requested_by, holder);

-- name: unlock_count
-- Questions of one asker that wait for an answer.
SELECT count(*) FROM unlock_requests WHERE status = 'pending' AND requested_by = ?;

-- name: presence
-- Is there anybody in line, any partial work that is not settled, any parked task, any turn of git, any
-- lease on a task, on any key, any claimed task, any lease that a rename has made?
-- (The index is named, for by state this would read every ready task at each request.)
SELECT EXISTS (SELECT 1 FROM waiters) AS waiters,
       EXISTS (SELECT 1 FROM reviews WHERE state = 'open')
       OR EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_by_partial
                  WHERE partial IS NOT NULL AND state IN ('ready', 'failed')) AS reviews,
       EXISTS (SELECT 1 FROM ready_tasks WHERE parked_on IS NOT NULL) AS parked,
       EXISTS (SELECT 1 FROM file_locks WHERE scope >= 'k/git/index/' AND scope < 'k/git/index0') AS turns,
       EXISTS (SELECT 1 FROM file_locks WHERE scope >= 'k/task/' AND scope < 'k/task0')
       OR EXISTS (SELECT 1 FROM waiter_resources WHERE scope >= 'k/task/' AND scope < 'k/task0')
       AS task_locks,
       EXISTS (SELECT 1 FROM file_locks WHERE scope >= 'k/' AND scope < 'k0') AS keys,
       EXISTS (SELECT 1 FROM tasks WHERE claimed_by IS NOT NULL) AS claims,
       EXISTS (SELECT 1 FROM file_locks WHERE goes_with IS NOT NULL) AS renamed;

-- name: waiter_scopes_of
SELECT scope FROM waiter_resources WHERE acquisition_id = ? ORDER BY name;

-- name: highest_waiter
SELECT coalesce(max(CAST(substr(acquisition_id, 3) AS INTEGER)), 0) FROM waiters
WHERE acquisition_id LIKE 'W-%';

-- name: highest_unlock
SELECT coalesce(max(n), 0) FROM unlock_requests;
