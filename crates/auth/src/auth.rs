//! The handle on the auth tier that protocols and operations hold: it asks, and it remembers.
//!
//! It decides nothing itself: the keeper answers. What must hold: every method may be dropped at any await
//! and nothing is half done; what has changed is never believed for one request more in this process, and
//! for `TRUST_TIME` at most after another process changed it.

mod beside;
mod operator;
mod validity;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_client::http::Resolve;
use plimsoll_io::{Io, LocalFuture, Peer};

use crate::account::Account;
use crate::ask::{Answer, Question};
use crate::attempts::{Counts, Source};
use crate::changes::{Changes, Stamp};
use crate::courier;
use crate::directory::Directory;
use crate::error::Error;
use crate::flights::Flights;
use crate::journal::Journal;
use crate::keeper::Keeper;
use crate::limits::{CLOCK_SKEW_MAX, LOOK_TIME, TRUST_TIME};
use crate::names::account_name;
use crate::remembered::{Fingerprint, Recall, Remembered, Standing, Verified};
use crate::remote::{Place, Remote};
use crate::secret::Secret;
use crate::sessions::{Credential, Identity, LogIn, SessionId};
use crate::settings::{Attempts, Settings, SignUp};
use crate::shares::{Grant, NewShare, Share};
use crate::table::Key;
use crate::time::{self, Millis, millis};

pub use validity::GrantBasis;

/// One per process; clones are the same one.
#[derive(Clone)]
pub struct Auth {
    shared: Arc<Shared>,
}

struct Shared {
    tier: Tier,
    remembered: Remembered,
    /// Wrong passwords by address. Here because what is remembered is asked before the keeper is: nobody may
    /// guess at that for as long as he likes.
    misses: Counts,
    /// Passwords that are being checked.
    flights: Flights,
    /// When a look for changes made elsewhere was last asked for ahead of its time.
    set_out: AtomicU64,
}

/// Where questions are answered.
enum Tier {
    Here(Keeper),
    Apart(Arc<Remote>),
}

/// Something that was shown, and what was known of it before the keeper was asked.
struct Shown {
    key: Key,
    recall: Recall,
    asked: Moment,
}

/// Before the keeper is asked.
#[derive(Clone, Copy)]
struct Moment {
    stamp: Stamp,
    now: Millis,
}

/// Whether to look for changes made elsewhere before what is remembered is believed.
enum Look {
    /// Somebody did a short while ago.
    No,
    /// It is time, and until it is done, what is remembered holds.
    Ahead,
    /// Nothing is believed before.
    Now,
}

impl Auth {
    /// Answers in this process, from `directory`.
    pub fn here(directory: Box<dyn Directory>, settings: Settings) -> Auth {
        Auth::of(Tier::Here(Keeper::new(directory, settings)))
    }

    /// Has an auth server elsewhere answer. Of the settings, those that a front heeds: how long what was
    /// verified is remembered, whether anybody may sign up here, and the limits on guessing. Somebody has to
    /// poll [`Auth::courier`].
    pub fn apart(place: Place, settings: Settings) -> Auth {
        Auth::of(Tier::Apart(Arc::new(Remote::new(place, settings, false))))
    }

    /// Has the process answer that this one belongs to ([`Auth::answer_beside`]): it is asked each time, and
    /// remembers for all. The rest as with [`Auth::apart`].
    pub fn beside(place: Place, settings: Settings) -> Auth {
        Auth::of(Tier::Apart(Arc::new(Remote::new(place, settings, true))))
    }

    fn of(tier: Tier) -> Auth {
        let (remembered, misses, set_out) = (Remembered::new(), Counts::new(), AtomicU64::new(0));
        Auth { shared: Arc::new(Shared { tier, remembered, misses, flights: Flights::default(), set_out }) }
    }

    /// What carries questions to an auth server elsewhere, and what has changed back; it never ends. A
    /// process has one, on whichever thread. None where questions are answered in this process.
    pub fn courier(&self, io: &Io, resolve: Option<Resolve>) -> Option<LocalFuture> {
        match &self.shared.tier {
            Tier::Here(_) => None,
            Tier::Apart(remote) => Some(Box::pin(courier::carry(Arc::clone(remote), io.clone(), resolve))),
        }
    }

