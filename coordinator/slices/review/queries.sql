-- name: task_dependents_begun
-- Tasks that come after this one and are further than waiting for it.
SELECT a.task_id AS name, t.state FROM task_after a JOIN tasks t USING (task_id)
WHERE a.after = ? AND t.state NOT IN ('pending', 'blocked', 'cancelled') ORDER BY t.n;

-- name: reviews_decided
SELECT review_id, n, state, reason, agent, task_id, summary, log_tail, leased_at, opened_at,
       decided_at, decided_by, note, events_from, task_before, part_of
FROM reviews WHERE decided_at IS NOT NULL AND (?3 IS NULL OR agent = ?3)
  AND (?4 IS NULL OR task_id = ?4) ORDER BY decided_at DESC, n DESC LIMIT ?1 OFFSET ?2;

-- name: reviews_count
SELECT state AS name, count(*) AS count FROM reviews
WHERE (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR task_id = ?2) GROUP BY state;

-- name: parts_decided
-- The parts of a review that have been decided, the last one first.
SELECT review_id AS name, state FROM reviews WHERE part_of = ? AND state <> 'open' ORDER BY n DESC LIMIT ?;

-- name: review_saved_of
SELECT path, hash FROM review_saved WHERE review_id = ? ORDER BY path, hash;
