-- name: review_insert
INSERT INTO reviews (review_id, n, state, reason, agent, task_id, summary, log_tail, leased_at,
    opened_at, events_from) VALUES (?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?);

-- name: review_file_insert
INSERT INTO review_files (review_id, path, scope, worktree, change, kept, baseline_hash,
    flagged_hash, inode, last_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: review_get
SELECT review_id, n, state, reason, agent, task_id, summary, log_tail, leased_at, opened_at,
       decided_at, decided_by, note, events_from, task_before, part_of
FROM reviews WHERE review_id = ?;

-- name: reviews_list
SELECT review_id, n, state, reason, agent, task_id, summary, log_tail, leased_at, opened_at,
       decided_at, decided_by, note, events_from, task_before, part_of
FROM reviews WHERE (?1 = 'all' OR state = ?1) AND (?3 IS NULL OR agent = ?3)
  AND (?4 IS NULL OR task_id = ?4) AND n > ?5 ORDER BY n LIMIT ?2 OFFSET ?6;

-- name: review_part_insert
-- What is known of the whole is known of its part.
INSERT INTO reviews (review_id, n, state, reason, agent, task_id, summary, log_tail, leased_at,
    opened_at, events_from, part_of)
SELECT ?2, ?3, 'open', reason, agent, task_id, summary, log_tail, leased_at, opened_at, events_from,
    review_id FROM reviews WHERE review_id = ?1;

-- name: review_file_taken_out
UPDATE review_files SET review_id = ?3 WHERE review_id = ?1 AND path = ?2;

-- name: review_file_divided
INSERT INTO review_files (review_id, path, scope, worktree, change, kept, baseline_hash,
    flagged_hash, inode)
SELECT ?3, path, scope, worktree, change, kept, ?4, ?5, inode FROM review_files
WHERE review_id = ?1 AND path = ?2;

-- name: review_file_rest
UPDATE review_files SET baseline_hash = ?3, flagged_hash = ?4 WHERE review_id = ?1 AND path = ?2;

-- name: review_files_of
SELECT path, scope, worktree, change, kept, baseline_hash, flagged_hash, verdict_hash, written_hash,
       verdict_mode, inode, last_hash FROM review_files WHERE review_id = ? ORDER BY path;

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

-- name: verdict_part_insert
INSERT INTO verdict_parts (review_id, path, hunks, part_before, part_after, rest_before, rest_after)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: verdict_parts_delete
DELETE FROM verdict_parts WHERE review_id = ?;

-- name: verdict_parts_of
SELECT path, hunks, part_before, part_after, rest_before, rest_after
FROM verdict_parts WHERE review_id = ? ORDER BY path;

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

-- name: oldest_needed
-- The log from the oldest open review or unfinished task on is kept.
SELECT min(seq) FROM (
    SELECT min(events_from) AS seq FROM reviews WHERE state = 'open'
    UNION ALL SELECT min(e.seq) FROM events e JOIN tasks t ON t.task_id = e.task
              WHERE e.kind = 'task_added' AND t.state NOT IN ('done', 'dead', 'cancelled'));

-- name: highest_review
SELECT coalesce(max(n), 0) FROM reviews;

-- name: highest_commit
SELECT max((SELECT coalesce(max(CAST(substr(review_id, 3) AS INTEGER)), 0) FROM verdicts
            WHERE review_id LIKE 'C-%'),
           (SELECT coalesce(max(CAST(substr(data ->> 'review', 3) AS INTEGER)), 0) FROM events
            WHERE kind = 'verdict_begun' AND data ->> 'review' LIKE 'C-%'));
