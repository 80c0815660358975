-- name: leases_named
SELECT {lease} FROM file_locks WHERE file_path = ? ORDER BY fencing_token;

-- name: event_at
-- When an event was; of one that compaction has removed, when the next one was.
SELECT at FROM events WHERE seq >= ? ORDER BY seq LIMIT 1;

-- name: events_last
SELECT seq, at, kind, agent, task, resource, data FROM (
    SELECT * FROM events
    WHERE seq > ?1 AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR task = ?3)
      AND (?4 IS NULL OR resource = ?4 OR (resource > ?4 || '::' AND resource < ?4 || ':;'))
      AND (?5 IS NULL OR kind = ?5)
    ORDER BY seq DESC LIMIT ?6) ORDER BY seq;

-- name: events_of_interest
-- What a person watching the dashboard wants: not heartbeats and bookkeeping.
SELECT seq, at, kind, agent, task, resource, data FROM (
    SELECT * FROM events
    WHERE kind NOT IN ('agent_seen', 'lease_renewed', 'claim_renewed', 'notices_delivered',
                       'versions_seen', 'waiter_changed', 'notice_posted', 'content_read',
                       'signal_left', 'signals_faded', 'messages_seen', 'messages_forgotten')
    ORDER BY seq DESC LIMIT ?1) ORDER BY seq;

-- name: events_of_task
SELECT seq, at, kind, agent, task, resource, data FROM events WHERE task = ?1 ORDER BY seq LIMIT ?2;

-- name: events_of_resource
-- With its regions, the directories that it lies in (?4), and the reviews that it is in; not what
-- coord itself held while it wrote a verdict.
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE ((resource = ?1 OR (resource > ?1 || '::' AND resource < ?1 || ':;')
        OR resource IN (SELECT value FROM json_each(?4))) AND (agent IS NULL OR substr(agent, 1, 6) <> 'coord/'))
   OR (kind = 'acquisition_refused' AND instr(data, ?2))
   OR (kind IN ('review_opened', 'review_decided', 'review_undone', 'verdict_ended')
       AND data ->> 'review' IN (SELECT review_id FROM review_files WHERE path = ?1))
ORDER BY seq LIMIT ?3;

-- name: events_of_agent
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE agent = ?1 AND kind NOT IN ('agent_seen', 'lease_renewed', 'claim_renewed',
                                  'notices_delivered') ORDER BY seq LIMIT ?2;

-- name: events_of_unlock
-- The story of an unlock request, which stands in line under its own id.
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE kind IN ('unlock_asked', 'unlock_passed', 'unlock_answered', 'waiter_queued', 'waiter_left')
  AND (data ->> 'request' = ?1 OR data ->> 'acquisition_id' = ?1) ORDER BY seq LIMIT ?2;

-- name: events_of_id
-- All that tells of what has this id, a text of JSON's: a place in line, a change, a step, ….
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE instr(data, ?1) AND kind NOT IN ('agent_seen', 'lease_renewed', 'claim_renewed',
                                       'notices_delivered', 'waiter_changed')
ORDER BY seq LIMIT ?2;

-- name: events_of_thread
-- What was said in a thread, by the number of its first message.
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE kind = 'message_sent' AND data ->> 'thread' = ?1 ORDER BY seq LIMIT ?2;

-- name: waypoint_begun
-- The same, with what had begun by then. `size`: bytes of both.
SELECT seq, length(state) + length(begun) AS size, begun FROM waypoints WHERE seq <= ?
ORDER BY seq DESC LIMIT 1;

-- name: report_events
-- What a report is gathered from (slices/story/report.py), in its order; with ?4 also what
-- only the lanes of a timeline show (slices/story/lanes.py).
SELECT seq, at, kind, agent, task, resource, data FROM events
WHERE seq > ?1 AND seq <= ?5 AND at <= ?2
  AND (kind IN ('acquisition_refused', 'gives_way', 'write_lost', 'candidate_judged',
               'waiter_queued', 'waiter_changed', 'waiter_left', 'lease_granted', 'lease_moved',
               'lease_released', 'lease_lapsed', 'claim_waits', 'task_added', 'task_edited', 'task_changed',
               'agent_registered', 'agent_state')
       OR (?4 AND (kind IN ('review_opened', 'review_decided', 'review_undone', 'review_split',
                            'content_read', 'edits_kept', 'message_sent', 'key_written')
                   OR kind = 'agent_seen' AND instr(data, '"moved":true'))))
ORDER BY seq LIMIT ?3;
