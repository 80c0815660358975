-- name: lost_write_add
INSERT INTO lost_writes (agent, scope, resource, in_a_row, total, wasted_ms, last_at)
VALUES (?1, ?2, ?3, 1, 1, ?4, ?5)
ON CONFLICT (agent, scope) DO UPDATE SET in_a_row = in_a_row + 1, total = total + 1,
    wasted_ms = wasted_ms + excluded.wasted_ms, last_at = excluded.last_at;

-- name: lost_write_over
UPDATE lost_writes SET in_a_row = 0 WHERE agent = ? AND scope = ?;

-- name: lost_in_a_row
SELECT in_a_row FROM lost_writes WHERE agent = ? AND scope = ?;

-- name: lost_writes
SELECT agent, scope, resource, in_a_row, total, wasted_ms, last_at FROM lost_writes
WHERE ?1 IS NULL OR agent = ?1 ORDER BY total DESC, agent, resource LIMIT 1000;

-- name: lost_writes_of
DELETE FROM lost_writes WHERE agent = ?;
