-- name: steps_list
SELECT step_id, n, kind, name, agent, resources, content, state, attempts, attempts_max, not_before,
       given_to, given_until, why, asked_at, closed_at FROM steps
WHERE n > ?1 AND (?2 = 'all' OR state = ?2 OR (?2 = 'open' AND state IN ('waiting', 'given')))
  AND (?3 IS NULL OR kind = ?3) ORDER BY n LIMIT ?4;

-- name: steps_open
SELECT count(*) FROM steps WHERE state IN ('waiting', 'given');

-- name: steps_dead_newest
SELECT step_id, n, kind, name, agent, resources, content, state, attempts, attempts_max, not_before,
       given_to, given_until, why, asked_at, closed_at FROM steps
WHERE state = 'dead' AND (?1 = '' OR (closed_at, step_id) < (?1, ?2)) AND (?4 IS NULL OR kind = ?4)
ORDER BY closed_at DESC, step_id DESC LIMIT ?3;
