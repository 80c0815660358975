-- name: event_append
-- The log's only insert.
INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: event_get
SELECT seq, at, kind, agent, task, resource, data FROM events WHERE seq = ?;

-- name: event_from
SELECT seq FROM events WHERE seq >= ? ORDER BY seq LIMIT 1;

-- name: event_at_from
SELECT at FROM events WHERE seq >= ? ORDER BY seq LIMIT 1;

-- name: regions_leased_since
-- Regions of a file that were granted from an instant on, and to whom.
SELECT DISTINCT agent, resource AS name FROM events
WHERE seq >= ?1 AND at >= ?2 AND kind = 'lease_granted'
  AND resource > ?3 || '::' AND resource < ?3 || ':;';

-- name: unleased_last_since
-- Files that somebody changed who had not leased them, from an instant on, and when last.
SELECT resource, max(at) AS at FROM events
WHERE seq >= ?1 AND at >= ?2 AND kind = 'unleased_write' AND agent IS NULL
GROUP BY resource;

-- name: event_newest
SELECT max(seq) FROM events;

-- name: has_log
SELECT 1 FROM sqlite_schema WHERE name = 'events';

-- name: schema_pages
SELECT pageno FROM dbstat WHERE name IN ('sqlite_schema', 'sqlite_master');

-- name: event_last
SELECT coalesce(max(seq), (SELECT max(seq) FROM snapshots), 0) FROM events;

-- name: events_after
-- Those of a resource: with its regions.
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE seq > ?1 AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR task = ?3)
  AND (?4 IS NULL OR resource = ?4 OR (resource > ?4 || '::' AND resource < ?4 || ':;'))
  AND (?5 IS NULL OR kind = ?5)
ORDER BY seq LIMIT ?6;

-- name: events_all
SELECT seq, at, kind, agent, task, resource, data FROM events WHERE seq > ? AND seq <= ?
ORDER BY seq LIMIT ?;

-- name: task_first_event
SELECT min(seq) FROM events WHERE task = ?;

-- name: lapsed_once
-- Whether a lease of this agent on this resource has lapsed, as far as the log reaches back.
SELECT 1 FROM events WHERE kind = 'lease_lapsed' AND resource = ? AND agent = ? LIMIT 1;

-- name: events_of_review
-- The end of the story of a review's task, or else of its agent; newest first.
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE seq >= ?1 AND (task = ?2 OR (?2 IS NULL AND agent = ?3))
  AND kind NOT IN ('agent_seen', 'lease_renewed', 'claim_renewed', 'notices_delivered')
ORDER BY seq DESC LIMIT ?4;

-- name: events_older_than
SELECT coalesce(max(seq), 0) FROM events WHERE at < ?;

-- name: events_delete_some
DELETE FROM events WHERE seq <= min(?1, (SELECT min(seq) FROM events) + ?2 - 1);

-- name: snapshot_latest
SELECT seq, state FROM snapshots ORDER BY seq DESC LIMIT 1;

-- name: snapshot_seq
SELECT max(seq) FROM snapshots;

-- name: snapshot_put
INSERT INTO snapshots (seq, at, state) VALUES (?, ?, ?);

-- name: snapshots_delete_before
DELETE FROM snapshots WHERE seq < ?;

-- name: waypoint_state
-- The nearest one up to an event.
SELECT seq, state FROM waypoints WHERE seq <= ? ORDER BY seq DESC LIMIT 1;

-- name: waypoint_put
INSERT OR REPLACE INTO waypoints (seq, state, begun) VALUES (?, ?, ?);

-- name: waypoints_delete_before
DELETE FROM waypoints WHERE seq < ?;

-- name: meta_get
SELECT value FROM meta WHERE key = ?;

-- name: meta_put
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: counter_get
SELECT value FROM counters WHERE name = ?;

-- name: counters_all
SELECT name, value AS count FROM counters;

-- name: counter_put
INSERT INTO counters (name, value) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: metrics
-- Name -> how many there are now: what Prometheus is told (daemon/metrics.py).
SELECT 'agents:' || state AS name, count(*) AS count FROM agents GROUP BY state
UNION ALL SELECT 'leases:' || mode, count(*) FROM file_locks WHERE expires_at > ?1 GROUP BY mode
UNION ALL SELECT 'waiters', count(*) FROM waiters
UNION ALL SELECT 'tasks:' || state, count(*) FROM tasks GROUP BY state
UNION ALL SELECT 'reviews', count(*) FROM reviews WHERE state = 'open'
UNION ALL SELECT 'requests', count(*) FROM unlock_requests WHERE status = 'pending';
