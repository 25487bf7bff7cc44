//! A keep-alive connection to a database, which is replaced when it breaks.
//!
//! It speaks no database's protocol. Invariants: a call succeeds or fails within [`DATABASE_TIME`],
//! connecting included. Name resolution is an exception for MySQL, on `socket.rs`: the C library has its own
//! timeout. While a database is down, one call in [`DATABASE_RETRY_TIME`] waits to find that out.
//! The others fail at once, so that waits do not add up. A connection that failed is never used again, so
//! that a late response is never taken for another's. The same holds for all connections made before the
//! database failed to respond in time, or said that another one is the master. A server's call begins no
//! later than [`POLL_TRUST_TIME`] after the begin of a successful check of the tables.

pub(super) mod change_counter;
pub(super) mod deadline;
pub(super) mod endpoint;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(super) mod guest;
#[cfg(feature = "mysql")]
pub(super) mod socket;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(super) mod stream;
pub(super) mod tls;
pub(super) mod url;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::open::Opening;
use super::{DirectoryError, DirectoryMeter, Fault};
use crate::limits::{DATABASE_CONNECT_TIME, DATABASE_RETRY_TIME, DATABASE_TIME, POLL_TRUST_TIME};
use deadline::Deadline;

/// A connection that speaks a database's protocol.
pub(super) trait DatabaseConnection: Sized {
    /// The address and credentials for it.
    type Address;

    /// Connects. The tables are not checked.
    fn open(address: &Self::Address, by: Deadline) -> Result<Self, DirectoryError>;

    /// Sets the deadline of the next call.
    fn set_deadline(&mut self, by: Deadline);

    /// Returns whether the server has not closed it, as far as this is known without a request.
    fn is_open(&mut self) -> bool;

    /// Fails if a server may not use it any more: the tables are of another version or closed, or another
    /// server is the master.
    fn check(&mut self, address: &Self::Address) -> Result<(), DirectoryError>;
}

/// A database, and a connection to it if there is one.
pub(super) struct Database<L: DatabaseConnection> {
    line: Option<OpenConnection<L>>,
    common: Arc<Common<L::Address>>,
}

/// A connection, and its generation.
struct OpenConnection<L> {
    line: L,
    generation: u64,
}

/// The state that all connections of a process to a database share.
struct Common<W> {
    address: W,
    outage: Mutex<Option<Outage>>,
    /// The generation of connections. Those of an earlier one are not used again: since then, the database
    /// failed to respond in time, or another server became the master.
    generation: AtomicU64,
    /// Whether a connection was attempted since this was last read.
    is_new: AtomicBool,
    /// Until when the last check of the tables holds. `None` for a program that may use closed tables.
    checked: Option<Mutex<Deadline>>,
    meter: OnceLock<Arc<DirectoryMeter>>,
}

