//! The handle's methods for accounts with the right `administer`, about any account.
//!
//! They decide nothing: the account service verifies the right, by the caller's session. Invariant: each
//! method sends one request to the account service.

use plimsoll_io::Io;

use super::Auth;
use crate::account::{Account, Change};
use crate::error::Error;
use crate::links::Link;
use crate::request::{AdminRequest, AuthRequest, AuthResponse};
use crate::sessions::Identity;
use crate::shares::Share;

impl Auth {
    /// Lists accounts by name, from behind `after` on: one more than
    /// [`ACCOUNTS_PER_PAGE_MAX`](crate::limits::ACCOUNTS_PER_PAGE_MAX) at most.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] without the right, [`Error::NoSession`] if no session verified the caller. All
    /// methods here have both.
    pub async fn list_accounts(
        &self,
        io: &Io,
        by: &Identity,
        after: Option<String>,
    ) -> Result<Vec<Account>, Error> {
        self.administer(io, by, AdminRequest::Accounts { after }).await
    }

    /// Looks up one account.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn find_account(&self, io: &Io, by: &Identity, name: &str) -> Result<Account, Error> {
        self.administer(io, by, AdminRequest::Account(name.to_owned())).await
    }

    /// Changes an account, and returns its new state.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::OwnRight`] if the caller would lose its own right.
    pub async fn change_account(
        &self,
        io: &Io,
        by: &Identity,
        name: &str,
        changes: Vec<Change>,
    ) -> Result<Account, Error> {
        self.administer(io, by, AdminRequest::Change(name.to_owned(), changes)).await
    }

    /// Ends all sessions of an account.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn end_sessions_of(&self, io: &Io, by: &Identity, name: &str) -> Result<(), Error> {
        self.administer(io, by, AdminRequest::EndSessions(name.to_owned())).await
    }

    /// Lists the shares that an account gives.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn shares_of(&self, io: &Io, by: &Identity, name: &str) -> Result<Vec<Share>, Error> {
        self.administer(io, by, AdminRequest::Shares(name.to_owned())).await
    }

    /// Ends a share that an account gives.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn end_share_of(&self, io: &Io, by: &Identity, name: &str, id: &str) -> Result<(), Error> {
        self.administer(io, by, AdminRequest::EndShare(name.to_owned(), id.to_owned())).await
    }

    /// Lists the public links of an account.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn links_of(&self, io: &Io, by: &Identity, name: &str) -> Result<Vec<Link>, Error> {
        self.administer(io, by, AdminRequest::Links(name.to_owned())).await
    }

    /// Ends a public link of an account.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn end_link_of(&self, io: &Io, by: &Identity, name: &str, id: &str) -> Result<(), Error> {
        self.administer(io, by, AdminRequest::EndLink(name.to_owned(), id.to_owned())).await
    }

    async fn administer<T: TryFrom<AuthResponse>>(
        &self,
        io: &Io,
        by: &Identity,
        request: AdminRequest,
    ) -> Result<T, Error> {
        let by = by.session().ok_or(Error::NoSession)?;
        self.ask(io, AuthRequest::Administer { by, request }).await
    }
}
