-- name: state_put
INSERT INTO state_versions (scope, version, key, content, size, written_by, written_at,
    fencing_token) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: state_trim
DELETE FROM state_versions WHERE scope = ? AND version <= ?;

-- name: state_now
-- The newest version of a key.
SELECT scope, version, key, content, size, written_by, written_at, fencing_token
FROM state_versions WHERE scope = ? ORDER BY version DESC LIMIT 1;

-- name: state_at
SELECT scope, version, key, content, size, written_by, written_at, fencing_token
FROM state_versions WHERE scope = ? AND version = ?;

-- name: state_history
SELECT scope, version, key, content, size, written_by, written_at, fencing_token
FROM state_versions WHERE scope = ? ORDER BY version DESC LIMIT ?;

-- name: state_keys
-- The newest version of each key from a scope on, before another.
SELECT scope, max(version) AS version, key, content, size, written_by, written_at, fencing_token
FROM state_versions WHERE scope > ?1 AND scope < ?2 GROUP BY scope ORDER BY scope LIMIT ?3;

-- name: state_count
SELECT count(DISTINCT scope) FROM state_versions;

-- name: change_put
INSERT INTO changes (change_id, n, key, scope, asked_by, content, note, during, state, attempts,
    attempts_max, why, asked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'queued', 0, ?9, '', ?10);

-- name: change_move
UPDATE changes SET state = ?2, attempts = ?3, not_before = ?4, given_to = ?5, given_until = ?6,
    version = ?7, why = ?8, closed_at = ?9 WHERE change_id = ?1;

-- name: change_delete
DELETE FROM changes WHERE change_id = ?;

-- name: change_get
SELECT change_id, n, key, scope, asked_by, content, note, during, state, attempts, attempts_max,
       not_before, given_to, given_until, version, why, asked_at, closed_at
FROM changes WHERE change_id = ?;

-- name: changes_list
SELECT change_id, n, key, scope, asked_by, content, note, during, state, attempts, attempts_max,
       not_before, given_to, given_until, version, why, asked_at, closed_at
FROM changes WHERE n > ?1 AND (?2 = 'all' OR state = ?2 OR (?2 = 'open'
  AND state IN ('queued', 'given'))) AND (?3 IS NULL OR (scope >= ?3 AND scope < ?4))
ORDER BY n LIMIT ?5;

-- name: changes_given
-- Changes of keys below a scope that somebody is at.
SELECT change_id, n, key, scope, asked_by, content, note, during, state, attempts, attempts_max,
       not_before, given_to, given_until, version, why, asked_at, closed_at
FROM changes WHERE state = 'given' AND scope >= ?1 AND scope < ?2 ORDER BY n;

-- name: change_next
-- The oldest change below a scope that may be tried now, of a key of which none before it waits for
-- another attempt: changes of one key keep their order.
SELECT change_id, n, key, scope, asked_by, content, note, during, state, attempts, attempts_max,
       not_before, given_to, given_until, version, why, asked_at, closed_at
FROM changes c WHERE state = 'queued' AND scope >= ?1 AND scope < ?2
  AND (not_before IS NULL OR not_before <= ?3)
  AND NOT EXISTS (SELECT 1 FROM changes b WHERE b.scope = c.scope AND b.n < c.n
                  AND b.state IN ('queued', 'given'))
ORDER BY n LIMIT 1;

-- name: changes_during
-- Open changes that were asked for in the course of one.
SELECT change_id, n, key, scope, asked_by, content, note, during, state, attempts, attempts_max,
       not_before, given_to, given_until, version, why, asked_at, closed_at
FROM changes WHERE during = ? AND state IN ('queued', 'given') ORDER BY n;

-- name: changes_late
-- Changes whose time is over; whoever was given them hangs, or has gone.
SELECT change_id FROM changes WHERE state = 'given' AND given_until <= ? ORDER BY n LIMIT 200;

-- name: changes_due
-- Some change may be tried again now.
SELECT 1 FROM changes WHERE state = 'queued' AND not_before IS NOT NULL AND not_before <= ? LIMIT 1;

-- name: changes_open
SELECT count(*) FROM changes WHERE state IN ('queued', 'given');

-- name: changes_open_at
SELECT count(*) FROM changes WHERE state IN ('queued', 'given') AND scope = ?;

-- name: changes_old
SELECT change_id FROM changes WHERE closed_at <= ? AND state IN ('done', 'refused', 'dropped')
ORDER BY closed_at LIMIT ?;

-- name: changes_dead_newest
SELECT change_id, n, key, scope, asked_by, content, note, during, state, attempts, attempts_max,
       not_before, given_to, given_until, version, why, asked_at, closed_at
FROM changes WHERE state = 'dead' AND (?1 = '' OR (closed_at, change_id) < (?1, ?2))
ORDER BY closed_at DESC, change_id DESC LIMIT ?3;

-- name: highest_change
SELECT coalesce(max(n), 0) FROM changes;
