//! The operations, with their names in the transfer log and the metrics.
//!
//! Invariant: a name never changes after its release, because operators' statistics depend on it.

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Create an account.
    SignUp,
    /// Start a login session.
    LogIn,
    /// End a login session.
    LogOut,
    /// Read the caller's own account.
    WhoAmI,
    /// Change the caller's password.
    ChangePassword,
    /// List a folder.
    List,
    /// Read a file.
    Download,
    /// Write a file.
    Upload,
    /// Create a folder.
    MakeFolder,
    /// Remove a file or folder.
    Delete,
    /// Move or rename a file or folder.
    Move,
    /// Copy a file or folder.
    Copy,
    /// Grant another account a right to a path.
    Share,
    /// End a share.
    Unshare,
    /// List the shares that the caller granted.
    ListShares,
    /// List the shares that others granted to the caller.
    ListShared,
    /// Set the time of a file's last modification.
    SetTime,
    /// Make a public link to a path.
    Link,
    /// End a public link.
    Unlink,
    /// List the caller's public links.
    ListLinks,
    /// List the trash.
    ListTrash,
    /// Restore an entry of the trash.
    Restore,
    /// Delete entries of the trash for good.
    DropTrash,
    /// List all accounts, as an operator.
    ListAccounts,
    /// Read an account, as an operator.
    ShowAccount,
    /// Change an account, as an operator.
    ChangeAccount,
    /// End all sessions of an account, as an operator.
    EndSessions,
    /// Lock a file or folder, or extend a lock.
    Lock,
    /// End a lock.
    Unlock,
}

impl Operation {
    /// All operations, in their order.
    pub const ALL: [Operation; 29] = [
        Operation::SignUp,
        Operation::LogIn,
        Operation::LogOut,
        Operation::WhoAmI,
        Operation::ChangePassword,
        Operation::List,
        Operation::Download,
        Operation::Upload,
        Operation::MakeFolder,
        Operation::Delete,
        Operation::Move,
        Operation::Copy,
        Operation::Share,
        Operation::Unshare,
        Operation::ListShares,
        Operation::ListShared,
        Operation::SetTime,
        Operation::Link,
        Operation::Unlink,
        Operation::ListLinks,
        Operation::ListTrash,
        Operation::Restore,
        Operation::DropTrash,
        Operation::ListAccounts,
        Operation::ShowAccount,
        Operation::ChangeAccount,
        Operation::EndSessions,
        Operation::Lock,
        Operation::Unlock,
    ];

    /// Returns the name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Operation::SignUp => "signup",
            Operation::LogIn => "login",
            Operation::LogOut => "logout",
            Operation::WhoAmI => "whoami",
            Operation::ChangePassword => "passwd",
            Operation::List => "list",
            Operation::Download => "download",
            Operation::Upload => "upload",
            Operation::MakeFolder => "mkdir",
            Operation::Delete => "delete",
            Operation::Move => "move",
            Operation::Copy => "copy",
            Operation::Share => "share",
            Operation::Unshare => "unshare",
            Operation::ListShares => "shares",
            Operation::ListShared => "shared",
            Operation::SetTime => "settime",
            Operation::Link => "link",
            Operation::Unlink => "unlink",
            Operation::ListLinks => "links",
            Operation::ListTrash => "trash",
            Operation::Restore => "restore",
            Operation::DropTrash => "purge",
            Operation::ListAccounts => "accounts",
            Operation::ShowAccount => "account",
            Operation::ChangeAccount => "change-account",
            Operation::EndSessions => "end-sessions",
            Operation::Lock => "lock",
            Operation::Unlock => "unlock",
        }
    }
}
