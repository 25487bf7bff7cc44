-- Times are milliseconds since 1970. `version` of an account counts the passwords that it has had. `permissions`
-- are the bits of values.rs. Text is binary, so that it is compared and sorted by its bytes. A path may be longer
-- than an index entry: its hash makes it unique, and its first bytes sort it.
CREATE TABLE IF NOT EXISTS plimsoll_state (
    one BIGINT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,
    changes BIGINT NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO plimsoll_state VALUES (1, 0, 0);
CREATE TABLE IF NOT EXISTS plimsoll_accounts (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARBINARY(255) NOT NULL UNIQUE,
    hash VARBINARY(1024) NOT NULL,
    version BIGINT NOT NULL,
    quota_bytes BIGINT,
    quota_files BIGINT,
    permissions BIGINT NOT NULL,
    enabled BIGINT NOT NULL,
    created BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS plimsoll_sessions (
    id VARBINARY(32) NOT NULL PRIMARY KEY,
    account BIGINT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    KEY by_age (account, created, id),
    KEY by_end (expires),
    FOREIGN KEY (account) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS plimsoll_shares (
    id VARBINARY(255) NOT NULL PRIMARY KEY,
    owner BIGINT NOT NULL,
    holder BIGINT NOT NULL,
    path VARBINARY(4096) NOT NULL,
    path_hash BINARY(32) NOT NULL,
    writes BIGINT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT,
    UNIQUE KEY by_path (owner, holder, path_hash),
    KEY in_order (owner, holder, path(700)),
    KEY by_holder (holder),
    KEY by_end (expires),
    FOREIGN KEY (owner) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE,
    FOREIGN KEY (holder) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE
) ENGINE = InnoDB;
