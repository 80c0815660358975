-- name: task_resource_insert
INSERT OR IGNORE INTO task_resources (task_id, name, kind, scope, mode) VALUES (?, ?, ?, ?, ?);

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

-- name: candidate_verdicts
-- Attempts since the claim in a row that a check judged so: that each was written first is no end of
-- the row, as a check that was passed is, which names no region.
SELECT count(*) FROM candidates WHERE task_id = ?1 AND agent = ?2 AND at >= ?3 AND outcome = ?4
AND n > coalesce((SELECT max(c.n) FROM candidates AS c WHERE c.task_id = ?1 AND c.remedy = 'none'
    AND NOT EXISTS (SELECT 1 FROM candidate_regions AS r WHERE r.task_id = c.task_id AND r.n = c.n)), 0);

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
SELECT task_id, after_n AS n FROM ripples ORDER BY task_id LIMIT ?;

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
-- A window of the backlog. Here and below: which tasks it has is read from an index alone, for what
-- is left out before them may be long.
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE n IN (SELECT n FROM tasks WHERE n > ?1 ORDER BY n LIMIT ?2 OFFSET ?3) ORDER BY n;

-- name: landing_over
DELETE FROM landings WHERE task_id = ?;

-- name: tasks_claimed
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE state = 'claimed' ORDER BY n;

-- name: tasks_of_holder
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE claimed_by = ? ORDER BY n;

-- name: tasks_backed_off
SELECT task_id FROM tasks WHERE state = 'failed' AND not_before <= ? ORDER BY not_before, n LIMIT ?;

-- name: task_resources_of
SELECT name, kind, scope, mode FROM task_resources WHERE task_id = ? ORDER BY name;

-- name: task_after_of
SELECT after FROM task_after WHERE task_id = ? ORDER BY after;

-- name: task_dependencies
SELECT a.after AS name, t.state FROM task_after a JOIN tasks t ON t.task_id = a.after
WHERE a.task_id = ? ORDER BY t.n;

-- name: task_dependents
-- Tasks that come after one and wait for it, numbered above `after`; a ready one, too, for what it
-- comes after may be taken back. (CROSS: by what comes after it, however many tasks there are.)
SELECT a.task_id, t.n FROM task_after a CROSS JOIN tasks t USING (task_id)
WHERE a.after = ?1 AND t.n > ?2 AND t.state IN ('pending', 'blocked', 'ready') ORDER BY t.n LIMIT ?3;

-- name: task_has_dependents
SELECT 1 FROM task_after WHERE after = ? LIMIT 1;

-- name: task_due_state
-- The state of a task that nobody has claimed, as what it comes after is now.
SELECT CASE
    WHEN EXISTS (SELECT 1 FROM task_after a JOIN tasks t ON t.task_id = a.after
                 WHERE a.task_id = ?1 AND t.state IN ('dead', 'cancelled', 'blocked')) THEN 'blocked'
    WHEN EXISTS (SELECT 1 FROM task_after a JOIN tasks t ON t.task_id = a.after
                 WHERE a.task_id = ?1 AND t.state <> 'done') THEN 'pending'
    ELSE 'ready' END;

-- name: ready_enter
INSERT INTO ready_tasks (task_id, rank, n)
SELECT task_id, -priority, n FROM tasks WHERE task_id = ?1
ON CONFLICT (task_id) DO NOTHING;

-- name: ready_get
SELECT offered_from, rank, n FROM ready_tasks WHERE task_id = ?;

-- name: ready_leave
DELETE FROM ready_tasks WHERE task_id = ?;

-- name: ready_park
UPDATE ready_tasks SET parked_on = ?2, offered_from = NULL WHERE task_id = ?1;

-- name: ready_parked_on
SELECT parked_on FROM ready_tasks WHERE task_id = ?;

-- name: ready_offer
-- Offer the best of what is parked on a scope.
UPDATE ready_tasks SET parked_on = NULL, offered_from = ?1
WHERE task_id = (SELECT task_id FROM ready_tasks WHERE parked_on = ?1 ORDER BY rank, n LIMIT 1);

-- name: ready_offer_next
-- Offer the best after this rank and number of what is parked on a scope: where all leases that are
-- left there are shared, of the tasks that read anything.
UPDATE ready_tasks SET parked_on = NULL, offered_from = ?1 WHERE task_id = (
  SELECT task_id FROM ready_tasks r WHERE parked_on = ?1 AND (rank, n) > (?2, ?3)
  AND (EXISTS (SELECT 1 FROM file_locks WHERE scope = ?1 AND kind = 'glob')
    OR EXISTS (SELECT 1 FROM task_resources t WHERE t.task_id = r.task_id AND t.mode = 'shared'))
  ORDER BY rank, n LIMIT 1);

-- name: ready_unpark
UPDATE ready_tasks SET parked_on = NULL, offered_from = NULL WHERE task_id = ?1 AND parked_on = ?2;

-- name: parked_on_nothing
-- Scopes that tasks are parked on and that nobody holds or waits for, and reviews that keep nobody
-- back any more.
SELECT DISTINCT parked_on FROM ready_tasks r WHERE parked_on IS NOT NULL AND parked_on <> '!aside'
  AND NOT EXISTS (SELECT 1 FROM file_locks l WHERE l.scope = r.parked_on)
  AND NOT (r.parked_on LIKE 'k/key/pool/%' AND EXISTS (
    SELECT 1 FROM file_locks l WHERE l.scope > r.parked_on AND l.scope < r.parked_on || '~'))
  AND NOT EXISTS (SELECT 1 FROM waiter_resources w WHERE w.scope = r.parked_on)
  AND NOT EXISTS (SELECT 1 FROM reviews v WHERE v.review_id = substr(r.parked_on, 2)
                  AND r.parked_on LIKE '!%' AND (v.state = 'open' OR (v.state = 'reassigned'
                      AND EXISTS (SELECT 1 FROM tasks t WHERE t.partial = v.review_id
                                  AND t.state IN ('ready', 'failed')))))
LIMIT ?;

-- name: parked_best
SELECT task_id, rank, n FROM ready_tasks WHERE parked_on = ? ORDER BY rank, n LIMIT 1;

-- name: claim_that_needs
-- The task that an agent is at and that needs this.
SELECT t.task_id, r.mode, t.claim_until, t.claim_max, t.ttl_ms FROM tasks t
  JOIN task_resources r ON r.task_id = t.task_id
WHERE t.claimed_by = ?1 AND r.name = ?2 AND r.kind = ?3 AND t.claim_until > ?4 LIMIT 1;

-- name: ready_clear
DELETE FROM ready_tasks;

-- name: ready_fill
INSERT INTO ready_tasks (task_id, rank, n) SELECT task_id, -priority, n FROM tasks
WHERE state = 'ready';

-- name: highest_task
SELECT coalesce(max(n), 0) FROM tasks;
