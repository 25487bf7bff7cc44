//! Conversion of the script's replies to values.
//!
//! It runs no command. Invariant: the order of elements is that of `record` and `share` in
//! `directory.lua`.

use plimsoll_wire::hex;

use super::connection::{Reply, strange};
use crate::account::{Account, Quota};
use crate::directory::values::{permissions, unsigned};
use crate::directory::{AccountRow, DirectoryError};
use crate::sessions::SessionId;
use crate::shares::{Permission, Share};
use plimsoll_rpc::time::{Millis, time};

pub(super) fn account(reply: &Reply) -> Result<Account, DirectoryError> {
    let quota = |at| reply.at(at)?.maybe_int().map(|kept| kept.map(unsigned));
    Ok(Account {
        id: reply.at(0)?.int()?,
        name: reply.at(1)?.text()?.to_owned(),
        quota: Quota { bytes: quota(2)?, files: quota(3)? },
        permissions: permissions(reply.at(4)?.int()?),
        enabled: reply.at(5)?.bytes()? == b"1",
        created: time(unsigned(reply.at(6)?.int()?)),
    })
}

pub(super) fn account_row(reply: &Reply) -> Result<AccountRow, DirectoryError> {
    let hash = reply.at(7)?.text()?.to_owned();
    Ok(AccountRow { account: account(reply)?, hash, version: reply.at(8)?.int()? })
}

/// Returns when a session ends, from the element after its account.
pub(super) fn expires_of_session(reply: &Reply) -> Result<Millis, DirectoryError> {
    reply.at(9)?.int().map(unsigned)
}

pub(super) fn session_id(reply: &Reply) -> Result<SessionId, DirectoryError> {
    let bytes = hex::decode(reply.bytes()?).and_then(|bytes| bytes.try_into().ok());
    bytes.map(SessionId).ok_or_else(strange)
}

pub(super) fn share(reply: &Reply) -> Result<Share, DirectoryError> {
    Ok(Share {
        id: reply.at(0)?.text()?.to_owned(),
        owner: reply.at(1)?.text()?.to_owned(),
        path: reply.at(2)?.bytes()?.to_vec(),
        with: reply.at(3)?.text()?.to_owned(),
        permission: if reply.at(4)?.bytes()? == b"1" { Permission::Write } else { Permission::Read },
        created: time(unsigned(reply.at(5)?.int()?)),
        expires: reply.at(6)?.maybe_int()?.map(|end| time(unsigned(end))),
    })
}
