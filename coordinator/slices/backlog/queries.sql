-- name: agents_of_others
-- Whether there is a live agent of another profile that does not rest.
SELECT 1 FROM agents WHERE state = 'active' AND profile NOT IN (?1, 'manual', '')
  AND (rests_until IS NULL OR rests_until <= ?2) LIMIT 1;

-- name: task_insert
INSERT INTO tasks (task_id, n, title, prompt, priority, state, attempts, attempts_max, created_at,
    updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?8);

-- name: task_after_insert
INSERT OR IGNORE INTO task_after (task_id, after) VALUES (?, ?);

-- name: task_edit
UPDATE tasks SET title = ?2, prompt = ?3, priority = ?4, attempts_max = ?5, updated_at = ?6
WHERE task_id = ?1;

-- name: task_resources_forget
DELETE FROM task_resources WHERE task_id = ?;

-- name: task_after_forget
DELETE FROM task_after WHERE task_id = ?;

-- name: task_avoid
UPDATE tasks SET avoids = ?2, avoids_until = ?3 WHERE task_id = ?1;

-- name: tasks_avoided
-- Ready tasks that agents of this profile leave to others for now.
SELECT task_id FROM tasks WHERE avoids = ?1 AND avoids_until > ?2 AND state = 'ready' LIMIT 200;

-- name: tasks_in_state
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE n IN (
    SELECT n FROM tasks WHERE state = ?4 AND n > ?1 ORDER BY n LIMIT ?2 OFFSET ?3)
ORDER BY n;

-- name: tasks_ranked
-- A window of all tasks, the next to be given out first.
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE n IN (SELECT n FROM tasks INDEXED BY tasks_by_rank
                       ORDER BY priority DESC, n LIMIT ?1 OFFSET ?2)
ORDER BY priority DESC, n;

-- name: tasks_ranked_in_state
SELECT task_id, n, title, prompt, priority, state, attempts, attempts_max, not_before, claimed_by,
       claimed_at, claim_until, claim_max, ttl_ms, partial, result, created_at, updated_at
FROM tasks WHERE n IN (
    SELECT n FROM tasks WHERE state = ?3 ORDER BY priority DESC, n LIMIT ?1 OFFSET ?2)
ORDER BY priority DESC, n;

-- name: tasks_earlier
-- Tasks whose place can be changed and that are given out before this place, nearest first.
SELECT task_id, n, priority, state FROM tasks
WHERE state NOT IN ('claimed', 'done', 'cancelled') AND task_id <> ?1
  AND (priority > ?2 OR (priority = ?2 AND n < ?3)) ORDER BY priority, n DESC LIMIT ?4;

-- name: tasks_later
SELECT task_id, n, priority, state FROM tasks
WHERE state NOT IN ('claimed', 'done', 'cancelled') AND task_id <> ?1
  AND (priority < ?2 OR (priority = ?2 AND n > ?3)) ORDER BY priority DESC, n LIMIT ?4;

-- name: tasks_found
-- All tasks that say this (?1; empty: all), in id, title, holder or a resource.
SELECT task_id, n, priority, state FROM tasks t
WHERE (?2 IS NULL OR claimed_by = ?2) AND (
    ?1 = '' OR instr(lower(title), lower(?1)) OR instr(lower(task_id), lower(?1))
    OR instr(lower(coalesce(claimed_by, '')), lower(?1))
    OR EXISTS (SELECT 1 FROM task_resources r
               WHERE r.task_id = t.task_id AND instr(lower(name), lower(?1))));

-- name: task_wrote
-- What a task was seen to change: what it committed, had changed when it was done, or left half done.
SELECT r.resource FROM candidates c JOIN candidate_regions r USING (task_id, n)
WHERE c.task_id = ?1 AND c.outcome = 'COMMITTED'
UNION SELECT path FROM finished_work JOIN finished_files USING (n) WHERE task_id = ?1
UNION SELECT path FROM reviews JOIN review_files USING (review_id) WHERE task_id = ?1
ORDER BY 1 LIMIT ?2;

-- name: task_leased
-- What was leased for a task to be written, by the log.
SELECT DISTINCT resource FROM events
WHERE task = ?1 AND kind = 'lease_granted' AND data ->> 'mode' = 'exclusive' ORDER BY 1 LIMIT ?2;

-- name: task_come_after
SELECT task_id FROM task_after WHERE after = ? ORDER BY task_id;

-- name: task_counts
SELECT state AS name, count(*) AS count FROM tasks GROUP BY state;

-- name: task_count
SELECT count(*) FROM tasks;

-- name: ready_next
-- The next candidates, the best first.
SELECT task_id, rank, n FROM ready_tasks WHERE parked_on IS NULL ORDER BY rank, n LIMIT ?;

-- name: ready_best
SELECT task_id, rank, n FROM ready_tasks WHERE parked_on IS NULL ORDER BY rank, n LIMIT 1;

-- name: parked_after
-- The next one parked there, after one of this rank and number: none that needs what this agent holds
-- for a task already.
SELECT task_id, rank, n FROM ready_tasks r WHERE parked_on = ?1 AND (rank, n) > (?2, ?3)
  AND NOT EXISTS (SELECT 1 FROM task_resources t JOIN file_locks l ON l.scope = t.scope
    WHERE t.task_id = r.task_id AND l.kind = t.kind AND l.file_path = t.name AND l.locked_by = ?4
    AND l.task_id IS NOT NULL)
ORDER BY rank, n LIMIT 1;

-- name: ready_read_beside
-- Those offered that read what this agent reads for a task already.
SELECT DISTINCT r.task_id FROM file_locks l CROSS JOIN task_resources t ON t.scope = l.scope
  CROSS JOIN ready_tasks r ON r.task_id = t.task_id
WHERE l.locked_by = ? AND l.task_id IS NOT NULL AND l.mode = 'shared' AND t.mode = 'shared'
  AND l.kind = t.kind AND l.file_path = t.name AND r.parked_on IS NULL;