    /// Replaces the settings. What is remembered, and sessions that have begun, stay.
    pub fn set(&self, settings: Settings) {
        match &self.shared.tier {
            Tier::Here(keeper) => keeper.set(settings),
            Tier::Apart(remote) => remote.set(settings),
        }
    }

    /// Checks that questions are answered now, and that the directory can be written: here, or at the
    /// authentication server.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`], [`Error::Full`].
    pub async fn check(&self, io: &Io) -> Result<(), Error> {
        match &self.shared.tier {
            Tier::Apart(remote) if !remote.is_beside() && !remote.is_trusted(io.now()) => {
                return Err(Error::Unavailable);
            }
            _ => {}
        }
        match self.answer(io, Question::Check {}).await {
            // A program that answers in the place of an authentication server need not know the question.
            Ok(_) | Err(Error::NotAllowed) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// How many passwords were hashed in this process since the start.
    pub fn hashes(&self) -> u64 {
        match &self.shared.tier {
            Tier::Here(keeper) => keeper.hashes(),
            Tier::Apart(_) => 0,
        }
    }

    /// Makes an account for whoever asks.
    ///
    /// # Errors
    /// [`Error::SignUpClosed`], [`Error::BadName`], [`Error::BadPassword`], [`Error::NameTaken`],
    /// [`Error::TooManyAttempts`]; and from this and every other method, [`Error::Busy`] and
    /// [`Error::Unavailable`].
    pub async fn sign_up(
        &self,
        io: &Io,
        name: &str,
        password: &Secret,
        from: &Peer,
    ) -> Result<Account, Error> {
        // The server that answers may be open to who is beside it; this front decides for who comes to it.
        if self.settings().sign_up == SignUp::Closed {
            return Err(Error::SignUpClosed);
        }
        let (name, password, from) = (name.to_owned(), password.clone(), Source::from(from));
        self.ask(io, Question::SignUp { name, password, from }).await
    }

    /// Begins a session.
    ///
    /// # Errors
    /// [`Error::WrongCredentials`], [`Error::TooManyAttempts`].
    pub async fn log_in(&self, io: &Io, name: &str, password: &Secret, from: &Peer) -> Result<LogIn, Error> {
        let name = account_name(name.as_bytes()).map_err(|_| Error::WrongCredentials)?;
        let (begun, _) = self.begin(io, name, password.clone(), Source::from(from)).await?;
        Ok(begun)
    }

    /// As [`Auth::log_in`], with how often the password was set.
    async fn begin(
        &self,
        io: &Io,
        name: String,
        password: Secret,
        from: Source,
    ) -> Result<(LogIn, i64), Error> {
        let shown = self.shown(io, &name, &password, from).await?;
        let is_known = !matches!(shown.recall, Recall::Nothing);
        let begun = self.ask(io, Question::LogIn { name, password, from, is_known }).await;
        let (begun, version): (LogIn, i64) = self.noting_misses(io, from, begun)?;
        self.remember(&shown, shown.asked.password(begun.account.clone(), version));
        Ok((begun, version))
    }

    /// Who shows this token: a bearer's or a cookie's.
    ///
    /// # Errors
    /// [`Error::NoSession`].
    pub async fn by_token(&self, io: &Io, token: &[u8]) -> Result<Identity, Error> {
        self.by_session(io, SessionId::of_token(token).ok_or(Error::NoSession)?).await
    }

    async fn by_session(&self, io: &Io, session: SessionId) -> Result<Identity, Error> {
        let shown = self.recall(io, Remembered::session_key(session)).await?;
        if let Recall::Holds(identity) = shown.recall {
            return Ok(identity);
        }
        let (account, expires) = self.ask(io, Question::Session(session)).await?;
        let identity = shown.asked.session(account, session, time::since_1970(expires));
        Ok(self.remember(&shown, identity))
    }

    /// Who showed a token or a password before, as they are now, if it still opens the account. To be asked
    /// at each request of a connection that shows them once; what it answers is to be asked of next.
    ///
    /// # Errors
    /// [`Error::NoSession`]: the session or the account has ended, the account is disabled, or it has
    /// another password.
    pub async fn renew(&self, io: &Io, who: &Identity) -> Result<Identity, Error> {
        if self.holds(io, who) {
            return Ok(who.clone());
        }
        // Apart, because it is rare, and room for it would be moved about with each request.
        Box::pin(self.renew_by_asking(io, who)).await
    }

    /// Whether who showed a token or a password before is known to be as they were, so that
    /// [`Auth::renew`] has nobody to ask.
    pub fn holds(&self, io: &Io, who: &Identity) -> bool {
        let (is_seen, is_trusted) = (self.is_seen(io), self.is_trusted(io));
        let (changes, life) = (self.changes(), self.settings().remembered_time);
        is_seen && is_trusted && who.standing(changes, time::now(io), life) == Standing::Holds
    }

    async fn renew_by_asking(&self, io: &Io, who: &Identity) -> Result<Identity, Error> {
        let asked = self.moment(io).await?;
        // It may be that only what another process changed was to be looked for.
        if self.holds(io, who) {
            return Ok(who.clone());
        }
        match who.credential {
            Credential::Session(session) => self.by_session(io, session).await,
            Credential::Password(version) => {
                let question = Question::Renew { account: who.account.id, version };
                Ok(asked.password(self.ask(io, question).await?, version))
            }
        }
    }

    /// What a connection that shows the same `bytes` with each request has them known by: then
    /// [`Auth::renew`] says whether who showed them before still is who they were.
    pub fn fingerprint(&self, io: &Io, bytes: &[u8]) -> Fingerprint {
        self.shared.remembered.fingerprint(io, bytes)
    }

    /// Who shows this name and password, without a session: HTTP's Basic, FTP.
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
        let mut shown = self.shown(io, &name, &password, from).await?;
        let mut flight = None;
        if !matches!(shown.recall, Recall::Holds(_)) {
            flight = self.shared.flights.begin_or_wait(shown.key).await;
            if flight.is_none() {
                // Another request has just had this password checked: if it was right, it is remembered.
                shown = self.shown(io, &name, &password, from).await?;
            }
        }
        let is_known = match &shown.recall {
            Recall::Holds(identity) => return Ok(identity.clone()),
            // Elsewhere, it is not hashed again, so that nobody who was right waits behind guesses: if the
            // account still has the password of this version, it is this one.
            Recall::Held(identity) if self.is_apart() => match self.renew(io, identity).await {
                Ok(renewed) => return Ok(self.remember(&shown, renewed)),
                // It has another, which may be the same again.
                Err(Error::NoSession) => false,
                Err(error) => return Err(error),
            },
            Recall::Held(_) => true,
            Recall::Nothing => false,
        };
        let found = self.ask(io, Question::Password { name, password, from, is_known }).await;
        let (account, version): (Account, i64) = self.noting_misses(io, from, found)?;
        let identity = self.remember(&shown, shown.asked.password(account, version));
        // Not before it is remembered.
        drop(flight);
        Ok(identity)
    }

    /// Ends the session that the identity was shown by.
    ///
    /// # Errors
    /// [`Error::NoSession`] if a password showed it, or if the session has ended already.
    pub async fn log_out(&self, io: &Io, who: &Identity) -> Result<(), Error> {
        self.ask(io, Question::LogOut(who.session().ok_or(Error::NoSession)?)).await
    }

    /// Sets the password, and ends all other sessions and whatever the old one showed, also this identity if
    /// it did.
    ///
    /// # Errors
    /// [`Error::WrongCredentials`] for the old one, [`Error::BadPassword`] for the new one,
    /// [`Error::TooManyAttempts`].
    pub async fn change_password(
        &self,
        io: &Io,
        who: &Identity,
        old: &Secret,
        new: &Secret,
        from: &Peer,
    ) -> Result<(), Error> {
        let (old, new, from) = (old.clone(), new.clone(), Source::from(from));
        let (account, but) = (who.account.id, who.session());
        self.ask(io, Question::ChangePassword { account, but, old, new, from }).await
    }

    /// Gives a share. One for the same path and account takes its permission and end, and keeps its id.
    ///
    /// # Errors
    /// [`Error::NotAllowed`], [`Error::NotFound`] if there is no such account, [`Error::BadShare`].
    pub async fn share(&self, io: &Io, owner: &Identity, new: NewShare) -> Result<Share, Error> {
        self.ask(io, Question::Share { owner: owner.account.id, new }).await
    }

    /// Ends a share; it is gone at the next request.
    ///
    /// # Errors
    /// [`Error::NotFound`] if this account gives none of this id.
    pub async fn unshare(&self, io: &Io, owner: &Identity, id: &str) -> Result<(), Error> {
        self.ask(io, Question::Unshare { owner: owner.account.id, id: id.to_owned() }).await
    }

    /// What this account shares with others.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn shares_by(&self, io: &Io, owner: &Identity) -> Result<Vec<Share>, Error> {
        self.ask(io, Question::SharesBy(owner.account.id)).await
    }

