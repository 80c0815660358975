-- name: step_put
INSERT INTO steps (step_id, n, kind, name, agent, resources, content, state, attempts, attempts_max,
    not_before, why, asked_at, closed_at, event) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: step_move
UPDATE steps SET state = ?2, attempts = ?3, not_before = ?4, given_to = ?5, given_until = ?6,
    why = ?7, closed_at = ?8 WHERE step_id = ?1;

-- name: step_delete
DELETE FROM steps WHERE step_id = ?;

-- name: step_get
SELECT step_id, n, kind, name, agent, resources, content, state, attempts, attempts_max, not_before,
       given_to, given_until, why, asked_at, closed_at FROM steps WHERE step_id = ?;

-- name: steps_due
-- Steps of a kind, and of a name if one is given, whose time has come; the oldest first.
SELECT step_id, n, kind, name, agent, resources, content, state, attempts, attempts_max, not_before,
       given_to, given_until, why, asked_at, closed_at FROM steps
WHERE state = 'waiting' AND kind = ?1 AND (not_before IS NULL OR not_before <= ?2)
  AND (?4 IS NULL OR name = ?4)
ORDER BY n LIMIT ?3;

-- name: calls_due
SELECT 1 FROM steps WHERE state = 'waiting' AND kind = 'call' AND not_before <= ? LIMIT 1;

-- name: webhook_last
-- The last event that a delivery was noted for.
SELECT max(event) FROM steps;

-- name: steps_late
SELECT step_id FROM steps WHERE state = 'given' AND given_until <= ? ORDER BY n LIMIT 200;

-- name: steps_old
SELECT step_id FROM steps WHERE closed_at <= ? AND state IN ('done', 'dropped')
ORDER BY closed_at LIMIT ?;

-- name: tasks_dead_newest
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE state = 'dead' AND (?1 = '' OR (updated_at, task_id) < (?1, ?2))
ORDER BY updated_at DESC, task_id DESC LIMIT ?3;

-- name: steps_kept_alike
-- What waits to be tried again, and is the very same.
SELECT step_id FROM steps WHERE state = 'waiting' AND kind = ? AND agent IS ? AND content = ?
ORDER BY n LIMIT 1;

-- name: steps_dead_alike
-- Dead places in line of one agent for the same resources.
SELECT step_id FROM steps WHERE state = 'dead' AND kind = 'acquire' AND agent = ? AND resources = ?;

-- name: steps_dead_left
-- Dead places in line of agents that have left.
SELECT step_id FROM steps s WHERE state = 'dead' AND kind = 'acquire'
  AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.agent = s.agent AND a.state <> 'gone') LIMIT 1000;

-- name: highest_step
SELECT coalesce(max(n), 0) FROM steps;
