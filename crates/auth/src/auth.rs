//! The handle on the auth tier that protocols and operations hold: sends requests and caches verified
//! identities.
//!
//! It decides nothing itself: the account service does. Invariants: every method may be dropped at any
//! await and leaves nothing half done. A cached identity that was changed in this process is not used for
//! another request. One that another process changed is used for at most `POLL_TRUST_TIME`.

mod admin;
mod linking;
mod locking;
mod operator;
mod polling;
mod process;
mod validity;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;

use plimsoll_io::{Io, LocalFuture, Peer};
use plimsoll_rpc::time::{self, Millis};
use plimsoll_rpc::{ChangeFeed, Key, Secret, ServerAddress, Source, Table};

use crate::account::Account;
use crate::attempts::Counts;
use crate::changes::{Changes, Stamp, Topic};
use crate::directory::{Directory, DirectoryMeter};
use crate::error::Error;
use crate::flights::Flights;
use crate::names::account_name;
use crate::remembered::{Fingerprint, Freshness, Recall, Remembered, Verified};
use crate::request::{AuthRequest, AuthResponse};
use crate::rpc_client::RemoteService;
use crate::service::AccountService;
use crate::sessions::{Credential, Identity, LogIn, SessionId};
use crate::settings::{Attempts, Settings, SignUp};
use crate::shares::{Grant, NewShare, Share};

pub use linking::LinkVisit;
pub use locking::HomeLocks;
pub use validity::GrantBasis;

/// A handle on the auth tier. A process has one; clones share its state.
#[derive(Clone)]
pub struct Auth {
    shared: Arc<Shared>,
}

struct Shared {
    tier: Tier,
    remembered: Remembered,
    /// The locks of homes, by the number of the account.
    home_locks: Table<Arc<HomeLocks>>,
    /// Whether the authentication server has locks, once it is known.
    has_locks: AtomicBool,
    /// Wrong passwords by address. Counted here because the cache is consulted before the account
    /// service: without this limit, passwords could be guessed against the cache for ever.
    misses: Counts,
    /// Password checks in progress, and the poll of the directory.
    flights: Flights,
    /// When a refresh was last requested early, that is, before it was overdue.
    early_poll: AtomicU64,
}

/// Where requests are answered: in this process, or by a remote auth server.
enum Tier {
    Local(AccountService),
    Remote(Arc<RemoteService>),
}

/// The cache entry for presented credentials, read before the request to the account service.
struct CacheLookup {
    key: Key,
    recall: Recall,
    moment: Moment,
}

/// The change counter and the time, read before a request to the account service.
#[derive(Clone, Copy)]
struct Moment {
    stamp: Stamp,
    now: Millis,
}

impl Auth {
    /// Answers requests in this process, from `directory`.
    pub fn local(directory: Box<dyn Directory>, settings: Settings) -> Auth {
        Auth::of(Tier::Local(AccountService::new(directory, settings)))
    }

    /// Sends requests to the authentication server at `address`. Of the settings, a front uses the cache
    /// lifetime, whether sign-up is open here, and the limits on guessing. The caller must poll the future
    /// of [`Auth::follow_changes`].
    pub fn remote(address: ServerAddress, settings: Settings) -> Auth {
        Auth::of(Tier::Remote(Arc::new(RemoteService::new(address, settings, true))))
    }

    /// Sends requests to the main process of this server ([`crate::AuthServer::for_connection_processes`]),
    /// for a process that serves one connection. The main process answers each request and caches for
    /// all. It reports no changes. Otherwise like [`Auth::remote`].
    pub fn of_main_process(address: ServerAddress, settings: Settings) -> Auth {
        Auth::of(Tier::Remote(Arc::new(RemoteService::new(address, settings, false))))
    }

    fn of(tier: Tier) -> Auth {
        let (remembered, misses, early_poll) = (Remembered::new(), Counts::new(), AtomicU64::new(0));
        Auth {
            shared: Arc::new(Shared {
                tier,
                remembered,
                home_locks: Table::new(),
                has_locks: AtomicBool::new(false),
                misses,
                flights: Flights::default(),
                early_poll,
            }),
        }
    }

