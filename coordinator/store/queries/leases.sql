-- name: highest_fencing
-- `highest_…`: of a counter, the number that the state and the log still show. Each counter has one.
SELECT max((SELECT coalesce(max(fencing_token), 0) FROM file_locks),
           (SELECT coalesce(max(data ->> 'fencing_token'), 0) FROM events WHERE kind = 'lease_granted'));

-- name: lease_insert
-- In the schema's order of columns; nobody was warned yet.
INSERT INTO file_locks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?);

-- name: lease_asked
UPDATE file_locks SET purpose = 'asked' WHERE fencing_token = ?;

-- name: lease_agree
UPDATE file_locks SET mode = 'shared', slot = ?2, agreed_as = ?3 WHERE fencing_token = ?1;

-- name: leases_agreed
-- Live leases by which several write the same, as they agreed.
SELECT {lease} FROM file_locks WHERE agreed_as = ? AND expires_at > ? ORDER BY fencing_token;

-- name: leases_near_end
-- Live leases of a holder that end by an instant, cannot be renewed past it, and were not told of.
SELECT {lease} FROM file_locks
WHERE locked_by = ?1 AND warned = 0 AND expires_at > ?2 AND expires_at <= ?3
  AND expires_at >= max_until;

-- name: lease_warned
UPDATE file_locks SET warned = 1 WHERE fencing_token = ?;

-- name: baseline_insert
INSERT INTO baselines (fencing_token, path, hash) VALUES (?, ?, ?);

-- name: baselines_of
SELECT path, hash FROM baselines WHERE fencing_token = ? ORDER BY path;

-- name: baseline_get
SELECT hash FROM baselines WHERE fencing_token = ? AND path = ?;

-- name: baselines_delete
DELETE FROM baselines WHERE fencing_token = ?;

-- name: baselines_move
-- A leased directory, or the file of a leased region, was renamed: what lay below it lies below its new name.
UPDATE baselines SET path = ?3 || substr(path, length(?2) + 1)
WHERE fencing_token = ?1 AND substr(path, 1, length(?2)) = ?2;

-- name: lease_delete
DELETE FROM file_locks WHERE fencing_token = ?;

-- name: lease_extend
UPDATE file_locks SET expires_at = ?2 WHERE fencing_token = ?1;

-- name: lease_shift
UPDATE file_locks SET expires_at = ?2, max_until = ?3 WHERE fencing_token = ?1;

-- name: lease_move
UPDATE file_locks SET file_path = ?2, scope = ?3, slot = ?4 WHERE fencing_token = ?1;

-- name: lease_place
UPDATE file_locks SET worktree = ?2, content_hash = ?3 WHERE fencing_token = ?1;

-- name: lease_at_scope
SELECT 1 FROM file_locks WHERE scope = ? LIMIT 1;

-- name: lease_at_scope_for_one
-- One beside which nothing else that is parked there can begin: not shared, and not a pattern.
SELECT 1 FROM file_locks WHERE scope = ? AND mode = 'exclusive' AND kind <> 'glob' LIMIT 1;

-- name: rivals
-- Leases that may overlap a resource: where it may be contained, and from its own scope down.
-- Parameters: scopes…, then the range (low, high) that begins with its scope (see words/resource_names.py).
SELECT {lease} FROM file_locks WHERE {scope is one, or} (scope >= ? AND scope < ?);

-- name: rivals_by_inode
-- The same file under another name: a hard link, or renamed since.
SELECT {lease} FROM file_locks WHERE inode = ?;

-- name: leases_of_holder
SELECT {lease} FROM file_locks WHERE locked_by = ? ORDER BY fencing_token;

-- name: leases_of_commits
-- Write windows that coord itself has, while it commits regions.
SELECT {lease} FROM file_locks WHERE locked_by >= 'coord/C-' AND locked_by < 'coord/C.';

-- name: leases_renamed
-- Leases that renames have made.
SELECT {lease} FROM file_locks WHERE goes_with IS NOT NULL ORDER BY goes_with, fencing_token;

-- name: lease_by_token
SELECT {lease} FROM file_locks WHERE fencing_token = ?;

-- name: lease_get
SELECT 1 FROM file_locks WHERE fencing_token = ?;

