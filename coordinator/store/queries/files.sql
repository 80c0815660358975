-- name: reviews_near
-- Files under open review, or whose reassigned task has not gone on yet, that may overlap a
-- resource (parameters as for `overlapping`); the last column: their partial work is kept nowhere.
SELECT f.review_id, f.path, f.scope, v.state, v.task_id,
       f.kept = 0 AND f.flagged_hash IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.hash = f.flagged_hash) AS unkept
FROM review_files f
JOIN reviews v USING (review_id) WHERE (v.state = 'open' OR (v.state = 'reassigned' AND EXISTS (
    SELECT 1 FROM tasks t WHERE t.partial = v.review_id AND t.state IN ('ready', 'failed'))))
  AND f.scope IN ({scopes})
UNION ALL
SELECT f.review_id, f.path, f.scope, v.state, v.task_id,
       f.kept = 0 AND f.flagged_hash IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.hash = f.flagged_hash) FROM review_files f
JOIN reviews v USING (review_id) WHERE (v.state = 'open' OR (v.state = 'reassigned' AND EXISTS (
    SELECT 1 FROM tasks t WHERE t.partial = v.review_id AND t.state IN ('ready', 'failed'))))
  AND f.scope >= ? AND f.scope < ?;

-- name: version_get
SELECT hash, seen_at, agent, was FROM file_versions WHERE path = ?;

-- name: version_put
INSERT INTO file_versions (path, hash, seen_at, agent) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, seen_at = excluded.seen_at,
    agent = excluded.agent,
    was = CASE WHEN excluded.hash IS NULL THEN coalesce(file_versions.hash, file_versions.was) END;

-- name: read_get
SELECT hash, at, partial, base, told FROM agent_reads WHERE agent = ? AND path = ?;

-- name: read_put
-- ?5: read, written or told. What it is told of, it has not read: `base` stays what it had read.
INSERT INTO agent_reads (agent, path, hash, at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (agent, path) DO UPDATE SET hash = excluded.hash, at = excluded.at, partial = 0,
    base = CASE ?5 WHEN 'read' THEN NULL WHEN 'told' THEN coalesce(base, hash, '') ELSE base END,
    told = CASE ?5 WHEN 'read' THEN NULL WHEN 'told' THEN coalesce(excluded.hash, '') ELSE told END;

-- name: read_put_partial
-- What it wrote of a file, put into what it had read: all else is as old as before.
UPDATE agent_reads SET hash = ?3, partial = 1 WHERE agent = ?1 AND path = ?2;

-- name: kept_edits_of
-- ?2: leave out files of the main tree that are as the last edit left them, as far as was seen.
SELECT copy, path, worktree, before, after FROM kept_edits AS k
WHERE agent = ?1 AND NOT (?2 AND worktree IS NULL AND EXISTS (
    SELECT 1 FROM file_versions AS v WHERE v.path = k.path AND v.hash IS (
        SELECT after FROM kept_edits AS l WHERE l.agent = k.agent AND l.copy = k.copy
        ORDER BY n DESC LIMIT 1)))
ORDER BY copy, n;

-- name: kept_edits_of_file
SELECT copy, path, worktree, before, after FROM kept_edits WHERE agent = ? AND copy = ? ORDER BY n;

-- name: kept_edit_insert
INSERT INTO kept_edits (agent, copy, n, path, worktree, before, after)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: kept_edits_forget
DELETE FROM kept_edits WHERE agent = ? AND copy = ?;

-- name: kept_edits_delete
DELETE FROM kept_edits WHERE agent = ?;

-- name: version_elsewhere
-- Another file that has this content.
SELECT path FROM file_versions WHERE hash = ? AND path <> ? LIMIT 1;

-- name: reads_delete
DELETE FROM agent_reads WHERE agent = ?;

-- name: blob_has
SELECT mode, length(data) AS size FROM blobs WHERE hash = ?;

-- name: blob_put
INSERT INTO blobs (hash, size, data, mode) VALUES (?, ?, ?, ?)
ON CONFLICT (hash) DO UPDATE SET data = excluded.data;

-- name: blob_mode
UPDATE blobs SET mode = ?2 WHERE hash = ?1;

-- name: blob_get
-- As `blob_put` takes it.
SELECT hash, size, data, mode FROM blobs WHERE hash = ?;

-- name: blobs_stored
-- Contents that are kept as files.
SELECT hash FROM blobs WHERE length(data) = 0;

-- name: blobs_unreferenced
-- What no lease, no review and no open claim's baseline refers to. (Of a file of which a region is
-- leased the last content is needed, for what lies around that.)
SELECT hash FROM blobs WHERE hash NOT IN (
    SELECT content_hash FROM file_locks WHERE content_hash IS NOT NULL
    UNION SELECT hash FROM baselines
    UNION SELECT coalesce(v.hash, v.was) FROM file_locks l JOIN file_versions v
        ON v.path = substr(l.file_path, 1, instr(l.file_path, '::') - 1)
        WHERE l.kind = 'region' AND coalesce(v.hash, v.was) IS NOT NULL
    UNION SELECT content FROM state_versions WHERE content IS NOT NULL
    UNION SELECT content FROM changes
    UNION SELECT content FROM steps
    UNION SELECT content_hash FROM waiter_resources WHERE content_hash IS NOT NULL
    UNION SELECT content FROM candidate_regions WHERE content IS NOT NULL
    UNION SELECT hash FROM agent_reads WHERE hash IS NOT NULL
    UNION SELECT before FROM kept_edits WHERE before IS NOT NULL
    UNION SELECT after FROM kept_edits WHERE after IS NOT NULL
    UNION SELECT base FROM agent_reads WHERE base IS NOT NULL
    UNION SELECT told FROM agent_reads WHERE told IS NOT NULL
    UNION SELECT baseline_hash FROM review_files WHERE baseline_hash IS NOT NULL
    UNION SELECT flagged_hash FROM review_files WHERE flagged_hash IS NOT NULL
    UNION SELECT last_hash FROM review_files WHERE last_hash IS NOT NULL
    UNION SELECT verdict_hash FROM review_files WHERE verdict_hash IS NOT NULL
    UNION SELECT written_hash FROM review_files WHERE written_hash IS NOT NULL
    UNION SELECT old_hash FROM verdict_steps WHERE old_hash IS NOT NULL
    UNION SELECT new_hash FROM verdict_steps WHERE new_hash IS NOT NULL
    UNION SELECT part_before FROM verdict_parts WHERE part_before IS NOT NULL
    UNION SELECT part_after FROM verdict_parts WHERE part_after IS NOT NULL
    UNION SELECT rest_before FROM verdict_parts WHERE rest_before IS NOT NULL
    UNION SELECT rest_after FROM verdict_parts WHERE rest_after IS NOT NULL
    UNION SELECT hash FROM finished_files WHERE hash IS NOT NULL
    UNION SELECT hash FROM review_saved);

-- name: blob_delete
DELETE FROM blobs WHERE hash = ?;