    /// What others share with this account.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn shared_with(&self, io: &Io, who: &Identity) -> Result<Vec<Share>, Error> {
        self.ask(io, Question::SharedWith(who.account.id)).await
    }

    /// What of the home of `owner` this account may reach: the shares that cover `path`, or else the names
    /// that lead to those below it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there are none, also if there is no such owner.
    pub async fn granted(&self, io: &Io, who: &Identity, owner: &str, path: &[u8]) -> Result<Grant, Error> {
        Ok(self.granted_with_basis(io, who, owner, path).await?.0)
    }

    /// Ends the shares of `path` and of all below it, because what they name is going away.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn end_shares(&self, io: &Io, owner: i64, path: &[u8]) -> Result<(), Error> {
        self.ask(io, Question::EndShares { owner, path: path.to_vec() }).await
    }
}

impl Auth {
    async fn ask<T: TryFrom<Answer>>(&self, io: &Io, question: Question) -> Result<T, Error> {
        // Apart, because most of what is shown is remembered: then there is nothing to be asked.
        let answer = Box::pin(self.answer(io, question)).await?;
        T::try_from(answer).map_err(|_| {
            tracing::error!("the auth tier answered something else than it was asked");
            Error::Unavailable
        })
    }

    /// The answer to a question, from wherever it is answered. The answer to a wrong password is delayed.
    pub(crate) async fn answer(&self, io: &Io, question: Question) -> Result<Answer, Error> {
        match self.answer_at_once(io, question).await {
            Err(Error::WrongCredentialsAfter { wait }) => {
                io.sleep(wait).await;
                Err(Error::WrongCredentials)
            }
            answer => answer,
        }
    }

