//! The requests that fronts and operators send to the auth tier, and the responses, as data.
//!
//! They do not depend on the transport: a function call, or a message to a remote tier. Invariant: a
//! request contains all that its response depends on, except the directory, the settings and the time.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::account::{Account, Change, Exported, Permissions, Quota};
use crate::links::{FileVersion, Link, LinkAccess, NewLink};
use crate::locks::{Lock, NewLock};
use crate::sessions::{LogIn, SessionId};
use crate::shares::{Grant, NewShare, Share};
use plimsoll_rpc::Secret;
use plimsoll_rpc::Source;

/// A request. Names are as the user typed them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthRequest {
    /// Creates an account for the caller. Response: [`AuthResponse::Account`].
    SignUp {
        /// The account's name.
        name: String,
        /// Its password.
        password: Secret,
        /// The client's address.
        from: Source,
    },
    /// Opens a session. Response: [`AuthResponse::LogIn`].
    LogIn {
        /// The account's name.
        name: String,
        /// Its password.
        password: Secret,
        /// The client's address.
        from: Source,
        /// Whether the front knows that this very password was right before.
        is_known: bool,
    },
    /// Looks up a session. Response: [`AuthResponse::Session`].
    Session(SessionId),
    /// Checks a name and a password. Response: [`AuthResponse::Password`].
    Password {
        /// The account's name.
        name: String,
        /// Its password.
        password: Secret,
        /// The client's address.
        from: Source,
        /// Whether the front knows that this very password was right before.
        is_known: bool,
    },
    /// Checks that an identity verified by password is still valid. Response: [`AuthResponse::Account`], in
    /// its present state.
    Renew {
        /// The account's number.
        account: i64,
        /// The version of the password that was presented.
        version: i64,
    },
    /// Ends a session. Response: [`AuthResponse::Done`].
    LogOut(SessionId),
    /// Sets a password, for the account itself. Response: [`AuthResponse::Done`].
    ChangePassword {
        /// The account's number.
        account: i64,
        /// The session that stays; all others end.
        but: Option<SessionId>,
        /// The old password.
        old: Secret,
        /// The new password.
        new: Secret,
        /// The client's address.
        from: Source,
    },
    /// Creates a share. Response: [`AuthResponse::Share`].
    Share {
        /// The account that gives it.
        owner: i64,
        /// The share.
        new: NewShare,
    },
    /// Ends a share. Response: [`AuthResponse::Done`].
    Unshare {
        /// The account that gave it.
        owner: i64,
        /// The share's id.
        id: String,
    },
    /// Lists the shares that this account gives. Response: [`AuthResponse::Shares`].
    SharesBy(i64),
    /// Lists the shares that this account receives. Response: [`AuthResponse::Shares`].
    SharedWith(i64),
    /// Finds the shares of a home that this account may use at or below a path. Response:
    /// [`AuthResponse::Grant`].
    Granted {
        /// The account that wants access.
        account: i64,
        /// The name of the home's account.
        owner: String,
        /// The path.
        path: Vec<u8>,
    },
    /// Ends the shares of a path and of all paths below it. Response: [`AuthResponse::Done`].
    EndShares {
        /// The account whose home it is.
        owner: i64,
        /// The path.
        path: Vec<u8>,
    },
    /// Creates a public link. Response: [`AuthResponse::NewLink`].
    AddLink {
        /// The account that gives it.
        owner: i64,
        /// The link.
        new: NewLink,
        /// The client's address.
        from: Source,
    },
    /// Lists the public links of this account. Response: [`AuthResponse::Links`].
    Links(i64),
    /// Ends a public link. Response: [`AuthResponse::Done`].
    EndLink {
        /// The account that gave it.
        owner: i64,
        /// The link's id.
        id: String,
    },
    /// Looks up a public link for a visitor. Response: [`AuthResponse::LinkAccess`].
    Link {
        /// The link's id.
        id: String,
        /// The proof that the visitor has entered its password.
        grant: Option<String>,
        /// Whether the counts of the link must be read now. A main process may cache them otherwise.
        needs_counts: bool,
    },
    /// Checks the password of a public link. Response: [`AuthResponse::LinkGrant`].
    UnlockLink {
        /// The link's id.
        id: String,
        /// Its password.
        password: Secret,
        /// The client's address.
        from: Source,
    },
    /// Counts a download or an upload of a public link. Response: [`AuthResponse::DownloadGrant`].
    UseLink {
        /// The link's id.
        id: String,
        /// The file, and its version if it is downloaded.
        file: FileVersion,
        /// The bytes that are uploaded.
        bytes: u64,
        /// The proof that the download is one that was counted before.
        grant: Option<String>,
    },
    /// A request about any account, by an account with the right `administer`. The account service verifies
    /// that right itself, by the session.
    Administer {
        /// The session of the operator's account.
        by: SessionId,
        /// The request.
        request: AdminRequest,
    },
    /// Takes a lock. Response: [`AuthResponse::Lock`].
    Lock(NewLock),
    /// Extends a lock of this account. Response: [`AuthResponse::Lock`].
    RefreshLock {
        /// The account whose home has the path.
        owner: i64,
        /// The account that holds it.
        holder: i64,
        /// The path of a resource that it must cover.
        path: Vec<u8>,
        /// The lock's id.
        id: String,
        /// How long it holds from now.
        time: Duration,
    },
    /// Ends a lock. Response: [`AuthResponse::Done`].
    Unlock {
        /// The account whose home has the path.
        owner: i64,
        /// The account that requests it: the holder, or the owner.
        by: i64,
        /// The path of a resource that it must cover.
        path: Vec<u8>,
        /// The lock's id.
        id: String,
    },
    /// Ends the locks of resources that were removed. Response: [`AuthResponse::Done`].
    EndLocks {
        /// The account whose home has the paths.
        owner: i64,
        /// The ids of the locks.
        ids: Vec<String>,
    },
    /// Lists the locks in the home of this account. Response: [`AuthResponse::Locks`].
    Locks(i64),
    /// Checks that the directory answers and can be written. Response: [`AuthResponse::Done`].
    Check {},
    /// A request of a program with access to the directory. An RPC server must reject these when they arrive
    /// from fronts.
    Operator(OperatorRequest),
}