    /// Applies the changes that a remote authentication server reports. The future never ends. A process
    /// has one, on any thread. Returns `None` if there is no such server.
    pub fn follow_changes(&self, io: &Io) -> Option<LocalFuture> {
        let Tier::Remote(remote) = &self.shared.tier else { return None };
        let (remote, io) = (Arc::clone(remote), io.clone());
        remote.reports_changes().then(|| Box::pin(async move { remote.follow_changes(&io).await }) as _)
    }

    /// Replaces the settings. Cached identities and open sessions stay.
    pub fn set(&self, settings: Settings) {
        match &self.shared.tier {
            Tier::Local(service) => service.set(settings),
            Tier::Remote(remote) => remote.set(settings),
        }
    }

    /// Checks that requests can be answered now and that the directory can be written, in this process or
    /// at the auth server.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`], [`Error::Full`].
    pub async fn check(&self, io: &Io) -> Result<(), Error> {
        match &self.shared.tier {
            Tier::Remote(remote) if remote.reports_changes() && !remote.is_trusted(io.now()) => {
                return Err(Error::Unavailable);
            }
            _ => {}
        }
        match self.answer(io, AuthRequest::Check {}).await {
            // Another implementation of the auth server need not support this request.
            Ok(_) | Err(Error::NotAllowed) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns how many passwords this process has hashed since it started.
    pub fn hashes(&self) -> u64 {
        match &self.shared.tier {
            Tier::Local(service) => service.hashes(),
            Tier::Remote(_) => 0,
        }
    }

    /// Counts the requests to the directory in `meter`, if it is in this process and no other meter counts
    /// them.
    pub fn count_directory_in(&self, meter: &Arc<DirectoryMeter>) {
        if let Tier::Local(service) = &self.shared.tier {
            service.count_in(meter);
        }
    }

    /// Whether clients of this server may create accounts.
    pub fn is_sign_up_open(&self) -> bool {
        self.settings().sign_up == SignUp::Open
    }

    /// Creates an account for the caller.
    ///
    /// # Errors
    /// [`Error::SignUpClosed`], [`Error::BadName`], [`Error::BadPassword`], [`Error::NameTaken`],
    /// [`Error::TooManyAttempts`]. This and every other method also return [`Error::Busy`] and
    /// [`Error::Unavailable`].
    pub async fn sign_up(
        &self,
        io: &Io,
        name: &str,
        password: &Secret,
        from: &Peer,
    ) -> Result<Account, Error> {
        // The auth server may allow sign-up through other fronts. This front's own setting decides for
        // its clients.
        if self.settings().sign_up == SignUp::Closed {
            return Err(Error::SignUpClosed);
        }
        let (name, password, from) = (name.to_owned(), password.clone(), Source::from(from));
        self.ask(io, AuthRequest::SignUp { name, password, from }).await
    }

    /// Opens a session.
    ///
    /// # Errors
    /// [`Error::WrongCredentials`], [`Error::TooManyAttempts`].
    pub async fn log_in(&self, io: &Io, name: &str, password: &Secret, from: &Peer) -> Result<LogIn, Error> {
        let name = account_name(name.as_bytes()).map_err(|_| Error::WrongCredentials)?;
        let (begun, _) = self.begin(io, name, password.clone(), Source::from(from)).await?;
        Ok(begun)
    }

    /// Like [`Auth::log_in`]. Also returns the version of the password.
    async fn begin(
        &self,
        io: &Io,
        name: String,
        password: Secret,
        from: Source,
    ) -> Result<(LogIn, i64), Error> {
        let lookup = self.lookup(io, &name, &password, from).await?;
        let is_known = !matches!(lookup.recall, Recall::Absent);
        let begun = self.ask(io, AuthRequest::LogIn { name, password, from, is_known }).await;
        let (begun, version): (LogIn, i64) = self.noting_misses(io, from, begun)?;
        self.remember(&lookup, lookup.moment.password(begun.account.clone(), version));
        Ok((begun, version))
    }

    /// Returns the identity of the client that presents this token, from an Authorization field or a
    /// cookie.
    ///
    /// # Errors
    /// [`Error::NoSession`].
    pub async fn by_token(&self, io: &Io, token: &[u8]) -> Result<Identity, Error> {
        self.by_session(io, SessionId::of_token(token).ok_or(Error::NoSession)?).await
    }

    async fn by_session(&self, io: &Io, session: SessionId) -> Result<Identity, Error> {
        let lookup = self.recall(io, Remembered::session_key(session)).await?;
        if let Recall::Fresh(identity) = lookup.recall {
            return Ok(identity);
        }
        let (account, expires) = self.ask(io, AuthRequest::Session(session)).await?;
        let identity = lookup.moment.session(account, session, time::since_1970(expires));
        Ok(self.remember(&lookup, identity))
    }

    /// Returns the account of an identity that was verified earlier, in its present state, if its
    /// credential is still valid. Called at each request of a connection that authenticates once. The
    /// next call takes the result of this one.
    ///
    /// # Errors
    /// [`Error::NoSession`]: the session or the account has ended, the account is disabled, or it has
    /// another password.
    pub async fn renew(&self, io: &Io, caller: &Identity) -> Result<Identity, Error> {
        if self.holds(io, caller) {
            return Ok(caller.clone());
        }
        // Boxed: rarely taken, and inlining it would enlarge a future that is moved with each request.
        Box::pin(self.renew_by_asking(io, caller)).await
    }

    /// Returns whether a verified identity is known to be unchanged, so that [`Auth::renew`] needs no
    /// request.
    pub fn holds(&self, io: &Io, caller: &Identity) -> bool {
        let (poll_ahead, is_trusted) = (self.poll_ahead(io), self.is_trusted(io));
        let (changes, settings) = (self.changes(), self.settings());
        let (life, is_open) = (settings.remembered_time, caller.link.is_none() || settings.links);
        poll_ahead
            && is_trusted
            && is_open
            && caller.freshness(changes, time::now(io), life) == Freshness::Fresh
    }

    async fn renew_by_asking(&self, io: &Io, caller: &Identity) -> Result<Identity, Error> {
        let moment = self.moment(io).await?;
        // The refresh alone may have been overdue.
        if self.holds(io, caller) {
            return Ok(caller.clone());
        }
        match caller.credential {
            Credential::Session(session) => self.by_session(io, session).await,
            Credential::Password(version) => {
                let question = AuthRequest::Renew { account: caller.account.id, version };
                Ok(moment.password(self.ask(io, question).await?, version))
            }
            Credential::Link => self.renew_link(io, caller).await,
        }
    }

    /// Returns a fingerprint of credentials, for a connection that receives the same `bytes` with each
    /// request. If it is equal to the last one, [`Auth::renew`] suffices to check the identity.
    pub fn fingerprint(&self, io: &Io, bytes: &[u8]) -> Fingerprint {
        self.shared.remembered.fingerprint(io, bytes)
    }

    /// Returns the identity for a name and password, without a session: for HTTP Basic and FTP.
    ///
    /// # Errors
    /// [`Error::WrongCredentials`], [`Error::TooManyAttempts`].
    pub async fn by_password(
        &self,
        io: &Io,
        name: &[u8],
        password: &Secret,
        from: &Peer,
    ) -> Result<Identity, Error> {
        let name = account_name(name).map_err(|_| Error::WrongCredentials)?;
        self.by_name(io, name, password.clone(), Source::from(from)).await
    }

    async fn by_name(
        &self,
        io: &Io,
        name: String,
        password: Secret,
        from: Source,
    ) -> Result<Identity, Error> {
        let mut lookup = self.lookup(io, &name, &password, from).await?;
        let mut flight = None;
        if !matches!(lookup.recall, Recall::Fresh(_)) {
            flight = self.shared.flights.begin_or_wait(lookup.key).await;
            if flight.is_none() {
                // Another request has just checked this password: if it was right, it is cached.
                lookup = self.lookup(io, &name, &password, from).await?;
            }
        }
        let is_known = match &lookup.recall {
            Recall::Fresh(identity) => return Ok(identity.clone()),
            // A remote server does not hash it again, so that clients with the right password do not
            // queue behind guesses. If the account still has this version of the password, the password
            // is right.
            Recall::Stale(identity) if self.is_remote() => match self.renew(io, identity).await {
                Ok(renewed) => return Ok(self.remember(&lookup, renewed)),
                // The account has another version, which may be the same password again.
                Err(Error::NoSession) => false,
                Err(error) => return Err(error),
            },
            Recall::Stale(_) => true,
            Recall::Absent => false,
        };
        let found = self.ask(io, AuthRequest::Password { name, password, from, is_known }).await;
        let (account, version): (Account, i64) = self.noting_misses(io, from, found)?;
        let identity = self.remember(&lookup, lookup.moment.password(account, version));
        // Only after the result is cached.
        drop(flight);
        Ok(identity)
    }

    /// Ends the session that the identity was verified by.
    ///
    /// # Errors
    /// [`Error::NoSession`] if a password verified it, or if the session has ended already.
    pub async fn log_out(&self, io: &Io, caller: &Identity) -> Result<(), Error> {
        self.ask(io, AuthRequest::LogOut(caller.session().ok_or(Error::NoSession)?)).await
    }

    /// Sets the password. Ends all other sessions and all identities that the old password verified,
    /// including this one if it was.
    ///
    /// # Errors
    /// [`Error::WrongCredentials`] for the old one, [`Error::BadPassword`] for the new one,
    /// [`Error::TooManyAttempts`].
    pub async fn change_password(
        &self,
        io: &Io,
        caller: &Identity,
        old: &Secret,
        new: &Secret,
        from: &Peer,
    ) -> Result<(), Error> {
        let (old, new, from) = (old.clone(), new.clone(), Source::from(from));
        let (account, but) = (caller.account.id, caller.session());
        self.ask(io, AuthRequest::ChangePassword { account, but, old, new, from }).await
    }

    /// Creates a share. A share of the same path with the same account gets the new permission and
    /// expiry, and keeps its id.
    ///
    /// # Errors
    /// [`Error::NotAllowed`], [`Error::NotFound`] if there is no such account, [`Error::BadShare`].
    pub async fn share(&self, io: &Io, owner: &Identity, new: NewShare) -> Result<Share, Error> {
        self.ask(io, AuthRequest::Share { owner: owner.account.id, new }).await
    }

    /// Ends a share. It is no longer valid at the next request.
    ///
    /// # Errors
    /// [`Error::NotFound`] if this account has no share of this id.
    pub async fn unshare(&self, io: &Io, owner: &Identity, id: &str) -> Result<(), Error> {
        self.ask(io, AuthRequest::Unshare { owner: owner.account.id, id: id.to_owned() }).await
    }

    /// Lists the shares that this account gives.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn shares_by(&self, io: &Io, owner: &Identity) -> Result<Vec<Share>, Error> {
        self.ask(io, AuthRequest::SharesBy(owner.account.id)).await
    }

    /// Lists the shares that this account receives.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn shared_with(&self, io: &Io, caller: &Identity) -> Result<Vec<Share>, Error> {
        self.ask(io, AuthRequest::SharedWith(caller.account.id)).await
    }

