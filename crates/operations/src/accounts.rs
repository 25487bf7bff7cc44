//! Accounts and sessions: signing up, logging in and out, and who one is.
//!
//! What must hold: the transfer log has the name that was tried, never the password.

use plimsoll_auth::{Account, LogIn, Secret};
use plimsoll_store::Usage;

use crate::Operations;
use crate::caller::{Caller, Visitor};
use crate::error::Error;
use crate::operation::Operation;

/// What somebody is told of their own account.
pub struct WhoAmI {
    /// The account, with its quota.
    pub account: Account,
    /// What its home holds.
    pub usage: Usage,
}

impl Operations {
    /// Makes an account.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::sign_up`].
    pub async fn sign_up(&self, visitor: &Visitor, name: &str, password: &Secret) -> Result<Account, Error> {
        let transfer = self.begin(visitor, Operation::SignUp, name);
        transfer.end(self.0.auth.sign_up(&visitor.io, name, password, &visitor.peer).await)
    }

    /// Begins a session.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::log_in`].
    pub async fn log_in(&self, visitor: &Visitor, name: &str, password: &Secret) -> Result<LogIn, Error> {
        let transfer = self.begin(visitor, Operation::LogIn, name);
        transfer.end(self.0.auth.log_in(&visitor.io, name, password, &visitor.peer).await)
    }

    /// Who shows this token. It is no operation of its own: what follows is.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::by_token`].
    pub async fn by_token(&self, visitor: &Visitor, token: &[u8]) -> Result<Caller, Error> {
        let identity = self.0.auth.by_token(&visitor.io, token).await?;
        Ok(Caller::new(visitor.clone(), identity))
    }

    /// Who shows this name and password. It is no operation of its own: what follows is.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::by_password`]. A refusal has its line in the transfer log, as a login.
    pub async fn by_password(
        &self,
        visitor: &Visitor,
        name: &[u8],
        password: &Secret,
    ) -> Result<Caller, Error> {
        match self.0.auth.by_password(&visitor.io, name, password, &visitor.peer).await {
            Ok(identity) => Ok(Caller::new(visitor.clone(), identity)),
            Err(error) => {
                let name = String::from_utf8_lossy(name);
                self.begin(visitor, Operation::LogIn, &name).end(Err(error))
            }
        }
    }

    /// Whether the caller is known to be as they were: then [`Operations::renew`] would say the same.
    pub fn holds(&self, caller: &Caller) -> bool {
        self.0.auth.holds(caller.io(), &caller.identity)
    }

    /// The caller as their account is now, if what they showed still opens it. To be asked before each
    /// command of a connection that shows a credential once; what it answers is to be asked of next.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::renew`].
    pub async fn renew(&self, caller: &Caller) -> Result<Caller, Error> {
        let identity = self.0.auth.renew(caller.io(), &caller.identity).await?;
        Ok(Caller::new(caller.visitor.clone(), identity))
    }

    /// Ends the session that the caller has shown.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::log_out`].
    pub async fn log_out(&self, caller: &Caller) -> Result<(), Error> {
        let transfer = self.begin_at(caller, Operation::LogOut, &"");
        transfer.end(self.0.auth.log_out(caller.io(), &caller.identity).await)
    }

    /// The caller's own account.
    ///
    /// # Errors
    /// What keeps its home from being counted.
    pub async fn who_am_i(&self, caller: &Caller) -> Result<WhoAmI, Error> {
        let transfer = self.begin_at(caller, Operation::WhoAmI, &"");
        transfer.end(self.look_at_account(caller).await)
    }

    async fn look_at_account(&self, caller: &Caller) -> Result<WhoAmI, Error> {
        let account = Account::clone(&caller.identity.account);
        let home = self.0.store.home(caller.io(), account.id, &account.name).await?;
        let usage = home.usage(caller.io()).await?;
        Ok(WhoAmI { account, usage })
    }

    /// Changes the caller's password. Their other sessions end.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::change_password`].
    pub async fn change_password(&self, caller: &Caller, old: &Secret, new: &Secret) -> Result<(), Error> {
        let transfer = self.begin_at(caller, Operation::ChangePassword, &"");
        let (io, peer) = (caller.io(), &caller.visitor.peer);
        transfer.end(self.0.auth.change_password(io, &caller.identity, old, new, peer).await)
    }
}