/// A request about any account, by an account with the right `administer`. Accounts are named as the user
/// typed them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminRequest {
    /// Lists accounts by name, one more than [`ACCOUNTS_PER_PAGE_MAX`](crate::limits::ACCOUNTS_PER_PAGE_MAX)
    /// at most. Response: [`AuthResponse::Accounts`].
    Accounts {
        /// Lists accounts with a greater name only.
        after: Option<String>,
    },
    /// Looks up one account. Response: [`AuthResponse::Account`].
    Account(String),
    /// Changes an account. Response: [`AuthResponse::Account`].
    Change(String, Vec<Change>),
    /// Ends all sessions of an account. Response: [`AuthResponse::Done`].
    EndSessions(String),
    /// Lists the shares that an account gives. Response: [`AuthResponse::Shares`].
    Shares(String),
    /// Ends the share of this id that an account gives. Response: [`AuthResponse::Done`].
    EndShare(String, String),
    /// Lists the public links of an account. Response: [`AuthResponse::Links`].
    Links(String),
    /// Ends the public link of this id. Response: [`AuthResponse::Done`].
    EndLink(String, String),
}

/// A request of a program with access to the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorRequest {
    /// Lists all accounts by name. Response: [`AuthResponse::Accounts`].
    Accounts,
    /// Looks up one account. Response: [`AuthResponse::Account`].
    Account(String),
    /// Creates an account. Response: [`AuthResponse::Account`].
    Add {
        /// The account's name.
        name: String,
        /// Its password.
        password: Secret,
        /// Storage limits.
        quota: Quota,
        /// Permissions.
        permissions: Permissions,
    },
    /// Sets a password and ends all sessions. Response: [`AuthResponse::Done`].
    SetPassword {
        /// The account's name.
        name: String,
        /// The new password.
        password: Secret,
    },
    /// Changes an account. Response: [`AuthResponse::Account`].
    Change(String, Change),
    /// Removes an account with its sessions and shares. Response: [`AuthResponse::Account`], in its
    /// last state.
    Remove(String),
    /// Exports all accounts. Response: [`AuthResponse::Exported`].
    Export,
    /// Creates an account from an export. Response: [`AuthResponse::Account`].
    Import(Exported),
}

plimsoll_rpc::responses! {
    AuthResponse,
    /// Success, without further data.
    Done(()),
    /// An account.
    Account(Account),
    /// Accounts by name.
    Accounts(Vec<Account>),
    /// Accounts by name, with the hashes of their passwords.
    Exported(Vec<Exported>),
    /// The account of a name and password, and the version of the password.
    Password((Account, i64)),
    /// A new session, and the version of the password that opened it.
    LogIn((LogIn, i64)),
    /// The account of a session, and when the session ends.
    Session((Account, SystemTime)),
    /// A share that was created.
    Share(Share),
    /// Shares by owner, path and account.
    Shares(Vec<Share>),
    /// The shares that give access; never empty.
    Grant(Grant),
    /// A public link that was created, and its token.
    NewLink((Link, Secret)),
    /// Public links, the newest first.
    Links(Vec<Link>),
    /// A public link, as a visitor may use it.
    LinkAccess(LinkAccess),
    /// A grant, for the visitor to present again.
    LinkGrant(String),
    /// A grant to continue a download that was counted now; none for one that was counted before.
    DownloadGrant(Option<String>),
    /// A lock.
    Lock(Lock),
    /// Locks, in any order.
    Locks(Vec<Lock>),
}

#[cfg(test)]
mod tests {
    use plimsoll_rpc::{decode, encode};

    use super::*;
    use crate::error::Error;

    #[test]
    fn a_request_and_its_response_are_read_as_they_were_written() {
        let password = Secret::from("correct horse");
        let name = "alice".to_owned();
        let asked = AuthRequest::LogIn { name, password, from: Source::Unix, is_known: true };
        let sent = serde_json::to_string(&asked).unwrap();
        let read: AuthRequest = serde_json::from_str(&sent).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), sent);
        let error = Error::BadName("no name".into());
        let sent = encode(Err::<AuthResponse, _>(&error));
        assert_eq!(decode::<AuthResponse, Error>(&sent).unwrap().unwrap_err(), error);
    }

    #[test]
    fn a_printed_request_has_no_secret() {
        let password = Secret::from("correct horse");
        let printed = format!("{:?}", OperatorRequest::SetPassword { name: "alice".to_owned(), password });
        assert!(printed.contains("alice") && !printed.contains("horse"), "{printed}");
    }
}
