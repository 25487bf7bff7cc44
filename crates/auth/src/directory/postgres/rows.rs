//! Conversion of rows to values.
//!
//! It runs no statement. Invariant: the columns have the order of the constants below.

use super::connection::PostgresRow;
use crate::account::{Account, Quota};
use crate::directory::values::{permissions, unsigned};
use crate::directory::{AccountRow, DirectoryError};
use crate::shares::{Permission, Share};
use plimsoll_rpc::time::time;

/// The columns that [`account`] and [`account_row`] read.
pub(super) const ACCOUNT_COLUMNS: &str =
    "a.id, a.name, a.quota_bytes, a.quota_files, a.permissions, a.enabled, a.created, a.hash, a.version";

/// The columns that [`share`] reads.
pub(super) const SHARE: &str = "s.id, o.name, s.path, h.name, s.writes, s.created, s.expires";

pub(super) fn account(row: &PostgresRow) -> Result<Account, DirectoryError> {
    let quota = |at| row.maybe_int(at).map(|kept| kept.map(unsigned));
    Ok(Account {
        id: row.int(0)?,
        name: row.text(1)?.to_owned(),
        quota: Quota { bytes: quota(2)?, files: quota(3)? },
        permissions: permissions(row.int(4)?),
        enabled: row.is_true(5)?,
        created: time(unsigned(row.int(6)?)),
    })
}

pub(super) fn account_row(row: &PostgresRow) -> Result<AccountRow, DirectoryError> {
    Ok(AccountRow { account: account(row)?, hash: row.text(7)?.to_owned(), version: row.int(8)? })
}

pub(super) fn share(row: &PostgresRow) -> Result<Share, DirectoryError> {
    Ok(Share {
        id: row.text(0)?.to_owned(),
        owner: row.text(1)?.to_owned(),
        path: row.bytes(2)?,
        with: row.text(3)?.to_owned(),
        permission: if row.is_true(4)? { Permission::Write } else { Permission::Read },
        created: time(unsigned(row.int(5)?)),
        expires: row.maybe_int(6)?.map(|end| time(unsigned(end))),
    })
}
