//! The account service: answers the tier's requests from a directory, under an operator's settings.
//!
//! It does not cache identities ([`crate::auth`] does). Invariants: the directory is used only in jobs
//! that the engine runs where they may block, never over an await. A change is noted in the job that
//! makes it, so that it is noted even if the request is dropped.

mod accounts;
mod admin;
mod links;
mod locks;
mod operator;
mod rights;
mod verify;

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_io::{Io, NotDone, Work};

use crate::attempts::{Counts, Standing};
use crate::changes::{Changes, Topic};
use crate::directory::{Connections, Directory, DirectoryError, DirectoryMeter};
use crate::error::Error;
use crate::hash_queue::HashQueue;
use crate::limits::{BUSY_RETRY_TIME, CLOCK_SKEW_MAX, SWEEP_TIME};
use crate::request::{AuthRequest, AuthResponse};
use crate::settings::{InForce, Settings};
use plimsoll_rpc::time::{self, Millis, millis};

/// The subject of an error, for the log.
const DIRECTORY: &str = "the directory";

/// The response to a request, boxed. An `async fn` is compiled again in each crate that awaits it, which
/// costs 100 KB of the binary each time for these; the code of a boxed future is compiled once.
pub(crate) type Pending<'a> = Pin<Box<dyn Future<Output = Result<AuthResponse, Error>> + 'a>>;

/// The account service.
pub(crate) struct AccountService {
    state: Arc<ServiceState>,
    settings: InForce,
    counts: Counts,
    hash_queue: Arc<HashQueue>,
}

/// The state that jobs on other threads use.
struct ServiceState {
    directories: Connections,
    changes: Changes,
    /// Serialises polls. Without it, a second poll could read the new change counter before the first has
    /// noted the changes, and trust out-of-date entries.
    polling: Mutex<()>,
    /// When the last poll for other processes' changes began.
    last_poll: AtomicU64,
    /// When expired data was last removed.
    swept: AtomicU64,
    /// The number of passwords hashed.
    hashes: AtomicU64,
}

impl AccountService {
    pub(crate) fn new(directory: Box<dyn Directory>, settings: Settings) -> AccountService {
        let state = ServiceState {
            directories: Connections::of(directory),
            changes: Changes::new(),
            polling: Mutex::new(()),
            last_poll: AtomicU64::new(0),
            swept: AtomicU64::new(0),
            hashes: AtomicU64::new(0),
        };
        AccountService {
            state: Arc::new(state),
            settings: InForce::new(settings),
            counts: Counts::new(),
            hash_queue: HashQueue::new(),
        }
    }

    pub(crate) fn set(&self, settings: Settings) {
        let closes_links = self.settings().links && !settings.links;
        self.settings.set(settings);
        if closes_links {
            // Visitors of links are cached here, at fronts and by their transfers.
            self.state.changes.note(Topic::Everything);
        }
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.get()
    }

    pub(crate) fn changes(&self) -> &Changes {
        &self.state.changes
    }

    /// Returns when the last poll for other processes' changes began.
    pub(crate) fn last_poll(&self) -> Millis {
        self.state.last_poll.load(Ordering::SeqCst)
    }

    pub(crate) fn hashes(&self) -> u64 {
        self.state.hashes.load(Ordering::Relaxed)
    }

    /// Counts the requests to the directory in `meter`.
    pub(crate) fn count_in(&self, meter: &Arc<DirectoryMeter>) {
        self.state.directories.count_in(meter);
    }

    /// Answers a request.
    pub(crate) fn answer<'a>(&'a self, io: &'a Io, question: AuthRequest) -> Pending<'a> {
        Box::pin(self.execute(io, question))
    }

    async fn execute(&self, io: &Io, question: AuthRequest) -> Result<AuthResponse, Error> {
        match question {
            AuthRequest::SignUp { name, password, from } => self.sign_up(io, &name, password, from).await,
            AuthRequest::LogIn { name, password, from, is_known } => {
                self.log_in(io, &name, password, (from, is_known)).await
            }
            AuthRequest::Session(session) => self.session(io, session).await,
            AuthRequest::Password { name, password, from, is_known } => {
                let row = self.verify(io, &name, password, (from, Standing::of(is_known))).await?;
                Ok(AuthResponse::Password((row.account, row.version)))
            }
            AuthRequest::Renew { account, version } => self.renew(io, account, version).await,
            AuthRequest::LogOut(session) => self.log_out(io, session).await,
            AuthRequest::ChangePassword { account, but, old, new, from } => {
                self.change_password(io, (account, but), (old, new), from).await
            }
            AuthRequest::Share { owner, new } => self.share(io, owner, new).await,
            AuthRequest::Unshare { owner, id } => self.unshare(io, owner, id).await,
            AuthRequest::SharesBy(account) => self.shares_by(io, account).await,
            AuthRequest::SharedWith(account) => self.shared_with(io, account).await,
            AuthRequest::Granted { account, owner, path } => self.granted(io, account, &owner, &path).await,
            AuthRequest::EndShares { owner, path } => self.end_shares(io, owner, &path).await,
            AuthRequest::AddLink { owner, new, from } => self.add_link(io, owner, new, from).await,
            AuthRequest::Links(owner) => self.links(io, owner).await,
            AuthRequest::EndLink { owner, id } => self.end_link(io, owner, id).await,
            AuthRequest::Link { id, grant, .. } => self.link(io, id, grant).await,
            AuthRequest::UnlockLink { id, password, from } => self.unlock_link(io, id, password, from).await,
            AuthRequest::UseLink { id, file, bytes, grant } => {
                self.use_link(io, id, (file, bytes), grant).await
            }
            AuthRequest::Administer { by, request } => self.administer(io, by, request).await,
            AuthRequest::Lock(new) => self.lock(io, new).await,
            AuthRequest::RefreshLock { owner, holder, path, id, time } => {
                self.refresh_lock(io, (owner, holder), (path, id), time).await
            }
            AuthRequest::Unlock { owner, by, path, id } => self.unlock(io, (owner, by), (path, id)).await,
            AuthRequest::EndLocks { owner, ids } => self.end_locks(io, owner, ids).await,
            AuthRequest::Locks(owner) => self.locks(io, owner).await,
            AuthRequest::Check {} => self.check(io).await,
            AuthRequest::Operator(order) => self.operate(io, order).await,
        }
    }

