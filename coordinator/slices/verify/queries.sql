-- name: work_insert
INSERT INTO finished_work (n, task_id, agent, at, state, head, before, after)
VALUES (?, ?, ?, ?, 'waiting', ?, ?, ?);

-- name: work_file_insert
INSERT INTO finished_files (n, path, hash) VALUES (?, ?, ?);

-- name: work_set
UPDATE finished_work SET state = ?2, because = ?3 WHERE n = ?1;

-- name: work_all_good
-- What is in the tree that it begins with anew needs no verification of its own.
UPDATE finished_work SET state = 'good', because = NULL;

-- name: work_of
-- What the next verification is made from.
SELECT n, task_id, agent, at, state, because, head, before, after FROM finished_work ORDER BY n;

-- name: work_files_of
SELECT path, hash FROM finished_files WHERE n = ? ORDER BY path;

-- name: work_open_of
-- Work of a task that was found to break the command, and waits for its repair.
SELECT 1 FROM finished_work WHERE task_id = ? AND state = 'broken' LIMIT 1;

-- name: work_waiting
-- How much waits, the number and the instant of the newest.
SELECT count(*) AS count, coalesce(max(n), 0) AS newest, max(at) AS at FROM finished_work WHERE state = 'waiting';

-- name: work_left
-- What is not in the base.
SELECT n, task_id, agent, at, state, because, head, before, after FROM finished_work
WHERE state <> 'good' ORDER BY n LIMIT ?;

-- name: work_forget_files
-- Contents of what is in the base are in git. Which files it changed has to be known as long as
-- older work waits for its repair.
DELETE FROM finished_files WHERE n <= ?1 AND n < (
    SELECT coalesce(min(n), ?1 + 1) FROM finished_work WHERE state <> 'good');

-- name: work_forget
DELETE FROM finished_work WHERE n <= ?1 AND n < (
    SELECT coalesce(min(n), ?1 + 1) FROM finished_work WHERE state <> 'good');

-- name: work_highest
SELECT coalesce(max(n), 0) FROM finished_work;

-- name: landed_last
-- What the branch was before a task's work landed on it as this commit.
SELECT data ->> 'before' FROM events
WHERE task = ?1 AND kind = 'target_moved' AND data ->> 'after' = ?2 ORDER BY seq DESC LIMIT 1;

-- name: work_leased
-- Files that a task was given a lease on, or on a part of, since an instant; what was there then.
SELECT resource, data ->> 'lease_kind' AS lease_kind, data ->> 'content_hash' AS content_hash
FROM events
WHERE task = ?1 AND kind = 'lease_granted' AND at >= ?2
  AND data ->> 'lease_kind' IN ('file', 'region') AND data ->> 'worktree' IS NULL
  AND data ->> 'mode' = 'exclusive' ORDER BY seq;

-- name: verification_insert
INSERT INTO verifications (verification_id, n, state, by, begun_at, command, upto, runs, tasks,
    said, tail) VALUES (?, ?, 'running', ?, ?, ?, ?, 0, '', '', '');

-- name: verification_end
UPDATE verifications SET state = ?2, ended_at = ?3, runs = ?4, tasks = ?5, said = ?6, tail = ?7
WHERE verification_id = ?1;

-- name: verifications_trim
DELETE FROM verifications WHERE n <= ? AND state <> 'running';

-- name: verification_running
SELECT verification_id, n, state, by, begun_at, ended_at, command, upto, runs, tasks, said, tail
FROM verifications WHERE state = 'running';

-- name: verifications_list
SELECT verification_id, n, state, by, begun_at, ended_at, command, upto, runs, tasks, said, tail
FROM verifications ORDER BY n DESC LIMIT ?;

-- name: verified_base
SELECT base_commit, head, since, at FROM verified_base;

-- name: verified_base_put
INSERT OR REPLACE INTO verified_base (one, base_commit, head, since, at) VALUES (1, ?, ?, ?, ?);

-- name: verified_base_delete
DELETE FROM verified_base;

-- name: review_files_of_kept_parts
-- What was kept of a review by itself, the latest last.
SELECT f.path, iif(f.written_hash IS f.verdict_hash, f.flagged_hash, f.written_hash) AS hash
FROM reviews v JOIN review_files f USING (review_id)
WHERE v.part_of = ? AND v.state = 'kept' AND f.worktree IS NULL ORDER BY v.n;

-- name: highest_work
SELECT max((SELECT coalesce(max(n), 0) FROM finished_work),
           (SELECT coalesce(max(data ->> 'n'), 0) FROM events WHERE kind = 'work_finished'));

-- name: highest_verification
SELECT coalesce(max(n), 0) FROM verifications;
