//! Requests about any account, by accounts with the right `administer`.
//!
//! Programs with access to the directory are in `operator.rs`. Invariants: the job that uses the right
//! verifies it by the session, and trusts no answer that a front has cached. The same job notes the change.
//! No response has a password or token.

use plimsoll_io::Io;

use super::AccountService;
use crate::account::{Account, Change};
use crate::changes::{Changes, Topic};
use crate::directory::{AccountRow, Directory, DirectoryError, ShareSelection};
use crate::error::Error;
use crate::limits::ACCOUNTS_PER_PAGE_MAX;
use crate::names::account_name;
use crate::request::{AdminRequest, AuthResponse};
use crate::sessions::SessionId;
use plimsoll_rpc::time::{self, Millis};

/// The directory, with the changes to note, for one request.
struct AdminJob<'a> {
    directory: &'a mut dyn Directory,
    changes: &'a Changes,
    now: Millis,
}

/// The result of a job: the outer error is the directory's, the inner one is for the client.
type Outcome<T> = Result<Result<T, Error>, DirectoryError>;

impl AccountService {
    pub(super) async fn administer(
        &self,
        io: &Io,
        by: SessionId,
        request: AdminRequest,
    ) -> Result<AuthResponse, Error> {
        let now = time::now(io);
        self.directory(io, move |directory, changes| AdminJob { directory, changes, now }.run(by, request))
            .await?
    }
}

impl AdminJob<'_> {
    fn run(&mut self, by: SessionId, request: AdminRequest) -> Outcome<AuthResponse> {
        let Some((operator, _)) = self.directory.session(by, self.now)? else {
            return Ok(Err(Error::NoSession));
        };
        if !operator.permissions.administer {
            return Ok(Err(Error::NotAllowed));
        }
        let (AdminRequest::Account(name)
        | AdminRequest::Change(name, _)
        | AdminRequest::EndSessions(name)
        | AdminRequest::Shares(name)
        | AdminRequest::EndShare(name, _)
        | AdminRequest::Links(name)
        | AdminRequest::EndLink(name, _)) = &request
        else {
            return self.list(request);
        };
        let Ok(name) = account_name(name.as_bytes()) else { return Ok(Err(Error::NotFound)) };
        let Some(row) = self.directory.account(&name)? else { return Ok(Err(Error::NotFound)) };
        self.run_on(&operator, row, request)
    }

    fn list(&mut self, request: AdminRequest) -> Outcome<AuthResponse> {
        let AdminRequest::Accounts { after } = request else { return Ok(Err(Error::NotFound)) };
        let mut accounts: Vec<_> = self.directory.accounts()?.into_iter().map(|row| row.account).collect();
        accounts.retain(|account| after.as_ref().is_none_or(|after| account.name > *after));
        // By bytes, as `after` is compared: a database may have an order of its own.
        accounts.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        // One more, which shows that another page follows.
        accounts.truncate(ACCOUNTS_PER_PAGE_MAX + 1);
        Ok(Ok(AuthResponse::Accounts(accounts)))
    }

    fn run_on(
        &mut self,
        operator: &Account,
        row: AccountRow,
        request: AdminRequest,
    ) -> Outcome<AuthResponse> {
        let id = row.account.id;
        Ok(match request {
            AdminRequest::Change(_, changes) => {
                return Ok(self.change(operator, row.account, &changes)?.map(AuthResponse::Account));
            }
            AdminRequest::EndSessions(_) => {
                // The same password again, under a new version: that ends all that the old one verified. If
                // another process has set one or removed the account meanwhile, that ended the sessions.
                let set = self.directory.set_password(id, row.version, &row.hash, None);
                self.changes.note(Topic::Account(id));
                set?;
                Ok(AuthResponse::Done(()))
            }
            AdminRequest::Shares(_) => {
                Ok(AuthResponse::Shares(self.directory.shares(ShareSelection::By(id), self.now)?))
            }
            AdminRequest::EndShare(_, share) => {
                let ended = self.directory.end_share(id, &share);
                self.changes.note(Topic::Shares(id));
                done(ended?)
            }
            AdminRequest::Links(_) => {
                let links = self.directory.links(id)?;
                let held = links.iter().filter(|link| link.holds(self.now));
                Ok(AuthResponse::Links(held.map(|link| link.link(&row.account.name)).collect()))
            }
            AdminRequest::EndLink(_, link) => {
                let ended = self.directory.end_link(id, &link);
                self.changes.note(Topic::Shares(id));
                done(ended?)
            }
            AdminRequest::Account(_) | AdminRequest::Accounts { .. } => {
                Ok(AuthResponse::Account(row.account))
            }
        })
    }

    /// Changes an account. No account can take its own right, but two can take each other's at once: the
    /// command line permits it again. If one of the changes fails, those before it have been made.
    fn change(&mut self, operator: &Account, mut account: Account, changes: &[Change]) -> Outcome<Account> {
        let is_loss = |change: &Change| match change {
            Change::Permissions(may) => !may.administer,
            Change::Enabled(is_enabled) => !is_enabled,
            Change::Quota(_) => false,
        };
        if operator.id == account.id && changes.iter().any(is_loss) {
            return Ok(Err(Error::OwnRight));
        }
        for change in changes {
            let changed = self.directory.change(account.id, *change);
            self.changes.note(Topic::Account(account.id));
            let Some(changed) = changed? else { return Ok(Err(Error::NotFound)) };
            account = changed;
        }
        Ok(Ok(account))
    }
}

/// Reports whether the row of a share or link was there.
fn done(was_there: bool) -> Result<AuthResponse, Error> {
    if was_there { Ok(AuthResponse::Done(())) } else { Err(Error::NotFound) }
}