    /// Polls for changes that other processes made to the directory, and waits for the result.
    pub(crate) async fn poll(&self, io: &Io) -> Result<(), Error> {
        let (now, state) = (time::now(io), Arc::clone(&self.state));
        settle(io.offload(Work::Directory, move |_| state.poll(now)).await, DIRECTORY)
    }

    /// Checks that the directory answers and can be written.
    async fn check(&self, io: &Io) -> Result<AuthResponse, Error> {
        self.poll(io).await?;
        let now = time::now(io);
        self.directory(io, move |directory, _| directory.check_writable(now)).await.map(AuthResponse::Done)
    }

    /// Polls in the background. If the queue is full, the next request tries again.
    pub(crate) fn poll_in_background(&self, io: &Io) {
        let (now, state) = (time::now(io), Arc::clone(&self.state));
        let handed = io.hand_off(Work::Directory, move |_| {
            let _ = settle(Ok(state.poll(now)), DIRECTORY);
        });
        if handed.is_err() {
            tracing::debug!("the directory has no free thread to poll for changes by other servers");
        }
    }

    /// Runs `work` on the directory, where it may block. It runs to completion even if the request is
    /// dropped.
    async fn directory<T: Send + 'static>(
        &self,
        io: &Io,
        work: impl FnOnce(&mut dyn Directory, &Changes) -> Result<T, DirectoryError> + Send + 'static,
    ) -> Result<T, Error> {
        let (state, connect_each) = (Arc::clone(&self.state), self.settings().connect_each);
        let done = io.offload(Work::Directory, move |_| {
            state.directories.work(|directory| {
                if connect_each {
                    directory.disconnect();
                }
                work(directory, &state.changes)
            })
        });
        settle(done.await, DIRECTORY)
    }
}

impl ServiceState {
    /// Polls for other processes' changes, and removes expired data once in [`SWEEP_TIME`].
    fn poll(&self, now: Millis) -> Result<(), DirectoryError> {
        let _polling = self.polling.lock().unwrap_or_else(PoisonError::into_inner);
        self.directories.work(|directory| self.poll_with(directory, now))
    }

    fn poll_with(&self, directory: &mut dyn Directory, now: Millis) -> Result<(), DirectoryError> {
        if directory.has_foreign_changes()? {
            self.changes.note(Topic::Everything);
        }
        // A poll that began later may have completed first. A time far ahead means that the clock was set
        // back.
        if !(now..=now + millis(CLOCK_SKEW_MAX)).contains(&self.last_poll.load(Ordering::SeqCst)) {
            self.last_poll.store(now, Ordering::SeqCst);
        }
        if now.abs_diff(self.swept.load(Ordering::SeqCst)) >= millis(SWEEP_TIME) {
            self.swept.store(now, Ordering::SeqCst);
            // A failure does not concern the request. The clean-up is repeated after its interval.
            if let Err(error) = directory.sweep(now) {
                tracing::warn!("expired sessions and shares were not removed: {error}");
            }
        }
        Ok(())
    }
}

/// Converts the result of a job. Logs the details of an error, which the client does not get.
fn settle<T>(done: Result<Result<T, DirectoryError>, NotDone>, of: &str) -> Result<T, Error> {
    match done {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            tracing::error!("{of}: {error}");
            Err(match error {
                DirectoryError::Full(_) => Error::Full,
                DirectoryError::RolledBack(_)
                | DirectoryError::Unavailable(..)
                | DirectoryError::Failed(_) => Error::Unavailable,
            })
        }
        Err(NotDone::Busy) => Err(Error::Busy { retry_after: BUSY_RETRY_TIME }),
        Err(NotDone::Lost) => {
            tracing::error!("{of}: the work on it was lost");
            Err(Error::Unavailable)
        }
    }
}