    /// Returns the part of `owner`'s home that this account may reach. These are the shares that cover
    /// `path`. If there are none, they are shares below `path`, one for each name in it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there are none, or no such owner.
    pub async fn granted(
        &self,
        io: &Io,
        caller: &Identity,
        owner: &str,
        path: &[u8],
    ) -> Result<Grant, Error> {
        Ok(self.granted_with_basis(io, caller, owner, path).await?.0)
    }

    /// Ends the shares of `path` and of all paths below it, because its files are being removed.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn end_shares(&self, io: &Io, owner: i64, path: &[u8]) -> Result<(), Error> {
        self.ask(io, AuthRequest::EndShares { owner, path: path.to_vec() }).await
    }
}

impl Auth {
    async fn ask<T: TryFrom<AuthResponse>>(&self, io: &Io, question: AuthRequest) -> Result<T, Error> {
        // Boxed: most identities are cached, and then no request is sent.
        let answer = Box::pin(self.answer(io, question)).await?;
        T::try_from(answer).map_err(|_| {
            tracing::error!("the auth tier sent a response of another kind than the request's");
            Error::Unavailable
        })
    }

    /// Sends a request to the account service or the remote server. Delays the response to a wrong
    /// password.
    pub(crate) async fn answer(&self, io: &Io, question: AuthRequest) -> Result<AuthResponse, Error> {
        match self.call_without_delay(io, question).await {
            Err(Error::WrongCredentialsAfter { wait }) => {
                io.sleep(wait).await;
                Err(Error::WrongCredentials)
            }
            answer => answer,
        }
    }

