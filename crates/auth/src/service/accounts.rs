//! Requests of accounts about themselves and their sessions.
//!
//! It does not serve operators. Invariants: a log-out or a new password is noted as a change in the job
//! that stores it. A session never begins from a password that was replaced meanwhile.

use plimsoll_io::Io;

use super::AccountService;
use crate::account::{Account, Permissions, draw_id};
use crate::attempts::Standing;
use crate::changes::Topic;
use crate::directory::{NewAccount, NewSession};
use crate::error::Error;
use crate::hash_queue::Lane;
use crate::limits::SESSIONS_PER_ACCOUNT_MAX;
use crate::names::{account_name, check_password};
use crate::networks::NetworkHash;
use crate::request::AuthResponse;
use crate::sessions::{LogIn, SessionId, draw_token};
use crate::settings::SignUp;
use plimsoll_rpc::Secret;
use plimsoll_rpc::Source;
use plimsoll_rpc::time::{self, millis};

impl AccountService {
    pub(super) async fn sign_up(
        &self,
        io: &Io,
        name: &str,
        password: Secret,
        from: Source,
    ) -> Result<AuthResponse, Error> {
        let settings = self.settings();
        if settings.sign_up == SignUp::Closed {
            return Err(Error::SignUpClosed);
        }
        let name = account_name(name.as_bytes())?;
        check_password(&name, &password)?;
        // Before it is counted, so that a client that is refused and retries counts once. Without the
        // name: it has no account yet, or another client's.
        let permit = self.hash_permit(io, None, (from, Lane::Others)).await?;
        if let Some(limits) = settings.attempts {
            self.counts.sign_up(io, limits, from)?;
        }
        let wanted = name.clone();
        if self.directory(io, move |directory, _| directory.account(&wanted)).await?.is_some() {
            return Err(Error::NameTaken);
        }
        let (hash, created) = (self.hash(io, password, permit).await?, time::now(io));
        let (quota, permissions) = (settings.quota, Permissions::default());
        let id = draw_id(io);
        let new = NewAccount { id, name, hash, quota, permissions, enabled: true, created };
        let network = NetworkHash::under(&new.hash, from);
        let account = self.add_account(io, new).await?;
        self.add_network(io, account.id, network).await;
        Ok(AuthResponse::Account(account))
    }

    pub(super) async fn add_account(&self, io: &Io, new: NewAccount) -> Result<Account, Error> {
        let added = self.directory(io, move |directory, _| directory.add_account(&new)).await?;
        added.ok_or(Error::NameTaken)
    }

    pub(super) async fn log_in(
        &self,
        io: &Io,
        name: &str,
        password: Secret,
        (from, is_known): (Source, bool),
    ) -> Result<AuthResponse, Error> {
        let row = self.verify(io, name, password, (from, Standing::of(is_known))).await?;
        let (token, id) = draw_token(io);
        let created = time::now(io);
        let expires = created.saturating_add(millis(self.settings().session_time));
        let (account, version) = (row.account.id, row.version);
        let new = NewSession { id, account, version, created, expires };
        let kept = self.directory(io, move |directory, changes| {
            let ended = directory.add_session(&new, SESSIONS_PER_ACCOUNT_MAX)?;
            ended.iter().flatten().for_each(|session| changes.note(Topic::Session(*session)));
            Ok(ended.is_some())
        });
        if !kept.await? {
            return Err(Error::WrongCredentials);
        }
        let begun = LogIn { token, expires: time::time(expires), account: row.account };
        Ok(AuthResponse::LogIn((begun, version)))
    }

    pub(super) async fn session(&self, io: &Io, session: SessionId) -> Result<AuthResponse, Error> {
        let now = time::now(io);
        let found = self.directory(io, move |directory, _| directory.session(session, now)).await?;
        let (account, expires) = found.ok_or(Error::NoSession)?;
        Ok(AuthResponse::Session((account, time::time(expires))))
    }

    /// Returns the account in its present state, if it may log in and its password still has that
    /// version.
    pub(super) async fn renew(&self, io: &Io, id: i64, version: i64) -> Result<AuthResponse, Error> {
        let row = self.directory(io, move |directory, _| directory.account_of(id)).await?;
        let holds = row.filter(|row| row.account.enabled && row.version == version);
        holds.map(|row| AuthResponse::Account(row.account)).ok_or(Error::NoSession)
    }

    pub(super) async fn log_out(&self, io: &Io, session: SessionId) -> Result<AuthResponse, Error> {
        let ended = self.directory(io, move |directory, changes| {
            let ended = directory.end_session(session);
            changes.note(Topic::Session(session));
            ended
        });
        if ended.await? { Ok(AuthResponse::Done(())) } else { Err(Error::NoSession) }
    }

    pub(super) async fn change_password(
        &self,
        io: &Io,
        (id, but): (i64, Option<SessionId>),
        (old, new): (Secret, Secret),
        from: Source,
    ) -> Result<AuthResponse, Error> {
        let known = self.directory(io, move |directory, _| directory.account_of(id)).await?;
        let name = known.ok_or(Error::NoSession)?.account.name;
        check_password(&name, &new)?;
        let version = self.verify(io, &name, old, (from, Standing::Familiar)).await?.version;
        let permit = self.hash_permit(io, Some(&name), (from, Lane::Known)).await?;
        let hash = self.hash(io, new, permit).await?;
        let network = NetworkHash::under(&hash, from);
        if self.replace_password(io, (id, version), hash, but).await? {
            // All other networks are forgotten: their hashes are under the old one.
            self.add_network(io, id, network).await;
            Ok(AuthResponse::Done(()))
        } else {
            Err(Error::WrongCredentials)
        }
    }

    /// Returns false if the password was replaced meanwhile.
    pub(super) async fn replace_password(
        &self,
        io: &Io,
        (id, version): (i64, i64),
        hash: String,
        but: Option<SessionId>,
    ) -> Result<bool, Error> {
        self.directory(io, move |directory, changes| {
            let set = directory.set_password(id, version, &hash, but);
            changes.note(Topic::Account(id));
            set
        })
        .await
    }
}
