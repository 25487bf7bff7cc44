//! The operator's methods of the handle: accounts are added, changed, removed, exported and imported.
//!
//! They are for operators with access to the directory, not for clients. Invariant: each method sends one
//! request to the account service.

use plimsoll_io::Io;

use super::Auth;
use crate::account::{Account, Change, Exported, Permissions, Quota};
use crate::error::Error;
use crate::request::{AuthRequest, AuthResponse, OperatorRequest};
use plimsoll_rpc::Secret;

impl Auth {
    /// Lists all accounts by name.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn accounts(&self, io: &Io) -> Result<Vec<Account>, Error> {
        self.order(io, OperatorRequest::Accounts).await
    }

    /// Looks up one account.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn account(&self, io: &Io, name: &str) -> Result<Account, Error> {
        self.order(io, OperatorRequest::Account(name.to_owned())).await
    }

    /// Creates an account.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::BadPassword`], [`Error::NameTaken`].
    pub async fn add(
        &self,
        io: &Io,
        name: &str,
        password: &Secret,
        quota: Quota,
        permissions: Permissions,
    ) -> Result<Account, Error> {
        let (name, password) = (name.to_owned(), password.clone());
        self.order(io, OperatorRequest::Add { name, password, quota, permissions }).await
    }

    /// Sets a password and ends all sessions.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::BadPassword`].
    pub async fn set_password(&self, io: &Io, name: &str, password: &Secret) -> Result<(), Error> {
        self.order(io, OperatorRequest::SetPassword { name: name.to_owned(), password: password.clone() })
            .await
    }

    /// Sets the storage limits of an account.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn set_quota(&self, io: &Io, name: &str, quota: Quota) -> Result<Account, Error> {
        self.order(io, OperatorRequest::Change(name.to_owned(), Change::Quota(quota))).await
    }

    /// Sets the permissions of an account.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn set_permissions(&self, io: &Io, name: &str, may: Permissions) -> Result<Account, Error> {
        self.order(io, OperatorRequest::Change(name.to_owned(), Change::Permissions(may))).await
    }

    /// Enables or disables an account. Disabling it ends its sessions.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn set_enabled(&self, io: &Io, name: &str, is_enabled: bool) -> Result<Account, Error> {
        self.order(io, OperatorRequest::Change(name.to_owned(), Change::Enabled(is_enabled))).await
    }

    /// Removes an account with its sessions and shares, and returns its last state. Its files are left to
    /// the caller.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn remove(&self, io: &Io, name: &str) -> Result<Account, Error> {
        self.order(io, OperatorRequest::Remove(name.to_owned())).await
    }

    /// Exports all accounts, with the hashes of their passwords.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn export(&self, io: &Io) -> Result<Vec<Exported>, Error> {
        self.order(io, OperatorRequest::Export).await
    }

    /// Creates an account from an export.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::NameTaken`], [`Error::BadImport`] if the password is not a hash.
    pub async fn import(&self, io: &Io, account: Exported) -> Result<Account, Error> {
        self.order(io, OperatorRequest::Import(account)).await
    }

    async fn order<T: TryFrom<AuthResponse>>(&self, io: &Io, order: OperatorRequest) -> Result<T, Error> {
        self.ask(io, AuthRequest::Operator(order)).await
    }
}
