-- Locks of WebDAV. The id is in the lock's token. The owner is the account whose home has the path, the holder the one
-- that took the lock. `deep` locks also have all below the path. `about` is the element `owner` of LOCK, as XML.
CREATE TABLE locks (
    id TEXT NOT NULL PRIMARY KEY,
    owner INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    holder INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    path BLOB NOT NULL,
    shared INTEGER NOT NULL,
    deep INTEGER NOT NULL,
    about TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;
CREATE INDEX locks_by_owner ON locks (owner);
CREATE INDEX locks_by_holder ON locks (holder);
