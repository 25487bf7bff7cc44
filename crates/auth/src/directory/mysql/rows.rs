//! Conversion of rows to values, and of values to text in statements.
//!
//! It runs no statement. Invariants: the columns have the order of the constants below. Text from
//! outside is in a statement as hexadecimal digits only.

use plimsoll_wire::hex;

use super::connection::MysqlRow;
use super::packets::strange;
use crate::account::{Account, Quota};
use crate::directory::values::{permissions, signed, unsigned};
use crate::directory::{AccountRow, DirectoryError};
use crate::sessions::SessionId;
use crate::shares::{Permission, Share};
use plimsoll_rpc::time::time;

/// The columns that [`account`] and [`account_row`] read.
pub(super) const ACCOUNT_COLUMNS: &str =
    "a.id, a.name, a.quota_bytes, a.quota_files, a.permissions, a.enabled, a.created, a.hash, a.version";

/// The columns that [`share`] reads.
pub(super) const SHARE: &str = "s.id, o.name, s.path, h.name, s.writes, s.created, s.expires";

/// Formats bytes for a statement.
pub(super) fn literal(bytes: impl AsRef<[u8]>) -> String {
    format!("x'{}'", hex::encode(bytes.as_ref()))
}

/// Formats a number or NULL for a statement.
pub(super) fn maybe(number: Option<u64>) -> String {
    number.map_or("NULL".to_owned(), |number| signed(number).to_string())
}

pub(super) fn account(row: &MysqlRow) -> Result<Account, DirectoryError> {
    let quota = |at| row.maybe_int(at).map(|kept| kept.map(unsigned));
    Ok(Account {
        id: row.int(0)?,
        name: row.text(1)?.to_owned(),
        quota: Quota { bytes: quota(2)?, files: quota(3)? },
        permissions: permissions(row.int(4)?),
        enabled: row.int(5)? != 0,
        created: time(unsigned(row.int(6)?)),
    })
}

pub(super) fn account_row(row: &MysqlRow) -> Result<AccountRow, DirectoryError> {
    Ok(AccountRow { account: account(row)?, hash: row.text(7)?.to_owned(), version: row.int(8)? })
}

pub(super) fn session_id(row: &MysqlRow) -> Result<SessionId, DirectoryError> {
    row.bytes(0)?.try_into().map(SessionId).map_err(|_| strange())
}

pub(super) fn share(row: &MysqlRow) -> Result<Share, DirectoryError> {
    Ok(Share {
        id: row.text(0)?.to_owned(),
        owner: row.text(1)?.to_owned(),
        path: row.bytes(2)?.to_vec(),
        with: row.text(3)?.to_owned(),
        permission: if row.int(4)? == 0 { Permission::Read } else { Permission::Write },
        created: time(unsigned(row.int(5)?)),
        expires: row.maybe_int(6)?.map(|end| time(unsigned(end))),
    })
}
