-- name: agent_get
SELECT agent, parent, profile, description, token_hash, state, registered_at, seen_at, progress_at,
       progress, silence_ms, session, hooked_at, rests_until, rests_why, explained, origin FROM agents WHERE agent = ?;

-- name: agent_by_token
SELECT agent, parent, profile, description, token_hash, state, registered_at, seen_at, progress_at,
       progress, silence_ms, session, hooked_at, rests_until, rests_why, explained, origin FROM agents WHERE token_hash = ? AND state <> 'gone';

-- name: agent_children
SELECT agent FROM agents WHERE parent = ? AND state <> 'gone';

-- name: agents_all
SELECT agent, parent, profile, description, token_hash, state, registered_at, seen_at, progress_at,
       progress, silence_ms, session, hooked_at, rests_until, rests_why, explained, origin
FROM agents ORDER BY registered_at, agent;

-- name: agents_there
SELECT agent, parent, profile, description, token_hash, state, registered_at, seen_at, progress_at,
       progress, silence_ms, session, hooked_at, rests_until, rests_why, explained, origin
FROM agents WHERE state <> 'gone' ORDER BY registered_at, agent;

-- name: agents_named
-- Those that are there with this name, or this name and what follows a hyphen.
SELECT agent FROM agents WHERE state <> 'gone'
  AND (agent = ?1 OR agent >= ?1 || '-' AND agent < ?1 || '.') ORDER BY agent;

-- name: program_put
INSERT INTO program_processes (agent, process, handed) VALUES (?1, ?2, 0)
ON CONFLICT (agent) DO UPDATE SET process = excluded.process, handed = 0;

-- name: program_process
SELECT process, handed FROM program_processes WHERE agent = ?;

-- name: program_of_token
SELECT p.agent, p.process FROM agents a JOIN program_processes p ON p.agent = a.agent
WHERE a.token_hash = ? AND NOT p.handed;

-- name: program_handed
UPDATE program_processes SET handed = 1 WHERE agent = ?;

-- name: programs_forget
DELETE FROM program_processes WHERE agent NOT IN (SELECT agent FROM agents WHERE state <> 'gone');

-- name: programs_silent
-- Programs that named no silence and were not heard of since ?1, and stale ones not since ?2, without
-- a lease or claim that lives at ?3. Who has a connection is known to the daemon.
SELECT agent, parent, profile, description, token_hash, state, registered_at, seen_at, progress_at,
       progress, silence_ms, session, hooked_at, rests_until, rests_why, explained, origin
FROM agents WHERE state <> 'gone' AND origin = 'program' AND token_hash IS NOT NULL
  AND seen_at <= ?1 AND (state = 'active' AND silence_ms IS NULL OR seen_at <= ?2)
  AND (state = 'stale' OR silence_ms IS NULL)
  AND NOT EXISTS (SELECT 1 FROM file_locks WHERE locked_by = agent AND expires_at > ?3)
  AND NOT EXISTS (SELECT 1 FROM tasks WHERE claimed_by = agent AND claim_until > ?3);

-- name: agents_silent
-- Heard of last longer ago than they promised: seen_at is compared by the caller.
SELECT agent, parent, profile, description, token_hash, state, registered_at, seen_at, progress_at,
       progress, silence_ms, session, hooked_at, rests_until, rests_why, explained, origin
FROM agents WHERE state <> 'gone' AND state = 'active' AND silence_ms IS NOT NULL;

-- name: agent_put
INSERT INTO agents (agent, parent, profile, description, token_hash, state, registered_at, seen_at,
                    progress_at, silence_ms, origin)
VALUES (?1, ?2, ?3, ?4, ?5, 'active', ?6, ?6, ?6, ?7, ?8)
ON CONFLICT (agent) DO UPDATE SET parent = excluded.parent, profile = excluded.profile,
    description = excluded.description, token_hash = excluded.token_hash, state = 'active',
    seen_at = excluded.seen_at, silence_ms = excluded.silence_ms, explained = NULL,
    origin = excluded.origin;

-- name: agent_has_left
SELECT 1 FROM agents WHERE agent = ? AND state = 'gone';

-- name: agent_delete
DELETE FROM agents WHERE agent = ?;

-- name: agent_touch
UPDATE agents SET seen_at = ?2, state = 'active',
    progress = coalesce(?3, progress), progress_at = CASE WHEN ?4 THEN ?2 ELSE progress_at END
WHERE agent = ?1;

-- name: agent_state_set
UPDATE agents SET state = ?2, token_hash = CASE WHEN ?2 = 'gone' THEN NULL ELSE token_hash END
WHERE agent = ?1;

-- name: agent_hooked
-- Its session is kept; when its hooks first reported in stays.
UPDATE agents SET session = ?2, hooked_at = coalesce(hooked_at, ?3),
    explained = CASE WHEN session IS ?2 THEN explained END WHERE agent = ?1;

-- name: agent_explained
-- The last ones only, so that the row stays small.
UPDATE agents SET explained = substr(coalesce(explained || char(10), '') || ?2, -4000)
WHERE agent = ?1;

-- name: agent_rest
UPDATE agents SET rests_until = ?2, rests_why = ?3 WHERE agent = ?1;

-- name: children_in_line
-- Sub-agents of an agent that stand in line.
SELECT agent FROM agents WHERE parent = ? AND state <> 'gone'
  AND EXISTS (SELECT 1 FROM waiters w WHERE w.agent = agents.agent) ORDER BY agent;

-- name: notice_insert
INSERT INTO notices (notice, agent, at, kind, text, data) VALUES (?, ?, ?, ?, ?, ?);

-- name: notices_of
SELECT notice, at, kind, text, data FROM notices WHERE agent = ? AND notice > ? ORDER BY notice
LIMIT 100;

-- name: notices_delete
DELETE FROM notices WHERE agent = ? AND notice <= ?;

-- name: notices_delete_but_messages
DELETE FROM notices WHERE agent = ? AND notice <= ? AND kind <> 'message';

-- name: notices_first
SELECT min(notice) FROM notices WHERE agent = ?;

-- name: highest_notice
SELECT coalesce(max(notice), 0) FROM notices;