    /// The same without the delay, which is the caller's to keep.
    pub(crate) async fn answer_at_once(&self, io: &Io, question: Question) -> Result<Answer, Error> {
        match &self.shared.tier {
            Tier::Here(keeper) => keeper.answer(io, question).await,
            Tier::Apart(remote) => remote.answer(io, question).await,
        }
    }

    /// The changes that were noted in this process, in order.
    pub(crate) fn journal(&self) -> &Journal {
        self.changes().journal()
    }

    fn changes(&self) -> &Changes {
        match &self.shared.tier {
            Tier::Here(keeper) => keeper.changes(),
            Tier::Apart(remote) => remote.changes(),
        }
    }

    fn settings(&self) -> Arc<Settings> {
        match &self.shared.tier {
            Tier::Here(keeper) => keeper.settings(),
            Tier::Apart(remote) => remote.settings(),
        }
    }

    fn is_apart(&self) -> bool {
        matches!(self.shared.tier, Tier::Apart(_))
    }

    /// Whether what is remembered can be believed: not if an auth server elsewhere would tell what has
    /// changed and was not heard of for too long. To be asked before what is remembered is looked at,
    /// because it is what was heard first that makes it so.
    fn is_trusted(&self, io: &Io) -> bool {
        match &self.shared.tier {
            Tier::Here(_) => true,
            Tier::Apart(remote) => remote.is_trusted(io.now()),
        }
    }

