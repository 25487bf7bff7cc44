-- Public links. The id is a hash of the token. `password` is a hash, empty if there is none; `secret` is the key of
-- the grants of visitors. `uses` are downloads, or uploads.
CREATE TABLE links (
    id text COLLATE "C" PRIMARY KEY,
    owner bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    path bytea NOT NULL,
    uploads boolean NOT NULL,
    created bigint NOT NULL,
    expires bigint,
    password text NOT NULL,
    secret bytea NOT NULL,
    uses_max bigint,
    uses bigint NOT NULL,
    bytes_max bigint,
    bytes bigint NOT NULL
);
CREATE INDEX links_by_owner ON links (owner);
CREATE INDEX links_by_end ON links (expires);
