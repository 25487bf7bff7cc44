//! Conversion of rows to values.
//!
//! It runs no statement. Invariant: the columns have the order of the constants below.

use rusqlite::{Result, Row};

use crate::account::{Account, Quota};
use crate::directory::AccountRow;
use crate::directory::values::{permissions, unsigned};
use crate::shares::{Permission, Share};
use plimsoll_rpc::time::time;

/// The columns that [`account`] and [`account_row`] read.
pub(super) const ACCOUNT_COLUMNS: &str =
    "a.id, a.name, a.quota_bytes, a.quota_files, a.permissions, a.enabled, a.created, a.hash, a.version";

/// The columns that [`share`] reads.
pub(super) const SHARE: &str = "s.id, o.name, s.path, h.name, s.permission, s.created, s.expires";

pub(super) fn account(row: &Row<'_>) -> Result<Account> {
    let quota = |at| row.get::<_, Option<i64>>(at).map(|kept| kept.map(unsigned));
    Ok(Account {
        id: row.get(0)?,
        name: row.get(1)?,
        quota: Quota { bytes: quota(2)?, files: quota(3)? },
        permissions: permissions(row.get(4)?),
        enabled: row.get(5)?,
        created: time(unsigned(row.get(6)?)),
    })
}

pub(super) fn account_row(row: &Row<'_>) -> Result<AccountRow> {
    Ok(AccountRow { account: account(row)?, hash: row.get(7)?, version: row.get(8)? })
}

pub(super) fn share(row: &Row<'_>) -> Result<Share> {
    Ok(Share {
        id: row.get(0)?,
        owner: row.get(1)?,
        path: row.get(2)?,
        with: row.get(3)?,
        permission: if row.get(4)? { Permission::Write } else { Permission::Read },
        created: time(unsigned(row.get(5)?)),
        expires: row.get::<_, Option<i64>>(6)?.map(|end| time(unsigned(end))),
    })
}
