//! Requests of operators.
//!
//! It does not ask for a password: access to the directory makes an operator. Invariant: a change is
//! noted in the job that makes it, so that a server in this process sees it at the next request.

use std::borrow::Cow;

use plimsoll_io::Io;

use super::AccountService;
use crate::account::{Account, Change, Exported, draw_id};
use crate::changes::Topic;
use crate::directory::{AccountRow, NewAccount};
use crate::error::Error;
use crate::names::{account_name, check_password};
use crate::passwords::is_hash;
use crate::request::{AuthResponse, OperatorRequest};
use plimsoll_rpc::Secret;
use plimsoll_rpc::time::{self, Millis};
use plimsoll_wire::calendar::{format_rfc3339, parse_rfc3339, since_1970};

impl AccountService {
    pub(super) async fn operate(&self, io: &Io, order: OperatorRequest) -> Result<AuthResponse, Error> {
        match order {
            OperatorRequest::Accounts => {
                let rows = self.rows(io).await?;
                Ok(AuthResponse::Accounts(rows.into_iter().map(|row| row.account).collect()))
            }
            OperatorRequest::Account(name) => Ok(AuthResponse::Account(self.named(io, &name).await?.account)),
            OperatorRequest::Add { name, password, quota, permissions } => {
                let name = account_name(name.as_bytes())?;
                check_password(&name, &password)?;
                let (hash, created) = (self.hash(io, password, None).await?, time::now(io));
                let id = draw_id(io);
                let new = NewAccount { id, name, hash, quota, permissions, enabled: true, created };
                self.add_account(io, new).await.map(AuthResponse::Account)
            }
            OperatorRequest::SetPassword { name, password } => self.set_password(io, &name, password).await,
            OperatorRequest::Change(name, change) => {
                self.change(io, &name, change).await.map(AuthResponse::Account)
            }
            OperatorRequest::Remove(name) => self.remove(io, &name).await.map(AuthResponse::Account),
            OperatorRequest::Export => {
                let rows = self.rows(io).await?;
                Ok(AuthResponse::Exported(rows.into_iter().map(exported).collect()))
            }
            OperatorRequest::Import(account) => self.import(io, account).await.map(AuthResponse::Account),
        }
    }

    async fn rows(&self, io: &Io) -> Result<Vec<AccountRow>, Error> {
        self.directory(io, |directory, _| directory.accounts()).await
    }

    async fn set_password(&self, io: &Io, name: &str, password: Secret) -> Result<AuthResponse, Error> {
        check_password(name, &password)?;
        let hash = self.hash(io, password, None).await?;
        let AccountRow { account, version, .. } = self.named(io, name).await?;
        let set = self.replace_password(io, (account.id, version), hash, None).await?;
        // False only if the password was set or the account removed since the line above.
        if set { Ok(AuthResponse::Done(())) } else { Err(Error::NotFound) }
    }

    async fn change(&self, io: &Io, name: &str, change: Change) -> Result<Account, Error> {
        let id = self.named(io, name).await?.account.id;
        let changed = self.directory(io, move |directory, changes| {
            let changed = directory.change(id, change);
            changes.note(Topic::Account(id));
            changed
        });
        changed.await?.ok_or(Error::NotFound)
    }

    async fn remove(&self, io: &Io, name: &str) -> Result<Account, Error> {
        let account = self.named(io, name).await?.account;
        let id = account.id;
        let removed = self.directory(io, move |directory, changes| {
            let removed = directory.remove_account(id);
            changes.note(Topic::Account(id));
            removed
        });
        if removed.await? { Ok(account) } else { Err(Error::NotFound) }
    }

    async fn import(&self, io: &Io, account: Exported) -> Result<Account, Error> {
        let Exported { name, id, password: hash, quota, permissions, enabled, created } = account;
        let name = account_name(name.as_bytes())?;
        if !is_hash(&hash) {
            let why = format!("The password of {name:?} is no Argon2id hash in PHC form. Export it again.");
            return Err(Error::BadImport(Cow::Owned(why)));
        }
        let created = created_at(io, &name, created.as_deref())?;
        let id = self.free_id(io, id).await?;
        self.add_account(io, NewAccount { id, name, hash, quota, permissions, enabled, created }).await
    }

    /// Returns the number `wanted` if no account has it, else another one.
    async fn free_id(&self, io: &Io, wanted: Option<i64>) -> Result<i64, Error> {
        let Some(id) = wanted else { return Ok(draw_id(io)) };
        let taken = self.directory(io, move |directory, _| directory.account_of(id)).await?;
        Ok(if taken.is_some() { draw_id(io) } else { id })
    }
}

/// Returns when an imported account was created: now, if the export does not say.
fn created_at(io: &Io, name: &str, written: Option<&str>) -> Result<Millis, Error> {
    let Some(written) = written else { return Ok(time::now(io)) };
    let created = parse_rfc3339(written).ok_or_else(|| {
        let why = format!("The creation time of {name:?} is no time such as 2026-11-20T13:40:05Z.");
        Error::BadImport(Cow::Owned(why))
    })?;
    Ok(time::millis(since_1970(created)))
}

fn exported(row: AccountRow) -> Exported {
    let Account { id, name, quota, permissions, enabled, created } = row.account;
    let created = Some(format_rfc3339(since_1970(created)));
    Exported { name, id: Some(id), password: row.hash, quota, permissions, enabled, created }
}