    /// The same without the delay, which is left to the caller.
    pub(crate) async fn call_without_delay(
        &self,
        io: &Io,
        question: AuthRequest,
    ) -> Result<AuthResponse, Error> {
        match &self.shared.tier {
            Tier::Local(service) => {
                // No request is served from a directory that another program has upgraded or closed.
                self.poll_directory(io).await?;
                service.answer(io, question).await
            }
            Tier::Remote(remote) => remote.call(io, &question).await,
        }
    }

    /// Returns the change feed: the changes noted in this process, in order.
    pub(crate) fn change_feed(&self) -> &ChangeFeed<Topic> {
        self.changes().feed()
    }

    fn changes(&self) -> &Changes {
        match &self.shared.tier {
            Tier::Local(service) => service.changes(),
            Tier::Remote(remote) => remote.changes(),
        }
    }

    fn settings(&self) -> Arc<Settings> {
        match &self.shared.tier {
            Tier::Local(service) => service.settings(),
            Tier::Remote(remote) => remote.settings(),
        }
    }

    fn is_remote(&self) -> bool {
        matches!(self.shared.tier, Tier::Remote(_))
    }

    /// Returns whether cached identities can be trusted. Behind a remote auth server, they cannot if its
    /// change feed has not been received for too long. Call this before reading the cache: the received
    /// changes are applied before the time of trust is extended.
    fn is_trusted(&self, io: &Io) -> bool {
        match &self.shared.tier {
            Tier::Local(_) => true,
            Tier::Remote(remote) => remote.is_trusted(io.now()),
        }
    }

