-- Why no server may use the directory. No row if servers may.
CREATE TABLE IF NOT EXISTS plimsoll_closed (
    one BIGINT NOT NULL PRIMARY KEY,
    reason VARBINARY(1024) NOT NULL
) ENGINE = InnoDB;
