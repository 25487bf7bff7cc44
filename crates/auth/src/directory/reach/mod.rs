//! How a database is reached: a connection that is kept, and made anew when it broke.
//!
//! It speaks no database's language. What must hold: a call has answered or failed within
//! [`DATABASE_TIME`], its connecting included; while a database is away, one call in
//! [`DATABASE_RETRY_TIME`] finds that out by waiting, and the others are told at once; a connection that
//! failed in any way is never used again, so that no late answer is taken for another's.

pub(super) mod seen;
pub(super) mod socket;
pub(super) mod url;

use super::Trouble;
use crate::limits::{DATABASE_CONNECT_TIME, DATABASE_RETRY_TIME, DATABASE_TIME};
use socket::{Deadline, Socket};

/// A connection that speaks a database's language.
pub(super) trait Line: Sized {
    /// What it takes to make one.
    type Way;

    /// Connects, and makes sure that it is the directory that we know.
    fn open(way: &Self::Way, by: Deadline) -> Result<Self, Trouble>;

    /// Its socket.
    fn socket(&mut self) -> &mut Socket;
}

/// The way to a database, and a connection if there is one.
pub(super) struct Reach<L: Line> {
    way: L::Way,
    line: Option<L>,
    away: Option<Away>,
    /// Whether it is another connection than when this was asked last.
    is_new: bool,
}

/// A database that could not be reached: until when nobody tries, and why.
struct Away {
    until: Deadline,
    why: Trouble,
}

impl<L: Line> Reach<L> {
    /// With a connection that was just made.
    pub(super) fn new(way: L::Way, line: L) -> Reach<L> {
        Reach { way, line: Some(line), away: None, is_new: false }
    }

    /// Runs `work` with a connection. What it does is not done again if it fails: nobody knows whether it
    /// was.
    pub(super) fn call<T>(&mut self, work: impl FnOnce(&mut L) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let by = Deadline::after(DATABASE_TIME);
        let done = self.line(by).and_then(|mut line| {
            line.socket().set_deadline(by);
            let done = work(&mut line)?;
            self.line = Some(line);
            Ok(done)
        });
        if let Err(why) = &done
            && by.is_over()
        {
            self.give_up(why);
        }
        done
    }

    /// Whether it was connected anew since this was asked last: what answers may have lost or changed
    /// anything meanwhile, also what it counts changes by.
    pub(super) fn was_lost(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// The connection that is kept, or a new one.
    fn line(&mut self, by: Deadline) -> Result<L, Trouble> {
        if let Some(mut line) = self.line.take()
            && line.socket().is_quiet()
        {
            return Ok(line);
        }
        if let Some(Away { until, why }) = &self.away
            && !until.is_over()
        {
            return Err(why.clone());
        }
        let line = L::open(&self.way, by.within(DATABASE_CONNECT_TIME));
        self.away = None;
        self.is_new = true;
        if let Err(why) = &line {
            self.give_up(why);
        }
        line
    }

    fn give_up(&mut self, why: &Trouble) {
        self.away = Some(Away { until: Deadline::after(DATABASE_RETRY_TIME), why: why.clone() });
    }
}