    /// Looks up a name with a password in the cache. Finds nothing for an address with too many wrong
    /// guesses.
    async fn lookup(
        &self,
        io: &Io,
        name: &str,
        password: &Secret,
        from: Source,
    ) -> Result<CacheLookup, Error> {
        let mut lookup =
            self.recall(io, self.shared.remembered.password_key(io, name, password, from)).await?;
        if self.guarded(from).is_some_and(|limits| self.shared.misses.is_spent(io, limits, from)) {
            lookup.recall = Recall::Absent;
        }
        Ok(lookup)
    }

    fn noting_misses<T>(&self, io: &Io, from: Source, answer: Result<T, Error>) -> Result<T, Error> {
        if let (Some(limits), Err(Error::WrongCredentials | Error::TooManyAttempts { .. })) =
            (self.guarded(from), &answer)
        {
            self.shared.misses.note(io, limits, from);
        }
        answer
    }

    /// Returns the limits on guessing that apply to this address.
    fn guarded(&self, from: Source) -> Option<Attempts> {
        self.settings().attempts.filter(|limits| !(limits.exempt_local && from.is_local()))
    }

    /// Returns the present change counter and time, after polling for other processes' changes if that is
    /// due.
    async fn moment(&self, io: &Io) -> Result<Moment, Error> {
        self.poll_directory(io).await?;
        Ok(Moment { stamp: self.changes().stamp(), now: time::now(io) })
    }

    /// Looks up `key` in the cache, without entries that have changed since.
    async fn recall(&self, io: &Io, key: Key) -> Result<CacheLookup, Error> {
        let (moment, is_trusted) = (self.moment(io).await?, self.is_trusted(io));
        let life = self.settings().remembered_time;
        let recall = match self.shared.remembered.recall(&key, self.changes(), moment.now, life) {
            Recall::Fresh(identity) if !is_trusted => Recall::Stale(identity),
            recall => recall,
        };
        Ok(CacheLookup { key, recall, moment })
    }

    /// Caches the account service's answer. If the account changed meanwhile, the entry is out of date at
    /// once.
    fn remember(&self, lookup: &CacheLookup, identity: Identity) -> Identity {
        self.shared.remembered.remember(lookup.key, identity.clone());
        identity
    }
}

impl Moment {
    /// The identity for a password, from a response to a request sent at this moment.
    fn password(self, account: Account, version: i64) -> Identity {
        self.identity(account, Credential::Password(version), Millis::MAX)
    }

    /// The identity for a session that ends at `until`, from a response to a request sent at this moment.
    fn session(self, account: Account, session: SessionId, until: Millis) -> Identity {
        self.identity(account, Credential::Session(session), until)
    }

    fn identity(self, account: Account, credential: Credential, until: Millis) -> Identity {
        let verified = Verified { stamp: self.stamp, since: self.now, until };
        Identity { account: Arc::new(account), credential, link: None, verified }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_share_one() {
        fn is_shared<T: Send + Sync + Clone>() {}
        is_shared::<Auth>();
    }
}
