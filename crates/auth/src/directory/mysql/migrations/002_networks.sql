-- Keyed hashes of networks that accounts logged in from. `plimsoll_probe` is written only to check that the
-- database can be written.
CREATE TABLE IF NOT EXISTS plimsoll_networks (
    account BIGINT NOT NULL,
    network BINARY(32) NOT NULL,
    seen BIGINT NOT NULL,
    PRIMARY KEY (account, network),
    KEY by_age (seen),
    FOREIGN KEY (account) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS plimsoll_probe (
    one BIGINT NOT NULL PRIMARY KEY, probed BIGINT NOT NULL
) ENGINE = InnoDB;
