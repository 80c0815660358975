-- name: message_put
INSERT INTO messages (message_id, n, thread, sender, recipient, task_id, reply_to, text, sent_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: messages_see
UPDATE messages SET seen_at = ?2 WHERE recipient = 'human' AND seen_at IS NULL AND n <= ?1;

-- name: message_delete
DELETE FROM messages WHERE message_id = ?;

-- name: message_get
SELECT message_id, n, thread, sender, recipient, task_id, reply_to, text, sent_at, seen_at
FROM messages WHERE message_id = ?;

-- name: messages_newest
-- The newest before a number that fit: a reader's own since it registered, of a task, of a thread.
SELECT message_id, n, thread, sender, recipient, task_id, reply_to, text, sent_at, seen_at
FROM messages WHERE n < ?1 AND sent_at >= ?2
  AND (?3 IS NULL OR sender = ?3 OR recipient = ?3 OR (recipient = 'all' AND ?3 <> 'human'))
  AND (?4 IS NULL OR task_id = ?4) AND (?5 IS NULL OR thread = ?5)
ORDER BY n DESC LIMIT ?6;

-- name: messages_newest_of_task
-- The same where a task is named: by the index of tasks.
SELECT message_id, n, thread, sender, recipient, task_id, reply_to, text, sent_at, seen_at
FROM messages WHERE task_id = ?4 AND n < ?1 AND sent_at >= ?2
  AND (?3 IS NULL OR sender = ?3 OR recipient = ?3 OR (recipient = 'all' AND ?3 <> 'human'))
  AND (?5 IS NULL OR thread = ?5)
ORDER BY n DESC LIMIT ?6;

-- name: messages_unheard
-- Which messages an agent has not been told of yet.
SELECT data ->> 'message' FROM notices WHERE agent = ? AND kind = 'message';

-- name: messages_unheard_of
-- How many messages of one sender another has not been told of yet.
SELECT count(*) FROM notices WHERE agent = ?1 AND kind = 'message' AND data ->> 'sender' = ?2;

-- name: messages_unseen
SELECT count(*) FROM messages WHERE recipient = 'human' AND seen_at IS NULL;

-- name: messages_unseen_of
-- How many messages of one sender no person has seen yet.
SELECT count(*) FROM messages WHERE recipient = 'human' AND seen_at IS NULL AND sender = ?;

-- name: messages_sent_since
-- How many one sender has sent since an instant.
SELECT count(*) FROM messages WHERE sender = ? AND sent_at > ?;

-- name: messages_alone_in
-- How many a thread has since a person last said something in it.
SELECT count(*) FROM messages WHERE thread = ?1 AND n > coalesce(
    (SELECT max(n) FROM messages WHERE thread = ?1 AND sender = 'human'), 0);

-- name: messages_old
SELECT message_id FROM messages WHERE sent_at <= ?1 ORDER BY sent_at LIMIT ?2;

-- name: messages_beyond
-- All but the newest so many.
SELECT message_id FROM messages ORDER BY n DESC LIMIT ?2 OFFSET ?1;

-- name: highest_message
SELECT coalesce(max(n), 0) FROM messages;
