//! The location of a file or folder: in the caller's own home, or in a share.
//!
//! A place grants no rights. Invariant: equal places have one form.

use plimsoll_store::Path;

/// A path, and the owner of the home that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomePath {
    /// The name of the owner's account; `None` is the caller's own.
    pub owner: Option<String>,
    /// The path in that home.
    pub path: Path,
}

impl HomePath {
    /// A place in the caller's own home.
    pub fn own(path: Path) -> HomePath {
        HomePath { owner: None, path }
    }

    /// Whether the place is in the home of the account `caller`.
    pub fn is_own(&self, caller: &str) -> bool {
        self.owner.as_ref().is_none_or(|owner| owner == caller)
    }

    /// A place in the home of `owner`.
    pub fn shared(owner: impl Into<String>, path: Path) -> HomePath {
        HomePath { owner: Some(owner.into()), path }
    }
}

/// Writes the form that users see: `/PATH` in the caller's own home, `/shared/OWNER/PATH` in another home.
impl std::fmt::Display for HomePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.owner {
            None => write!(f, "/{}", self.path),
            Some(owner) => write!(f, "/shared/{owner}/{}", self.path),
        }
    }
}
