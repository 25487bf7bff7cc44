-- Keyed hashes of networks that accounts logged in from.
CREATE TABLE networks (
    account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    network BLOB NOT NULL,
    seen INTEGER NOT NULL,
    PRIMARY KEY (account, network)
) STRICT, WITHOUT ROWID;
CREATE INDEX networks_by_age ON networks (seen);
