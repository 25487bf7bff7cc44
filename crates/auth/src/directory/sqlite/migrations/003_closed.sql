-- Why no server may use the directory. Empty if servers may.
CREATE TABLE state (closed TEXT NOT NULL) STRICT;
INSERT INTO state VALUES ('');
