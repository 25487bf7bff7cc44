//! How a database is reached: a connection that is kept, and made anew when it broke.
//!
//! It speaks no database's language. What must hold: a call has answered or failed within
//! [`DATABASE_TIME`], its connecting included; while a database is away, one call in
//! [`DATABASE_RETRY_TIME`] finds that out by waiting, and the others are told at once, so that waits do not
//! add up for who comes after others; a connection that failed in any way is never used again, so that no
//! late answer is taken for another's, and no other is that was made before a database gave no answer.

pub(super) mod seen;
pub(super) mod socket;
pub(super) mod url;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    line: Option<Kept<L>>,
    common: Arc<Common<L::Way>>,
}

/// A connection, and how often the database had given no answer when it was made.
struct Kept<L> {
    line: L,
    silences: u64,
}

/// What all connections of a process to a database have in common.
struct Common<W> {
    way: W,
    away: Mutex<Option<Away>>,
    /// How often the database gave no answer in time. Whatever was connected before is not trusted to give
    /// one.
    silences: AtomicU64,
    /// Whether one was made since this was asked last.
    is_new: AtomicBool,
}

impl<W> Common<W> {
    /// Notes that a connection gave no answer which was made after `known` had given none; whether it is the
    /// first of those. Before the database is told to be away: who is not told so finds no older connection.
    fn fell_silent(&self, known: u64) -> bool {
        self.silences.compare_exchange(known, known + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// A database that could not be reached: until when nobody tries, and why.
struct Away {
    until: Deadline,
    why: Trouble,
}

impl<L: Line> Reach<L> {
    /// With a connection that was just made.
    pub(super) fn new(way: L::Way, line: L) -> Reach<L> {
        let (silences, is_new) = (AtomicU64::new(0), AtomicBool::new(false));
        let common = Common { way, away: Mutex::new(None), silences, is_new };
        Reach { line: Some(Kept { line, silences: 0 }), common: Arc::new(common) }
    }

    /// Another one to the same database, which connects when it is needed.
    pub(super) fn another(&self) -> Reach<L> {
        Reach { line: None, common: Arc::clone(&self.common) }
    }

    /// Runs `work` with a connection. What it does is not done again if it fails: nobody knows whether it
    /// was.
    pub(super) fn call<T>(&mut self, work: impl FnOnce(&mut L) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let by = Deadline::after(DATABASE_TIME);
        let mut known = self.common.silences.load(Ordering::SeqCst);
        let done = self.line(by).and_then(|mut kept| {
            known = kept.silences;
            kept.line.socket().set_deadline(by);
            let done = work(&mut kept.line)?;
            self.line = Some(kept);
            Ok(done)
        });
        if let Err(why) = &done
            && by.is_over()
            // One that was connected before another fell silent says nothing new of those made since.
            && self.common.fell_silent(known)
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
    fn line(&mut self, by: Deadline) -> Result<Kept<L>, Trouble> {
        let silences = self.common.silences.load(Ordering::SeqCst);
        if let Some(mut kept) = self.line.take()
            && kept.silences == silences
            && kept.line.socket().is_quiet()
        {
            return Ok(kept);
        }
        self.may_try()?;
        let line = L::open(&self.common.way, by.within(DATABASE_CONNECT_TIME));
        // Before anything is asked on it.
        self.common.is_new.store(true, Ordering::SeqCst);
        match &line {
            Ok(_) => *self.away() = None,
            Err(why) => self.give_up(why),
        }
        line.map(|line| Kept { line, silences })
    }

    /// Whether to connect. Of those who come when it is time to try again, the first tries, and the others
    /// are told what was so before until it has.
    fn may_try(&self) -> Result<(), Trouble> {
        match &mut *self.away() {
            Some(Away { until, why }) if !until.is_over() => Err(why.clone()),
            Some(Away { until, .. }) => {
                *until = Deadline::after(DATABASE_CONNECT_TIME);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn give_up(&self, why: &Trouble) {
        *self.away() = Some(Away { until: Deadline::after(DATABASE_RETRY_TIME), why: why.clone() });
    }

    fn away(&self) -> MutexGuard<'_, Option<Away>> {
        self.common.away.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicUsize;

    use super::socket::Place;
    use super::*;

    /// A connection to somebody who says nothing.
    struct Silent(Socket);

    struct Way {
        path: PathBuf,
        made: AtomicUsize,
    }

    impl Line for Silent {
        type Way = Way;

        fn open(way: &Way, by: Deadline) -> Result<Silent, Trouble> {
            way.made.fetch_add(1, Ordering::SeqCst);
            let socket = Socket::open(&Place::Unix(way.path.clone()), by);
            socket.map(Silent).map_err(|error| Trouble::Failed(error.to_string()))
        }

        fn socket(&mut self) -> &mut Socket {
            &mut self.0
        }
    }

    fn wait(line: &mut Silent) -> Result<(), Trouble> {
        line.0.receive(&mut [0]).map(drop).map_err(|error| Trouble::Failed(error.to_string()))
    }

    #[test]
    fn a_database_that_gave_no_answer_is_not_waited_for_again_on_what_was_connected_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let way = Way { path, made: AtomicUsize::new(0) };
        let line = Silent::open(&way, Deadline::after(DATABASE_TIME)).unwrap();
        let mut one = Reach::<Silent>::new(way, line);
        let mut other = one.another();
        other.call(|_| Ok(())).unwrap();
        one.call(wait).unwrap_err();
        let common = Arc::clone(&one.common);
        let made = || common.way.made.load(Ordering::SeqCst);
        let before = made();
        // Told that it is away, or, if a while has passed, asked on a new one.
        let is_asked = other.call(|_| Ok(())).is_ok();
        assert_eq!(made() - before, usize::from(is_asked));
    }

    #[test]
    fn who_waited_on_a_connection_from_before_a_silence_says_nothing_of_those_made_since() {
        let way = Way { path: PathBuf::from("/nowhere"), made: AtomicUsize::new(0) };
        let common =
            Common { way, away: Mutex::default(), silences: AtomicU64::new(0), is_new: false.into() };
        let told = [0, 0, 1, 0, 1].map(|known| common.fell_silent(known));
        assert_eq!(told, [true, false, true, false, false]);
    }

    #[test]
    fn of_those_who_come_when_it_is_time_to_try_again_one_tries() {
        let way = Way { path: PathBuf::from("/nowhere"), made: AtomicUsize::new(0) };
        let (silences, is_new) = (AtomicU64::new(0), AtomicBool::new(false));
        let why = Trouble::Failed("it was away".to_owned());
        let away = Away { until: Deadline::after(std::time::Duration::ZERO), why: why.clone() };
        let common = Arc::new(Common { way, away: Mutex::new(Some(away)), silences, is_new });
        let [first, second] = [(); 2].map(|()| Reach::<Silent> { line: None, common: Arc::clone(&common) });
        let begun = std::time::Instant::now();
        assert_eq!(first.may_try(), Ok(()));
        // Unless this thread stood still for longer than a try may take.
        assert!(second.may_try() == Err(why) || begun.elapsed() >= DATABASE_CONNECT_TIME);
    }
}