    /// What is remembered of a name with a password; nothing, for an address that has guessed too often.
    async fn shown(&self, io: &Io, name: &str, password: &Secret, from: Source) -> Result<Shown, Error> {
        let mut shown =
            self.recall(io, self.shared.remembered.password_key(io, name, password, from)).await?;
        if self.guarded(from).is_some_and(|limits| self.shared.misses.is_spent(io, limits, from)) {
            shown.recall = Recall::Nothing;
        }
        Ok(shown)
    }

    fn noting_misses<T>(&self, io: &Io, from: Source, answer: Result<T, Error>) -> Result<T, Error> {
        if let (Some(limits), Err(Error::WrongCredentials | Error::TooManyAttempts { .. })) =
            (self.guarded(from), &answer)
        {
            self.shared.misses.note(io, limits, from);
        }
        answer
    }

    /// The limits on guessing that hold for this address.
    fn guarded(&self, from: Source) -> Option<Attempts> {
        self.settings().attempts.filter(|limits| !(limits.exempt_local && from.is_local()))
    }

    /// Now, with changes that were made elsewhere looked for.
    async fn moment(&self, io: &Io) -> Result<Moment, Error> {
        self.look_around(io).await?;
        Ok(Moment { stamp: self.changes().stamp(), now: time::now(io) })
    }

    /// Looks for changes that another process made to the directory, if it is time.
    pub(crate) async fn look_around(&self, io: &Io) -> Result<(), Error> {
        match &self.shared.tier {
            Tier::Here(keeper) if !self.is_seen(io) => Box::pin(keeper.look(io)).await,
            _ => Ok(()),
        }
    }

    /// Whether what another process changed is seen, as far as it must be by now; has it looked for early.
    fn is_seen(&self, io: &Io) -> bool {
        // An auth server elsewhere looks by itself.
        let Tier::Here(keeper) = &self.shared.tier else { return true };
        match self.look(keeper, time::now(io)) {
            Look::No => {}
            Look::Ahead => keeper.look_ahead(io),
            Look::Now => return false,
        }
        true
    }

    /// What is remembered under `key`, and nobody has changed since.
    async fn recall(&self, io: &Io, key: Key) -> Result<Shown, Error> {
        let (asked, is_trusted) = (self.moment(io).await?, self.is_trusted(io));
        let life = self.settings().remembered_time;
        let recall = match self.shared.remembered.recall(&key, self.changes(), asked.now, life) {
            Recall::Holds(identity) if !is_trusted => Recall::Held(identity),
            recall => recall,
        };
        Ok(Shown { key, recall, asked })
    }

    /// Remembers what the keeper said of what was shown. If that changed meanwhile, it is not believed.
    fn remember(&self, shown: &Shown, identity: Identity) -> Identity {
        self.shared.remembered.remember(shown.key, identity.clone());
        identity
    }

    /// Whether to look now. Of those who ask at a time, one has the look made early, so that nobody waits.
    fn look(&self, keeper: &Keeper, now: Millis) -> Look {
        let age = |then: Millis| {
            if then > now + millis(CLOCK_SKEW_MAX) { Millis::MAX } else { now.saturating_sub(then) }
        };
        let looked = age(keeper.looked());
        if looked >= millis(TRUST_TIME) {
            return Look::Now;
        }
        let set_out = self.shared.set_out.load(Ordering::SeqCst);
        if looked < millis(LOOK_TIME) || age(set_out) < millis(LOOK_TIME) {
            return Look::No;
        }
        let sent = self.shared.set_out.compare_exchange(set_out, now, Ordering::SeqCst, Ordering::SeqCst);
        if sent.is_ok() { Look::Ahead } else { Look::No }
    }
}

impl Moment {
    /// Who shows a password, by an answer to what was asked then.
    fn password(self, account: Account, version: i64) -> Identity {
        self.identity(account, Credential::Password(version), Millis::MAX)
    }

    /// Who shows the token of a session that ends at `until`, by an answer to what was asked then.
    fn session(self, account: Account, session: SessionId, until: Millis) -> Identity {
        self.identity(account, Credential::Session(session), until)
    }

    fn identity(self, account: Account, credential: Credential, until: Millis) -> Identity {
        let verified = Verified { stamp: self.stamp, since: self.now, until };
        Identity { account: Arc::new(account), credential, verified }
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
