//! Accounts and login sessions: sign-up, login, logout, and the caller's own account.
//!
//! Invariants: the transfer log has the name that was tried, never the password.

use plimsoll_auth::{Account, Error as AuthError, LogIn, Secret};
use plimsoll_store::{TrashInfo, Usage};

use crate::Operations;
use crate::caller::{Caller, Visitor};
use crate::error::Error;
use crate::home_path::HomePath;
use crate::operation::Operation;

/// The report to a caller about its own account.
pub struct WhoAmI {
    /// The account, with its quota.
    pub account: Account,
    /// The usage of its home, with its trash.
    pub usage: Usage,
    /// Its trash.
    pub trash: TrashInfo,
}

impl Operations {
    /// Creates an account.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::sign_up`], and [`Operations::check_password_channel`].
    pub async fn sign_up(&self, visitor: &Visitor, name: &str, password: &Secret) -> Result<Account, Error> {
        let audit = self.begin(visitor, Operation::SignUp, name);
        let signed_up = self.0.auth.sign_up(&visitor.io, name, password, &visitor.peer);
        audit.end(self.with_password(visitor, signed_up).await)
    }

    /// Starts a login session.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::log_in`], and [`Operations::check_password_channel`].
    pub async fn log_in(&self, visitor: &Visitor, name: &str, password: &Secret) -> Result<LogIn, Error> {
        let audit = self.begin(visitor, Operation::LogIn, name);
        let logged_in = self.0.auth.log_in(&visitor.io, name, password, &visitor.peer);
        audit.end(self.with_password(visitor, logged_in).await)
    }

    /// Authenticates a client by its session token. It is not an operation of its own: the request that
    /// follows is.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::by_token`].
    pub async fn by_token(&self, visitor: &Visitor, token: &[u8]) -> Result<Caller, Error> {
        let identity = self.0.auth.by_token(&visitor.io, token).await?;
        Ok(Caller::new(visitor.clone(), identity))
    }

    /// Authenticates a client by name and password. It is not an operation of its own: the request that
    /// follows is.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::by_password`], and [`Operations::check_password_channel`]. A refusal has its
    /// line in the transfer log, as a login.
    pub async fn by_password(
        &self,
        visitor: &Visitor,
        name: &[u8],
        password: &Secret,
    ) -> Result<Caller, Error> {
        let verified = self.0.auth.by_password(&visitor.io, name, password, &visitor.peer);
        match self.with_password(visitor, verified).await {
            Ok(identity) => Ok(Caller::new(visitor.clone(), identity)),
            Err(error) => {
                let name = String::from_utf8_lossy(name);
                self.begin(visitor, Operation::LogIn, &name).end(Err(error))
            }
        }
    }

    /// Whether the caller is known to be unchanged, so that [`Operations::renew`] would return the same
    /// caller.
    pub fn holds(&self, caller: &Caller) -> bool {
        self.0.auth.holds(caller.io(), &caller.identity)
    }

    /// Returns the caller with the current state of its account, if its credential is still valid. A
    /// connection that presents a credential once calls this before each command. It passes the result to
    /// the next call.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::renew`].
    pub async fn renew(&self, caller: &Caller) -> Result<Caller, Error> {
        let identity = self.0.auth.renew(caller.io(), &caller.identity).await?;
        Ok(Caller::new(caller.visitor.clone(), identity))
    }

    /// Ends the caller's login session.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::log_out`].
    pub async fn log_out(&self, caller: &Caller) -> Result<(), Error> {
        let audit = self.begin_at(caller, Operation::LogOut, &"");
        audit.end(self.0.auth.log_out(caller.io(), &caller.identity).await)
    }

    /// Returns the caller's own account and its usage.
    ///
    /// # Errors
    /// The error that prevents the counting of the home's usage.
    pub async fn who_am_i(&self, caller: &Caller) -> Result<WhoAmI, Error> {
        let audit = self.begin_at(caller, Operation::WhoAmI, &"");
        audit.end(self.look_at_account(caller).await)
    }

    /// Returns the caller's account and its usage, if `place` is in its home. The usage of another account's
    /// home is not the caller's business.
    ///
    /// # Errors
    /// The error that prevents the counting of the home's usage.
    pub async fn usage_at(&self, caller: &Caller, place: &HomePath) -> Result<Option<WhoAmI>, Error> {
        if !place.is_own(&caller.identity.account.name) {
            return Ok(None);
        }
        self.look_at_account(caller).await.map(Some)
    }

    async fn look_at_account(&self, caller: &Caller) -> Result<WhoAmI, Error> {
        let account = Account::clone(&caller.identity.account);
        let home = self.0.store.home(caller.io(), account.id, &account.name).await?;
        let usage = home.usage(caller.io()).await?;
        let trash = home.trash_info(caller.io()).await?;
        Ok(WhoAmI { account, usage, trash })
    }

    /// Changes the caller's password. The account's other sessions end.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::change_password`], and [`Operations::check_password_channel`].
    pub async fn change_password(&self, caller: &Caller, old: &Secret, new: &Secret) -> Result<(), Error> {
        let audit = self.begin_at(caller, Operation::ChangePassword, &"");
        let (io, peer) = (caller.io(), &caller.visitor.peer);
        let changed = self.0.auth.change_password(io, &caller.identity, old, new, peer);
        audit.end(self.with_password(&caller.visitor, changed).await)
    }

    /// Uses the password of a client that may present one on its connection. Otherwise the directory is not
    /// asked.
    async fn with_password<T>(
        &self,
        visitor: &Visitor,
        used: impl Future<Output = Result<T, AuthError>>,
    ) -> Result<T, Error> {
        self.check_password_channel(visitor)?;
        Ok(used.await?)
    }
}
