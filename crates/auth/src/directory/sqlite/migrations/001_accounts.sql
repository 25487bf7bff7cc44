-- Times are milliseconds since 1970. `version` counts the passwords that an account has had. `permissions` are the
-- bits of values.rs. A session's id is a hash, a path is bytes.
CREATE TABLE accounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL,
    version INTEGER NOT NULL,
    quota_bytes INTEGER,
    quota_files INTEGER,
    permissions INTEGER NOT NULL,
    enabled INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;
CREATE TABLE sessions (
    id BLOB NOT NULL PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_age ON sessions (account, created, id);
CREATE INDEX sessions_by_end ON sessions (expires);
CREATE TABLE shares (
    id TEXT NOT NULL PRIMARY KEY,
    owner INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    holder INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    path BLOB NOT NULL,
    permission INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER,
    UNIQUE (owner, holder, path)
) STRICT;
CREATE INDEX shares_by_holder ON shares (holder);
