-- Times are milliseconds since 1970. `accounts.version` counts the passwords that an account has had. `permissions`
-- are the bits of values.rs. A session's id is a hash, a path is bytes. An index entry is limited to a third of a
-- page, and a path may be longer: its hash makes it unique, and its first bytes sort it.
CREATE SCHEMA IF NOT EXISTS plimsoll;
CREATE TABLE state (version bigint NOT NULL, changes bigint NOT NULL);
INSERT INTO state VALUES (0, 0);
CREATE TABLE accounts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    hash text NOT NULL,
    version bigint NOT NULL,
    quota_bytes bigint,
    quota_files bigint,
    permissions bigint NOT NULL,
    enabled boolean NOT NULL,
    created bigint NOT NULL
);
CREATE TABLE sessions (
    id bytea PRIMARY KEY,
    account bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    created bigint NOT NULL,
    expires bigint NOT NULL
);
CREATE INDEX sessions_by_age ON sessions (account, created, id);
CREATE INDEX sessions_by_end ON sessions (expires);
CREATE TABLE shares (
    id text COLLATE "C" PRIMARY KEY,
    owner bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    holder bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    path bytea NOT NULL,
    writes boolean NOT NULL,
    created bigint NOT NULL,
    expires bigint
);
CREATE UNIQUE INDEX shares_by_path ON shares (owner, holder, sha256(path));
CREATE INDEX shares_in_order ON shares (owner, holder, substring(path from 1 for 1024));
CREATE INDEX shares_by_holder ON shares (holder);
CREATE INDEX shares_by_end ON shares (expires);
