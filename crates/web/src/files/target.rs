//! Resolves the path of a file or folder to a home and a path in it.
//!
//! It opens nothing. Invariant: a path must resolve equally as a request's target and as a Destination.

use plimsoll_auth::names::account_name;
use plimsoll_operations::{Error, HomePath};
use plimsoll_proto::http::Answer;
use plimsoll_store::Path;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use crate::refusal::Refusal;
use crate::resource::nothing;

/// A resolved request path.
pub(crate) struct FileTarget {
    /// The home and the path in it.
    pub(crate) place: HomePath,
    /// Whether the path has a trailing slash, which names a folder.
    pub(crate) is_folder: bool,
    /// The whole decoded path.
    pub(crate) path: Vec<u8>,
    /// Length in bytes of the prefix that a listing does not show: `/files` or `/shared`.
    pub(crate) prefix_bytes: usize,
}

impl FileTarget {
    /// Resolves a decoded path.
    pub(crate) fn of(path: Vec<u8>) -> Result<FileTarget, Refusal> {
        let (place, prefix_bytes) = match &*path {
            [b'/', b'f', b'i', b'l', b'e', b's', rest @ ..] if matches!(rest, [] | [b'/', ..]) => {
                (HomePath::own(Path::parse(rest)?), "/files".len())
            }
            [b'/', b's', b'h', b'a', b'r', b'e', b'd', b'/', rest @ ..] => (shared(rest)?, "/shared".len()),
            _ => return Err(nothing()),
        };
        Ok(FileTarget { place, is_folder: path.ends_with(b"/"), path, prefix_bytes })
    }

    /// Returns the response for an entry that was created or replaced here.
    pub(crate) fn stored(&self, created: bool) -> Answer {
        if !created {
            return Answer::new(Status::NO_CONTENT);
        }
        let mut location = Vec::new();
        encode_path(&self.path, &mut location);
        Answer::new(Status::CREATED).field("Location", location)
    }
}

/// Resolves `OWNER/PATH`.
fn shared(rest: &[u8]) -> Result<HomePath, Refusal> {
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (owner, path) = rest.split_at(end);
    // No account has an invalid name.
    let owner = account_name(owner).map_err(|_| Refusal::from(Error::NOT_FOUND))?;
    Ok(HomePath::shared(owner, Path::parse(path)?))
}
