-- name: agents_active
SELECT count(*) FROM agents WHERE state = 'active';

-- name: reads_of_holders
-- What agents that hold something have read.
SELECT agent, path AS name FROM agent_reads
WHERE agent IN (SELECT locked_by FROM file_locks WHERE expires_at > ?1) LIMIT ?2;

-- name: windows_of_holder
-- The write windows that an agent has: which of its edits are in the middle.
SELECT {lease} FROM file_locks WHERE locked_by = ? AND scope >= 'k/edit/' AND scope < 'k/edit0'
ORDER BY fencing_token;

-- name: held_by_others
SELECT 1 FROM file_locks
WHERE expires_at > ?1 AND locked_by NOT IN (?2, ?3) AND kind != 'key' LIMIT 1;

-- name: rights_ended_since
-- Rights that ended from an instant on, in their order: who could write before, the watcher asks.
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE seq > ?1 AND at >= ?2 AND kind IN ('lease_released', 'lease_lapsed') ORDER BY seq;

-- name: review_written_last
-- What a verdict last wrote to a path; NULL: it removed it.
SELECT f.written_hash FROM review_files f JOIN reviews v USING (review_id)
WHERE f.path = ? AND f.written_hash IS NOT f.verdict_hash ORDER BY v.n DESC LIMIT 1;

-- name: review_of_unleased
-- Whether it was flagged that somebody wrote this content without a lease.
SELECT 1 FROM review_files JOIN reviews USING (review_id)
WHERE scope = ?1 AND flagged_hash IS ?2 AND reason = 'unleased' LIMIT 1;

-- name: lost_by
-- What an agent has lost writes of since it last wrote it.
SELECT agent, scope, resource, in_a_row, total, wasted_ms, last_at FROM lost_writes
WHERE agent = ? AND in_a_row > 0;
