-- name: landing_queue
INSERT OR REPLACE INTO landings (task_id, agent, target, queued_at) VALUES (?, ?, ?, ?);

-- name: landing_begin
INSERT INTO landings (task_id, agent, target, queued_at, began_at) VALUES (?1, ?2, ?3, ?4, ?4)
ON CONFLICT (task_id) DO UPDATE SET began_at = excluded.began_at;

-- name: landing_get
SELECT l.task_id, title, agent, target, queued_at, began_at
FROM landings l JOIN tasks USING (task_id) WHERE l.task_id = ?;

-- name: landings_list
SELECT l.task_id, title, agent, target, queued_at, began_at
FROM landings l JOIN tasks USING (task_id)
ORDER BY began_at IS NULL, queued_at, n LIMIT ?1 OFFSET ?2;
