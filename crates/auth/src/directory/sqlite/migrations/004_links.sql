-- Public links. The id is a hash of the token. `password` is a hash, empty if there is none; `secret` is the key of
-- the grants of visitors. `uses` are downloads, or uploads.
CREATE TABLE links (
    id TEXT NOT NULL PRIMARY KEY,
    owner INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    path BLOB NOT NULL,
    uploads INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER,
    password TEXT NOT NULL,
    secret BLOB NOT NULL,
    uses_max INTEGER,
    uses INTEGER NOT NULL,
    bytes_max INTEGER,
    bytes INTEGER NOT NULL
) STRICT;
CREATE INDEX links_by_owner ON links (owner);
