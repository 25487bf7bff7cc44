-- Locks of WebDAV. The id is in the lock's token. The owner is the account whose home has the path, the holder the one
-- that took the lock. `deep` locks also have all below the path. `about` is the element `owner` of LOCK, as XML.
CREATE TABLE IF NOT EXISTS plimsoll_locks (
    id VARBINARY(255) NOT NULL PRIMARY KEY,
    owner BIGINT NOT NULL,
    holder BIGINT NOT NULL,
    path VARBINARY(4096) NOT NULL,
    shared BIGINT NOT NULL,
    deep BIGINT NOT NULL,
    about VARBINARY(4096) NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    KEY by_owner (owner),
    KEY by_holder (holder),
    KEY by_end (expires),
    FOREIGN KEY (owner) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE,
    FOREIGN KEY (holder) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE
) ENGINE = InnoDB;
