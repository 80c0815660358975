-- name: answered_get
SELECT op, digest, answer, at FROM answered WHERE asker = ? AND key = ?;

-- name: answered_put
INSERT INTO answered (asker, key, op, digest, answer, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key, asker) DO UPDATE SET op = excluded.op, digest = excluded.digest,
    answer = excluded.answer, at = excluded.at;

-- name: answered_forget
DELETE FROM answered WHERE at <= ?1;

-- name: answered_trim
-- All but the newest so many.
DELETE FROM answered WHERE at < (SELECT at FROM answered ORDER BY at DESC LIMIT 1 OFFSET ?1);
