//! The operations, by name: as the transfer log and the metrics call them.
//!
//! What must hold: a name never changes once it was released; people count by them.

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Make an account.
    SignUp,
    /// Begin a session.
    LogIn,
    /// End a session.
    LogOut,
    /// Look at one's own account.
    WhoAmI,
    /// Change one's password.
    ChangePassword,
    /// List a folder.
    List,
    /// Read a file.
    Download,
    /// Write a file.
    Upload,
    /// Make a folder.
    MakeFolder,
    /// Remove a file or folder.
    Delete,
    /// Give a file or folder another name.
    Move,
    /// Copy a file or folder.
    Copy,
    /// Give somebody a right to a path.
    Share,
    /// Take it back.
    Unshare,
    /// List what one has shared.
    ListShares,
    /// List what others have shared.
    ListShared,
    /// Say when a file was last changed.
    SetTime,
}

impl Operation {
    /// All of them, in their order.
    pub const ALL: [Operation; 17] = [
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
    ];

    /// Its name in logs and metrics.
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
        }
    }
}
