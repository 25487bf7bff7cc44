//! Codes of problem details: the extension member `code` (RFC 9457, section 3.2).
//!
//! A client chooses its own sentence by the code, instead of reading the server's. Only problems whose
//! sentence contains HTTP terms have one. Invariant: a code keeps its meaning in later versions.

/// The code of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemCode {
    /// The parent folder of the path does not exist.
    NoParentFolder,
    /// The path names a folder, and a file's path is needed.
    FolderName,
    /// The account has too many uploads in progress.
    TooManyUploads,
    /// The account's quota would be exceeded.
    OverQuota,
    /// The account has no such share.
    NoSuchShare,
    /// The request needs credentials.
    LoginRequired,
}

impl ProblemCode {
    /// All codes.
    pub const ALL: [ProblemCode; 6] = [
        ProblemCode::NoParentFolder,
        ProblemCode::FolderName,
        ProblemCode::TooManyUploads,
        ProblemCode::OverQuota,
        ProblemCode::NoSuchShare,
        ProblemCode::LoginRequired,
    ];

    /// The text of the member.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ProblemCode::NoParentFolder => "no-parent-folder",
            ProblemCode::FolderName => "folder-name",
            ProblemCode::TooManyUploads => "too-many-uploads",
            ProblemCode::OverQuota => "over-quota",
            ProblemCode::NoSuchShare => "no-such-share",
            ProblemCode::LoginRequired => "login-required",
        }
    }

    /// Returns the code with this text; `None` if it is unknown, as from a later version.
    #[must_use]
    pub fn parse(text: &str) -> Option<ProblemCode> {
        ProblemCode::ALL.into_iter().find(|code| code.as_str() == text)
    }
}
