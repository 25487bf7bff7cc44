//! Parses `PREFIX=DIR`: a site's prefix and folder.
//!
//! It opens nothing. Invariant: a prefix is a plain path that is not reserved for the server's own API.

use std::path::PathBuf;
use std::str::FromStr;

/// A site as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SiteFlag {
    pub(crate) prefix: String,
    pub(crate) folder: PathBuf,
}

impl FromStr for SiteFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<SiteFlag, String> {
        let (prefix, folder) = text.split_once('=').ok_or("write PREFIX=DIR, such as /=./public")?;
        if !prefix.starts_with('/') {
            return Err(format!("the prefix {prefix:?} must begin with a slash, such as /={folder}"));
        }
        if folder.is_empty() {
            return Err(format!("there is no folder after the equals sign, such as {prefix}=./public"));
        }
        if prefix.len() > 1 && prefix.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) {
            return Err(format!("the prefix {prefix:?} must be a plain path without a slash at its end"));
        }
        if plimsoll_proto::http::is_reserved(prefix) {
            return Err(format!("the prefix {prefix:?} belongs to the server's own API; choose another"));
        }
        Ok(SiteFlag { prefix: prefix.to_owned(), folder: folder.into() })
    }
}
