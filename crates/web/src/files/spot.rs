//! Where a path of a file or folder leads: whose home, and where in it.
//!
//! It opens nothing. What must hold: the same place is meant whether it is a request's target or a
//! Destination.

use plimsoll_auth::names::account_name;
use plimsoll_io::BOUNDARY;
use plimsoll_operations::{Error, Place};
use plimsoll_proto::http::Answer;
use plimsoll_store::Path;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use crate::refusal::Refusal;
use crate::resource::nothing;

/// Where a path leads.
pub(crate) struct Spot {
    /// The place.
    pub(crate) place: Place,
    /// Whether it was named as a folder: with a slash at its end.
    pub(crate) is_folder: bool,
    /// The whole decoded path.
    pub(crate) path: Vec<u8>,
    /// Bytes of it that a listing does not show: `/files` or `/shared`.
    pub(crate) unshown: usize,
}

impl Spot {
    /// The spot of a decoded path.
    pub(crate) fn of(path: Vec<u8>) -> Result<Spot, Refusal> {
        let (place, unshown) = match &*path {
            [b'/', b'f', b'i', b'l', b'e', b's', rest @ ..] if matches!(rest, [] | [b'/', ..]) => {
                (Place::own(Path::parse(rest)?), "/files".len())
            }
            [b'/', b's', b'h', b'a', b'r', b'e', b'd', b'/', rest @ ..] => (shared(rest)?, "/shared".len()),
            _ => return Err(nothing()),
        };
        Ok(Spot { place, is_folder: path.ends_with(b"/"), path, unshown })
    }

    /// The name to open for `path`, this place's path as the caller may use it. It ends with a slash if the
    /// request names a folder.
    pub(crate) fn name(&self, path: &Path) -> Vec<u8> {
        if !self.is_folder {
            return file_name(path);
        }
        let mut name = path.to_open();
        if !name.is_empty() && !name.ends_with(b"/") {
            name.push(b'/');
        }
        name
    }

    /// The answer to what was made or replaced here.
    pub(crate) fn stored(&self, created: bool) -> Answer {
        if !created {
            return Answer::new(Status::NO_CONTENT);
        }
        let mut location = Vec::new();
        encode_path(&self.path, &mut location);
        Answer::new(Status::CREATED).field("Location", location)
    }
}

/// The name to open for `path`, if it is a file's: without a slash at its end.
pub(crate) fn file_name(path: &Path) -> Vec<u8> {
    let mut name = path.to_open();
    if name.ends_with(BOUNDARY) {
        name.truncate(name.len() - BOUNDARY.len());
    }
    name
}

/// `OWNER/PATH`.
fn shared(rest: &[u8]) -> Result<Place, Refusal> {
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (owner, path) = rest.split_at(end);
    // A name that no account can have is nobody's.
    let owner = account_name(owner).map_err(|_| Refusal::from(Error::NOT_FOUND))?;
    Ok(Place::shared(owner, Path::parse(path)?))
}
