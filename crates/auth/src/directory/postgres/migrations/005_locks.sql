-- Locks of WebDAV. The id is in the lock's token. The owner is the account whose home has the path, the holder the one
-- that took the lock. `deep` locks also have all below the path. `about` is the element `owner` of LOCK, as XML.
CREATE TABLE locks (
    id text COLLATE "C" PRIMARY KEY,
    owner bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    holder bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    path bytea NOT NULL,
    shared boolean NOT NULL,
    deep boolean NOT NULL,
    about text NOT NULL,
    created bigint NOT NULL,
    expires bigint NOT NULL
);
CREATE INDEX locks_by_owner ON locks (owner);
CREATE INDEX locks_by_holder ON locks (holder);
CREATE INDEX locks_by_end ON locks (expires);
