//! Which resource a path is, and what can be done with it.
//!
//! It answers nothing. What must hold: every path under the API's prefixes is one resource or none, whatever
//! the method.

use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use crate::api::Point;
use crate::files::Spot;
use crate::refusal::Refusal;

/// A resource of the API.
pub(crate) enum Resource {
    /// One of those that speak JSON.
    Api(Point),
    /// The list of who shares something, and its path.
    Owners(Vec<u8>),
    /// A file or folder.
    Files(Spot),
    /// The caller's pending uploads.
    Uploads,
    /// One of them, by its name.
    Upload(Vec<u8>),
}

impl Resource {
    /// The resource of a decoded path.
    pub(crate) fn of(path: Vec<u8>) -> Result<Resource, Refusal> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(match &*path {
            b"/uploads" | b"/uploads/" => Resource::Uploads,
            b"/shared" | b"/shared/" => Resource::Owners(path),
            [b'/', b'u', b'p', b'l', b'o', b'a', b'd', b's', b'/', id @ ..] => Resource::Upload(id.to_vec()),
            [b'/', b'a', b'p', b'i', b'/', rest @ ..] => Resource::Api(Point::of(&text(rest))?),
            _ => Resource::Files(Spot::of(path)?),
        })
    }

    /// What can be done with it, beside OPTIONS.
    pub(crate) fn methods(&self) -> &'static [Method] {
        use Method::{Copy, Delete, Get, Head, Mkcol, Move, Patch, Post, Put};
        match self {
            Resource::Api(point) => point.methods(),
            Resource::Owners(_) => &[Get, Head],
            Resource::Files(spot) if spot.is_folder => &[Get, Head, Put, Post, Delete, Mkcol, Move, Copy],
            Resource::Files(_) => &[Get, Head, Put, Delete, Mkcol, Move, Copy],
            Resource::Uploads => &[Get, Head, Post],
            Resource::Upload(_) => &[Head, Patch, Delete],
        }
    }
}

/// Nothing is there.
pub(crate) fn nothing() -> Refusal {
    Refusal::new(
        Status::NOT_FOUND,
        "The API has nothing under this path. GET /api/openapi.json says what it has.",
    )
}
