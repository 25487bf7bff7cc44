//! The layout of a directory in Redis, as a list of migrations.
//!
//! `directory.lua` has them: each is a command of the script, which is repeated until it has nothing left to
//! do. Invariants: the field `version` is that of the newest step before a step begins, so that older
//! programs refuse the directory from then on. Until all steps are done, the field `upgrading` has the
//! number of the last complete one. The owner of the lock alone takes steps. A step that was interrupted is
//! repeated.

use super::connection::{Connection, Reply, strange};
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::directory::migrations::{Migrations, Step};
use crate::limits::{
    DATABASE_TIME, MIGRATION_LOCK_ATTEMPTS, MIGRATION_LOCK_WAIT_TIME, REDIS_MIGRATION_LOCK_TIME,
};

/// A connection, and the token of the lock that it has.
pub(super) struct Upgrade<'a> {
    connection: &'a mut Connection,
    token: Vec<u8>,
}

impl Upgrade<'_> {
    pub(super) fn new(connection: &mut Connection) -> Upgrade<'_> {
        Upgrade { connection, token: Vec::new() }
    }

    fn state(&mut self) -> Result<Reply, DirectoryError> {
        self.connection.ask(&[b"state"])
    }
}

impl Migrations for Upgrade<'_> {
    const STORE: &'static str = "Redis";
    const STEPS: &'static [Step] = &[
        Step { name: "accounts, sessions and shares", text: "1" },
        Step { name: "known networks", text: "2" },
        Step { name: "one hash slot, and a note that servers may not use it", text: "3" },
        Step { name: "public links", text: "4" },
        Step { name: "locks", text: "5" },
    ];

    fn version(&mut self) -> Result<i64, DirectoryError> {
        self.state()?.at(0)?.int()
    }

    fn closed(&mut self) -> Result<String, DirectoryError> {
        Ok(self.state()?.at(1)?.text()?.to_owned())
    }

    fn try_lock(&mut self) -> Result<bool, DirectoryError> {
        self.connection.set_deadline(Deadline::after(DATABASE_TIME));
        let time = REDIS_MIGRATION_LOCK_TIME.as_millis().to_string();
        let wait = (MIGRATION_LOCK_WAIT_TIME / MIGRATION_LOCK_ATTEMPTS).as_secs_f64().to_string();
        for _ in 0..MIGRATION_LOCK_ATTEMPTS {
            let reply = self.connection.ask(&[b"lock", time.as_bytes()])?;
            if reply != Reply::Nothing {
                reply.bytes()?.clone_into(&mut self.token);
                return Ok(true);
            }
            // Redis waits, for a list that is never there.
            self.connection.command(&[b"BLPOP", b"plimsoll:{plimsoll:state}:none", wait.as_bytes()])?;
        }
        Ok(false)
    }

    fn apply(&mut self, _: i64, step: &Step) -> Result<(), DirectoryError> {
        let time = REDIS_MIGRATION_LOCK_TIME.as_millis().to_string();
        let mut position = b"0".to_vec();
        loop {
            self.connection.set_deadline(Deadline::after(DATABASE_TIME));
            let words = [b"step", self.token.as_slice(), time.as_bytes(), step.text.as_bytes(), &position];
            let next = self.connection.ask(&words)?;
            next.bytes()?.clone_into(&mut position);
            if position == b"0" {
                return Ok(());
            }
        }
    }

    fn unlock(&mut self) -> Result<(), DirectoryError> {
        match self.connection.ask(&[b"unlock", &self.token])? {
            Reply::Int(1) => Ok(()),
            _ => Err(strange()),
        }
    }
}
