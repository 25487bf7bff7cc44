-- Why no server may use the directory. Empty if servers may.
ALTER TABLE state ADD COLUMN closed text NOT NULL DEFAULT '';
