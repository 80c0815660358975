-- name: signal_put
INSERT INTO signals (scope, name, subject, strength, half_life_ms, at, agent, note)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (scope, name) DO UPDATE SET subject = excluded.subject, strength = excluded.strength,
    half_life_ms = excluded.half_life_ms, at = excluded.at, agent = excluded.agent,
    note = excluded.note;

-- name: signal_delete
DELETE FROM signals WHERE scope = ? AND name = ?;

-- name: signal_get
SELECT scope, name, subject, strength, half_life_ms, at, agent, note FROM signals
WHERE scope = ? AND name = ?;

-- name: signals_at
-- The hints on one resource, and with a bound above its scope on all below it.
SELECT scope, name, subject, strength, half_life_ms, at, agent, note FROM signals
WHERE scope >= ?1 AND scope < ?2 ORDER BY scope, name LIMIT ?3;

-- name: signals_some
SELECT scope, name, subject, strength, half_life_ms, at, agent, note FROM signals
WHERE (scope, name) > (?1, ?2) ORDER BY scope, name LIMIT ?3;

-- name: signal_count
SELECT count(*) FROM signals;

-- name: signals_on_scope
SELECT count(*) FROM signals WHERE scope = ?;

-- name: signals_of_ready
-- The hints on the next ready tasks and on what these need.
SELECT t.task_id, s.name, s.strength, s.half_life_ms, s.at
FROM (SELECT task_id FROM ready_tasks WHERE parked_on IS NULL ORDER BY rank, n LIMIT ?1) t
JOIN signals s ON s.scope = 'k/task/' || t.task_id || '/'
UNION ALL
SELECT t.task_id, s.name, s.strength, s.half_life_ms, s.at
FROM (SELECT task_id FROM ready_tasks WHERE parked_on IS NULL ORDER BY rank, n LIMIT ?1) t
JOIN task_resources r ON r.task_id = t.task_id JOIN signals s ON s.scope = r.scope;

-- name: ready_offered
SELECT task_id, rank, n FROM ready_tasks WHERE parked_on IS NULL ORDER BY rank, n LIMIT ?;
