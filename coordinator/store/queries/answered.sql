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

-- name: awaited_put
-- Who asks again is the newest of them: so those who are connected are told, too.
INSERT OR REPLACE INTO awaited (asker, key, op, digest, acquisition_id) VALUES (?, ?, ?, ?, ?);

-- name: awaited_of
SELECT asker, key, op, digest FROM awaited WHERE acquisition_id = ? ORDER BY rowid DESC;

-- name: awaited_move
UPDATE awaited SET acquisition_id = ?2 WHERE acquisition_id = ?1;

-- name: awaited_end
DELETE FROM awaited WHERE acquisition_id = ?;

-- name: awaited_forget
-- Those that stand in line no more, and those that nothing is written for any more.
DELETE FROM awaited WHERE acquisition_id NOT IN (SELECT acquisition_id FROM waiters)
  AND acquisition_id NOT IN (SELECT review_id FROM verdicts);
