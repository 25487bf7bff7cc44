-- Public links. The id is a hash of the token. `password` is a hash, empty if there is none. `secret` is the key of
-- the grants of visitors. `uses` are downloads, or uploads.
CREATE TABLE IF NOT EXISTS plimsoll_links (
    id VARBINARY(255) NOT NULL PRIMARY KEY,
    owner BIGINT NOT NULL,
    path VARBINARY(4096) NOT NULL,
    uploads BIGINT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT,
    password VARBINARY(1024) NOT NULL,
    secret VARBINARY(64) NOT NULL,
    uses_max BIGINT,
    uses BIGINT NOT NULL,
    bytes_max BIGINT,
    bytes BIGINT NOT NULL,
    KEY by_owner (owner),
    KEY by_end (expires),
    FOREIGN KEY (owner) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE
) ENGINE = InnoDB;
