//! Where something is: in one's own home, or in what somebody shared.
//!
//! It says nothing about rights. What must hold: the same place has one form.

use plimsoll_store::Path;

/// A path, and whose home it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the account whose home it is; none is the caller's own.
    pub owner: Option<String>,
    /// The path in that home.
    pub path: Path,
}

impl Place {
    /// In the caller's own home.
    pub fn own(path: Path) -> Place {
        Place { owner: None, path }
    }

    /// Whether it is in the home of the account of this name, which is the caller's.
    pub(crate) fn is_own(&self, caller: &str) -> bool {
        self.owner.as_ref().is_none_or(|owner| owner == caller)
    }

    /// In the home of `owner`.
    pub fn shared(owner: impl Into<String>, path: Path) -> Place {
        Place { owner: Some(owner.into()), path }
    }
}

/// As people see it: `/PATH` in one's own home, `/shared/OWNER/PATH` in another's.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.owner {
            None => write!(f, "/{}", self.path),
            Some(owner) => write!(f, "/shared/{owner}/{}", self.path),
        }
    }
}
