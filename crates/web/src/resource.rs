//! Maps a path to a resource and its methods.
//!
//! It answers nothing. Invariant: every path under the API's prefixes must be one resource or none,
//! whatever the method.

use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use crate::api::Point;
use crate::files::FileTarget;
use crate::links::LinkTarget;
use crate::page::View;
use crate::refusal::Refusal;

/// A resource of the API, or a view of the page.
pub(crate) enum Resource {
    /// `/`: the page's start, and over WebDAV the way to the accounts' files.
    Root,
    /// A view of the page.
    Page(View),
    /// An endpoint that speaks JSON.
    Api(Point),
    /// The list of owners who share something with the caller, and the request's path.
    Owners(Vec<u8>),
    /// A file or folder.
    Files(FileTarget),
    /// A public link, or a path below one.
    Link(LinkTarget),
    /// The caller's pending uploads.
    Uploads,
    /// One of the caller's pending uploads, by its id.
    Upload(Vec<u8>),
}

impl Resource {
    /// Returns the resource of a decoded path.
    pub(crate) fn of(path: Vec<u8>) -> Result<Resource, Refusal> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if let Some(target) = LinkTarget::of(&path) {
            return Ok(Resource::Link(target));
        }
        Ok(match &*path {
            b"/" => Resource::Root,
            b"/app" => Resource::Page(View::Start),
            [b'/', b'a', b'p', b'p', b'/', rest @ ..] => Resource::Page(View::of(&text(rest))),
            b"/uploads" | b"/uploads/" => Resource::Uploads,
            b"/shared" | b"/shared/" => Resource::Owners(path),
            [b'/', b'u', b'p', b'l', b'o', b'a', b'd', b's', b'/', id @ ..] => Resource::Upload(id.to_vec()),
            [b'/', b'a', b'p', b'i', b'/', rest @ ..] => Resource::Api(Point::of(&text(rest))?),
            _ => Resource::Files(FileTarget::of(path)?),
        })
    }

    /// Returns the methods of the resource, besides OPTIONS.
    pub(crate) fn methods(&self) -> &'static [Method] {
        use Method::{
            Copy, Delete, Get, Head, Lock, Mkcol, Move, Patch, Post, Propfind, Proppatch, Put, Unlock,
        };
        match self {
            Resource::Root | Resource::Owners(_) => &[Get, Head, Propfind],
            Resource::Page(view) => view.methods(),
            Resource::Api(point) => point.methods(),
            Resource::Files(spot) if spot.is_folder => {
                &[Get, Head, Put, Post, Delete, Mkcol, Move, Copy, Propfind, Proppatch, Lock, Unlock]
            }
            Resource::Files(_) => {
                &[Get, Head, Put, Delete, Mkcol, Move, Copy, Propfind, Proppatch, Lock, Unlock]
            }
            Resource::Link(_) => &[Get, Head, Put, Post],
            Resource::Uploads => &[Get, Head, Post],
            Resource::Upload(_) => &[Head, Patch, Delete],
        }
    }

    /// Whether WebDAV clients find files here.
    pub(crate) fn is_for_webdav(&self) -> bool {
        matches!(self, Resource::Root | Resource::Owners(_) | Resource::Files(_))
    }

    /// Whether the method takes a form, which browsers send for a page of any site.
    pub(crate) fn is_form(&self, method: Method) -> bool {
        matches!(self, Resource::Files(_) | Resource::Page(_)) && method == Method::Post
    }
}

/// Returns the refusal for a path without a resource.
pub(crate) fn nothing() -> Refusal {
    Refusal::new(
        Status::NOT_FOUND,
        "The API has nothing under this path. GET /api/openapi.json says what it has.",
    )
}
