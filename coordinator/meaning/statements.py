"""The tables of the index of meaning, and its statements, each under its name. They are apart from
the coordinator's own because the index is a cache."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS files (
  id     INTEGER PRIMARY KEY,
  path   TEXT NOT NULL UNIQUE,
  hash   BLOB NOT NULL,           -- of the bytes that the facts are of
  stamp  TEXT NOT NULL,           -- of the file when they were read; empty: look at its bytes
  module TEXT NOT NULL,           -- its dotted name from the root, its last part first
  facts  BLOB NOT NULL            -- MessagePack, compressed
) STRICT;
CREATE INDEX IF NOT EXISTS files_by_module ON files (module);
CREATE TABLE IF NOT EXISTS names (
  name TEXT NOT NULL, role TEXT NOT NULL, file INTEGER NOT NULL,
  PRIMARY KEY (name, role, file)
) STRICT, WITHOUT ROWID;
"""

PUT_FILE = "INSERT INTO files (path, hash, stamp, module, facts) VALUES (?, ?, ?, ?, ?)"
PUT_NAME = "INSERT INTO names VALUES (?, ?, ?)"
RESTAMP = "UPDATE files SET stamp = ? WHERE path = ?"
PATHS = "SELECT path FROM files"
KNOWN = "SELECT hash, stamp FROM files WHERE path = ?"
FACTS = "SELECT facts FROM files WHERE path = ?"
WITH_NAME = (
    "SELECT f.path FROM names n JOIN files f ON f.id = n.file "
    "WHERE n.name = ? AND n.role = ? LIMIT ?"
)
MODULES = (
    "SELECT path FROM files WHERE module = ?1 "
    "UNION ALL SELECT path FROM files WHERE module >= ?1 || '.' AND module < ?1 || '/' "
    "LIMIT ?2"
)
HAS = "SELECT 1 FROM files WHERE path = ?"
HAS_BELOW = "SELECT 1 FROM files WHERE path >= ? AND path < ? LIMIT 1"
COUNTED = "SELECT 1 FROM files"
FILE = "SELECT id, facts FROM files WHERE path = ?"
DROP_NAME = "DELETE FROM names WHERE name = ? AND role = ? AND file = ?"
DROP_FILE = "DELETE FROM files WHERE id = ?"
ANYTHING = "SELECT 1 FROM sqlite_schema"