impl<W> Common<W> {
    /// Notes that the tables were found in order, by a check that began when `until` was set.
    fn note_check(&self, until: Deadline) {
        if let Some(checked) = &self.checked {
            *checked.lock().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }

    fn is_check_due(&self) -> bool {
        let until =
            self.checked.as_ref().map(|checked| *checked.lock().unwrap_or_else(PoisonError::into_inner));
        until.is_some_and(Deadline::is_over)
    }

    /// Ends the generation `known`: that of a connection with a timeout, or to a server that is no master.
    /// Returns false if it has ended before. Must precede [`Database::give_up`]: a call that finds no
    /// [`Outage`] then finds no older connection either.
    fn end_generation(&self, known: u64) -> bool {
        self.generation.compare_exchange(known, known + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// An unreachable database: until when no connection is tried, and the error.
struct Outage {
    until: Deadline,
    why: DirectoryError,
}

impl<L: DatabaseConnection> Database<L> {
    /// Wraps a new connection, for a server or for a program that may use closed tables.
    pub(super) fn new(address: L::Address, line: L, opening: Opening) -> Database<L> {
        let (generation, is_new) = (AtomicU64::new(0), AtomicBool::new(false));
        let checked = (opening == Opening::Serve).then(|| Mutex::new(Deadline::after(Duration::ZERO)));
        let common =
            Common { address, outage: Mutex::new(None), generation, is_new, checked, meter: OnceLock::new() };
        Database { line: Some(OpenConnection { line, generation: 0 }), common: Arc::new(common) }
    }

    /// Creates another handle on the same database, which connects at its first use.
    pub(super) fn another(&self) -> Database<L> {
        Database { line: None, common: Arc::clone(&self.common) }
    }

    /// Runs `work` with a connection. It is not retried after an error, because the server may have
    /// executed it. If the last check of the tables is too old, as after a wait for a password's hash, they
    /// are checked first.
    pub(super) fn call<T>(
        &mut self,
        work: impl FnOnce(&mut L) -> Result<T, DirectoryError>,
    ) -> Result<T, DirectoryError> {
        self.run_checked(Deadline::after(DATABASE_TIME), work)
    }

    /// As [`Database::call`], for a single request. A server that is the master no more has not executed it:
    /// then it is repeated once, within the same time, with the new master.
    #[cfg(feature = "redis")]
    pub(super) fn call_master<T>(
        &mut self,
        mut work: impl FnMut(&mut L) -> Result<T, DirectoryError>,
    ) -> Result<T, DirectoryError> {
        let by = Deadline::after(DATABASE_TIME);
        match self.run_checked(by, &mut work) {
            Err(DirectoryError::Unavailable(Fault::Moved, _)) => self.run_checked(by, work),
            done => done,
        }
    }

    /// As [`Database::call`], for work that checks the tables itself.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(super) fn poll<T>(
        &mut self,
        work: impl FnOnce(&mut L) -> Result<T, DirectoryError>,
    ) -> Result<T, DirectoryError> {
        let until = Deadline::after(POLL_TRUST_TIME);
        let polled = self.run(Deadline::after(DATABASE_TIME), work)?;
        self.common.note_check(until);
        Ok(polled)
    }

    fn run_checked<T>(
        &mut self,
        by: Deadline,
        work: impl FnOnce(&mut L) -> Result<T, DirectoryError>,
    ) -> Result<T, DirectoryError> {
        let common = Arc::clone(&self.common);
        self.run(by, |line| {
            if common.is_check_due() {
                let until = Deadline::after(POLL_TRUST_TIME);
                line.check(&common.address)?;
                common.note_check(until);
            }
            work(line)
        })
    }

    fn run<T>(
        &mut self,
        by: Deadline,
        work: impl FnOnce(&mut L) -> Result<T, DirectoryError>,
    ) -> Result<T, DirectoryError> {
        let mut known = self.common.generation.load(Ordering::SeqCst);
        let done = self.line(by).and_then(|mut kept| {
            known = kept.generation;
            kept.line.set_deadline(by);
            let done = work(&mut kept.line)?;
            self.line = Some(kept);
            Ok(done)
        });
        match &done {
            // A timeout on an older connection proves nothing about connections made since.
            Err(why) if by.is_over() && self.common.end_generation(known) => self.give_up(why),
            Err(DirectoryError::Unavailable(Fault::Moved, _)) => {
                self.common.end_generation(known);
            }
            _ => {}
        }
        done
    }

    /// Counts the connections of all handles from now on, and the open one of this handle.
    pub(super) fn count_in(&self, meter: &Arc<DirectoryMeter>) {
        // A process has one meter.
        if self.common.meter.set(Arc::clone(meter)).is_ok() && self.line.is_some() {
            meter.count_connection();
        }
    }

    /// Returns the address and credentials.
    pub(super) fn address(&self) -> &L::Address {
        &self.common.address
    }

    /// Closes the connection; the next call opens another.
    pub(super) fn disconnect(&mut self) {
        self.line = None;
    }

    /// Returns whether any connection was attempted since the last call. The database may have changed
    /// meanwhile, or lost data, including its change counter.
    pub(super) fn was_lost(&self) -> bool {
        self.common.is_new.swap(false, Ordering::SeqCst)
    }

    /// Returns the open connection, or a new one.
    fn line(&mut self, by: Deadline) -> Result<OpenConnection<L>, DirectoryError> {
        let generation = self.common.generation.load(Ordering::SeqCst);
        if let Some(mut kept) = self.line.take()
            && kept.generation == generation
            && kept.line.is_open()
        {
            return Ok(kept);
        }
        self.may_try()?;
        let line = L::open(&self.common.address, by.within(DATABASE_CONNECT_TIME));
        // Before the first request on it.
        self.common.is_new.store(true, Ordering::SeqCst);
        match &line {
            Ok(_) => {
                if let Some(meter) = self.common.meter.get() {
                    meter.count_connection();
                }
                *self.outage() = None;
            }
            Err(why) => self.give_up(why),
        }
        line.map(|line| OpenConnection { line, generation })
    }

    /// Returns an error unless a connection may be tried. When it is time to retry, the first call tries.
    /// The others get the old error until it has finished.
    fn may_try(&self) -> Result<(), DirectoryError> {
        match &mut *self.outage() {
            Some(Outage { until, why }) if !until.is_over() => Err(why.clone()),
            Some(Outage { until, .. }) => {
                *until = Deadline::after(DATABASE_CONNECT_TIME);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn give_up(&self, why: &DirectoryError) {
        *self.outage() = Some(Outage { until: Deadline::after(DATABASE_RETRY_TIME), why: why.clone() });
    }

    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.common.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicUsize;

    use super::endpoint::Endpoint;
    use super::socket::Socket;
    use super::*;

    /// A connection to a server that never responds.
    struct Silent(Socket);

    struct DatabaseAddress {
        path: PathBuf,
        made: AtomicUsize,
    }

    impl DatabaseConnection for Silent {
        type Address = DatabaseAddress;

        fn open(address: &DatabaseAddress, by: Deadline) -> Result<Silent, DirectoryError> {
            address.made.fetch_add(1, Ordering::SeqCst);
            let socket = Socket::open(&Endpoint::Unix(address.path.clone()), by);
            socket.map(Silent).map_err(|error| DirectoryError::Failed(error.to_string()))
        }

        fn set_deadline(&mut self, by: Deadline) {
            self.0.set_deadline(by);
        }

        fn is_open(&mut self) -> bool {
            self.0.is_quiet()
        }

        fn check(&mut self, _: &DatabaseAddress) -> Result<(), DirectoryError> {
            Ok(())
        }
    }

    fn wait(line: &mut Silent) -> Result<(), DirectoryError> {
        line.0.receive(&mut [0]).map(drop).map_err(|error| DirectoryError::Failed(error.to_string()))
    }

    #[test]
    fn a_database_that_gave_no_answer_is_not_waited_for_again_on_what_was_connected_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let address = DatabaseAddress { path, made: AtomicUsize::new(0) };
        let line = Silent::open(&address, Deadline::after(DATABASE_TIME)).unwrap();
        let mut one = Database::<Silent>::new(address, line, Opening::Serve);
        let mut other = one.another();
        other.call(|_| Ok(())).unwrap();
        one.call(wait).unwrap_err();
        let common = Arc::clone(&one.common);
        let made = || common.address.made.load(Ordering::SeqCst);
        let before = made();
        // The retry time passes when the test says so, however slow the machine is.
        let retry_after =
            |time| common.outage.lock().unwrap().as_mut().unwrap().until = Deadline::after(time);
        retry_after(Duration::from_secs(3600));
        other.call(|_| Ok(())).unwrap_err();
        assert_eq!(made() - before, 0, "it fails at once, without another connection");
        retry_after(Duration::ZERO);
        other.call(|_| Ok(())).unwrap();
        assert_eq!(made() - before, 1, "the connection from before the silence is not used again");
    }

    #[test]
    fn a_timeout_on_a_connection_opened_before_an_outage_starts_no_new_outage() {
        let address = DatabaseAddress { path: PathBuf::from("/nowhere"), made: AtomicUsize::new(0) };
        let common = Common {
            address,
            outage: Mutex::default(),
            generation: AtomicU64::new(0),
            is_new: false.into(),
            checked: None,
            meter: OnceLock::new(),
        };
        let is_first = [0, 0, 1, 0, 1].map(|known| common.end_generation(known));
        assert_eq!(is_first, [true, false, true, false, false]);
    }

    #[test]
    fn of_the_callers_after_the_retry_time_one_tries() {
        let address = DatabaseAddress { path: PathBuf::from("/nowhere"), made: AtomicUsize::new(0) };
        let (generation, is_new) = (AtomicU64::new(0), AtomicBool::new(false));
        let why = DirectoryError::Failed("it was away".to_owned());
        let outage = Outage { until: Deadline::after(Duration::ZERO), why: why.clone() };
        let outage = Mutex::new(Some(outage));
        let common =
            Arc::new(Common { address, outage, generation, is_new, checked: None, meter: OnceLock::new() });
        let [first, second] =
            [(); 2].map(|()| Database::<Silent> { line: None, common: Arc::clone(&common) });
        let begun = std::time::Instant::now();
        assert_eq!(first.may_try(), Ok(()));
        // Unless this thread was suspended for longer than an attempt may take.
        assert!(second.may_try() == Err(why) || begun.elapsed() >= DATABASE_CONNECT_TIME);
    }
}
