//! How a database is reached: a connection that is kept, and made anew when it broke.
//!
//! It speaks no database's language. What must hold: a call has answered or failed within
//! [`DATABASE_TIME`], its connecting included; while a database is away, one call of a connection in
//! [`DATABASE_RETRY_TIME`] finds that out by waiting, and the others are told at once; a connection that
//! failed in any way is never used again, so that no late answer is taken for another's.

pub(super) mod seen;
pub(super) mod socket;
pub(super) mod url;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    line: Option<L>,
    common: Arc<Common<L::Way>>,
}

/// What all connections of a process to a database have in common.
struct Common<W> {
    way: W,
    away: Mutex<Option<Away>>,
    /// Whether one was made since this was asked last.
    is_new: AtomicBool,
}

/// A database that could not be reached: until when nobody tries, and why.
struct Away {
    until: Deadline,
    why: Trouble,
}

impl<L: Line> Reach<L> {
    /// With a connection that was just made.
    pub(super) fn new(way: L::Way, line: L) -> Reach<L> {
        let common = Common { way, away: Mutex::new(None), is_new: AtomicBool::new(false) };
        Reach { line: Some(line), common: Arc::new(common) }
    }

    /// Another one to the same database, which connects when it is needed.
    pub(super) fn another(&self) -> Reach<L> {
        Reach { line: None, common: Arc::clone(&self.common) }
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

    /// Ends the connection; the next call makes another.
    pub(super) fn disconnect(&mut self) {
        self.line = None;
    }

    /// Whether any was connected since this was asked last: what answers may have lost or changed anything
    /// meanwhile, also what it counts changes by.
    pub(super) fn was_lost(&self) -> bool {
        self.common.is_new.swap(false, Ordering::SeqCst)
    }

    /// The connection that is kept, or a new one.
    fn line(&mut self, by: Deadline) -> Result<L, Trouble> {
        if let Some(mut line) = self.line.take()
            && line.socket().is_quiet()
        {
            return Ok(line);
        }
        if let Some(Away { until, why }) = &*self.away()
            && !until.is_over()
        {
            return Err(why.clone());
        }
        let line = L::open(&self.common.way, by.within(DATABASE_CONNECT_TIME));
        // Before anything is asked on it.
        self.common.is_new.store(true, Ordering::SeqCst);
        match &line {
            Ok(_) => *self.away() = None,
            Err(why) => self.give_up(why),
        }
        line
    }

    fn give_up(&self, why: &Trouble) {
        *self.away() = Some(Away { until: Deadline::after(DATABASE_RETRY_TIME), why: why.clone() });
    }

    fn away(&self) -> MutexGuard<'_, Option<Away>> {
        self.common.away.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