-- name: leases_of_task
SELECT {lease} FROM file_locks WHERE task_id = ? ORDER BY fencing_token;

-- name: leases_of_acquisition
-- An acquisition is named for its first fencing token, and its tokens follow each other.
SELECT {lease} FROM file_locks WHERE fencing_token >= ?1 AND fencing_token < ?1 + ?2 AND acquisition_id = ?3
ORDER BY fencing_token;

-- name: leases_at_scope
SELECT {lease} FROM file_locks WHERE scope = ?;

-- name: leases_of_git
-- Working trees that a git command changes as a whole.
SELECT {lease} FROM file_locks WHERE scope >= 'k/git/index/' AND scope < 'k/git/index0';

-- name: any_lapsed
SELECT 1 FROM file_locks WHERE expires_at <= ?1
UNION ALL SELECT 1 FROM tasks WHERE state = 'claimed' AND claim_until <= ?1 LIMIT 1;

-- name: leases_window
SELECT {lease} FROM file_locks
WHERE expires_at > ?1 AND fencing_token > ?2 AND (?3 IS NULL OR locked_by = ?3)
ORDER BY fencing_token LIMIT ?4 OFFSET ?5;

-- name: leases_count
SELECT count(*) FROM file_locks
WHERE expires_at > ?1 AND (?2 IS NULL OR locked_by = ?2) AND kind <> ?3;

-- name: leases_live
SELECT {lease} FROM file_locks
WHERE expires_at > ?1 AND fencing_token > ?2 AND (?3 IS NULL OR locked_by = ?3)
ORDER BY fencing_token LIMIT ?4;

-- name: lease_count
SELECT count(*) FROM file_locks WHERE locked_by = ?1 AND expires_at > ?2;

-- name: lapsed_groups
-- Whose leases have ended and were not closed, by holder and task, the oldest first.
SELECT locked_by, task_id, min(expires_at) AS expires_at FROM file_locks WHERE expires_at <= ?1
GROUP BY locked_by, task_id
UNION SELECT claimed_by, task_id, claim_until FROM tasks
WHERE state = 'claimed' AND claim_until <= ?1 ORDER BY 3 LIMIT ?2;

-- name: needed
-- Is anything held (or lapsed and not tidied yet), claimed, or waited for?
SELECT 1 FROM file_locks UNION ALL SELECT 1 FROM tasks WHERE state = 'claimed'
UNION ALL SELECT 1 FROM waiters LIMIT 1;

-- name: blobs_missing
-- Content that the state refers to and that is not here; and whether a review relies on it.
SELECT hash, max(needed) FROM (
    SELECT content_hash AS hash, 0 AS needed FROM file_locks
    UNION ALL SELECT hash, 0 FROM baselines
    UNION ALL SELECT content, 1 FROM state_versions
    UNION ALL SELECT content, 1 FROM changes
    UNION ALL SELECT content, 1 FROM steps
    UNION ALL SELECT hash, 0 FROM agent_reads
    UNION ALL SELECT before, 0 FROM kept_edits
    UNION ALL SELECT after, 0 FROM kept_edits
    UNION ALL SELECT nullif(base, ''), 0 FROM agent_reads
    UNION ALL SELECT nullif(told, ''), 0 FROM agent_reads
    UNION ALL SELECT baseline_hash, kept FROM review_files
    UNION ALL SELECT flagged_hash, kept FROM review_files
    UNION ALL SELECT last_hash, 0 FROM review_files
    UNION ALL SELECT verdict_hash, kept FROM review_files
    UNION ALL SELECT written_hash, 0 FROM review_files
    UNION ALL SELECT old_hash, 1 FROM verdict_steps
    UNION ALL SELECT new_hash, 1 FROM verdict_steps
    UNION ALL SELECT part_before, 1 FROM verdict_parts
    UNION ALL SELECT part_after, 1 FROM verdict_parts
    UNION ALL SELECT rest_before, 1 FROM verdict_parts
    UNION ALL SELECT rest_after, 1 FROM verdict_parts
    UNION ALL SELECT hash, 1 FROM finished_files
    UNION ALL SELECT hash, 1 FROM review_saved)
WHERE hash LIKE '%:%' AND hash NOT IN (SELECT hash FROM blobs) GROUP BY hash;
