-- Keyed hashes of networks that accounts logged in from. `probed` is written only to check that the database can
-- be written.
ALTER TABLE state ADD COLUMN probed bigint NOT NULL DEFAULT 0;
CREATE TABLE networks (
    account bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    network bytea NOT NULL,
    seen bigint NOT NULL,
    PRIMARY KEY (account, network)
);
CREATE INDEX networks_by_age ON networks (seen);
