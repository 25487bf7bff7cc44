//! Operations on any account, by accounts with the right `administer`.
//!
//! Invariants: the auth tier verifies the right again where it takes effect. Each operation has an entry in
//! the audit log, with the name of the account in the place of a path, and of a change what it sets.

use plimsoll_auth::{Account, Change, Error as AuthError, Link, Permissions, Quota, Share};
use plimsoll_store::Usage;

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::operation::Operation;

/// The name of a limit or right, and its value, in an audit entry.
type Setting<'a> = (&'a str, String);

impl Operations {
    /// Lists accounts by name, from behind `after` on: one more than
    /// [`ACCOUNTS_PER_PAGE_MAX`](plimsoll_auth::limits::ACCOUNTS_PER_PAGE_MAX) at most.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::list_accounts`].
    pub async fn list_accounts(&self, caller: &Caller, after: Option<String>) -> Result<Vec<Account>, Error> {
        let audit = self.begin_at(caller, Operation::ListAccounts, &"");
        let listed = self.0.auth.list_accounts(caller.io(), &caller.identity, after);
        audit.end(as_operator(caller, listed).await)
    }

    /// Returns an account and the usage of its home, with its trash.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::find_account`]; the error that prevents the counting of the usage.
    pub async fn look_at_account_of(&self, caller: &Caller, name: &str) -> Result<(Account, Usage), Error> {
        let audit = self.begin_at(caller, Operation::ShowAccount, &name);
        audit.end(self.find_account(caller, name).await)
    }

    async fn find_account(&self, caller: &Caller, name: &str) -> Result<(Account, Usage), Error> {
        let found = self.0.auth.find_account(caller.io(), &caller.identity, name);
        let account = as_operator(caller, found).await?;
        let home = self.0.store.home(caller.io(), account.id, &account.name).await?;
        let usage = home.usage(caller.io()).await?;
        Ok((account, usage))
    }

    /// Changes an account, and returns its new state.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::change_account`].
    pub async fn change_account(
        &self,
        caller: &Caller,
        name: &str,
        changes: Vec<Change>,
    ) -> Result<Account, Error> {
        let settings = changes.iter().flat_map(|change| settings_of(*change));
        let settings: Vec<_> = settings.map(|(name, value)| format!("{name}={value}")).collect();
        let audit = self.begin_at(caller, Operation::ChangeAccount, &name).to(&settings.join(","));
        let changed = self.0.auth.change_account(caller.io(), &caller.identity, name, changes);
        audit.end(as_operator(caller, changed).await)
    }

    /// Ends all sessions of an account.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::end_sessions_of`].
    pub async fn end_sessions_of(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let audit = self.begin_at(caller, Operation::EndSessions, &name);
        let result = self.0.auth.end_sessions_of(caller.io(), &caller.identity, name);
        audit.end(as_operator(caller, result).await)
    }

    /// Returns the shares that an account granted.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::shares_of`].
    pub async fn shares_of(&self, caller: &Caller, name: &str) -> Result<Vec<Share>, Error> {
        let audit = self.begin_at(caller, Operation::ListShares, &name);
        let result = self.0.auth.shares_of(caller.io(), &caller.identity, name);
        audit.end(as_operator(caller, result).await)
    }

    /// Ends a share that an account granted.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::end_share_of`].
    pub async fn end_share_of(&self, caller: &Caller, name: &str, id: &str) -> Result<(), Error> {
        let audit = self.begin_at(caller, Operation::Unshare, &name);
        let result = self.0.auth.end_share_of(caller.io(), &caller.identity, name, id);
        audit.end(as_operator(caller, result).await)
    }

    /// Returns the public links of an account.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::links_of`].
    pub async fn links_of(&self, caller: &Caller, name: &str) -> Result<Vec<Link>, Error> {
        let audit = self.begin_at(caller, Operation::ListLinks, &name);
        let result = self.0.auth.links_of(caller.io(), &caller.identity, name);
        audit.end(as_operator(caller, result).await)
    }

    /// Ends a public link of an account.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::end_link_of`].
    pub async fn end_link_of(&self, caller: &Caller, name: &str, id: &str) -> Result<(), Error> {
        let audit = self.begin_at(caller, Operation::Unlink, &name);
        let result = self.0.auth.end_link_of(caller.io(), &caller.identity, name, id);
        audit.end(as_operator(caller, result).await)
    }
}

/// Runs a request of a caller with the right `administer`. Without it, the auth tier is not asked.
async fn as_operator<T>(
    caller: &Caller,
    request: impl Future<Output = Result<T, AuthError>>,
) -> Result<T, Error> {
    if !caller.identity.account.permissions.administer {
        return Err(Error::NotPermitted("administer accounts"));
    }
    Ok(request.await?)
}

/// Returns what a change sets, for its audit entry.
fn settings_of(change: Change) -> Vec<Setting<'static>> {
    let limit = |limit: Option<u64>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    match change {
        Change::Quota(Quota { bytes, files }) => vec![("bytes", limit(bytes)), ("files", limit(files))],
        Change::Enabled(is_enabled) => vec![("enabled", is_enabled.to_string())],
        Change::Permissions(may) => {
            let Permissions { read, write, delete, share, operate, parents, administer } = may;
            let rights = [
                ("read", read),
                ("write", write),
                ("delete", delete),
                ("share", share),
                ("operate", operate),
                ("parents", parents),
                ("administer", administer),
            ];
            rights.map(|(name, is_given)| (name, is_given.to_string())).into()
        }
    }
}
