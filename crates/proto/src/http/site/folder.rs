//! A folder as an answer: the way to it, or what is in it, as a page or as JSON.
//!
//! It reads nothing. What must hold: a redirect leads to the same server, whatever the path is.

use plimsoll_io::Entry;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use super::listing::{Listing, Order};
use super::{Asked, etag, our_page, page, wants_page};
use crate::http::answer::{Answer, Body};
use crate::http::request::Request;

/// Where the folder is, with the slash at its end that makes relative links right. A decoded path never
/// begins with two slashes, so this never names another host.
pub(super) fn redirect(asked: &Asked<'_>) -> Answer {
    let mut location = Vec::new();
    encode_path(&asked.path, &mut location);
    location.push(b'/');
    if let Some(query) = asked.query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    Answer::new(Status::MOVED_PERMANENTLY).field("Location", location)
}

/// How a folder is to be shown.
pub(super) struct Shown {
    path: Vec<u8>,
    order: Order,
    as_page: bool,
}

impl Shown {
    /// What a request asks for.
    pub(super) fn of(request: &Request<'_>, asked: &Asked<'_>) -> Shown {
        let (path, order) = (asked.path.clone(), Order::from_query(asked.query));
        Shown { path, order, as_page: wants_page(request) }
    }

    /// The entries as a page or as JSON.
    pub(super) fn write(&self, entries: Vec<Entry>) -> Vec<u8> {
        let listing = Listing::new(&self.path, entries, self.order, etag);
        if self.as_page { page::listing(&listing) } else { listing.to_json() }
    }
}

/// What is in it, shown as [`Shown::of`] the same request.
pub(super) fn answer(request: &Request<'_>, shown: Vec<u8>) -> Answer {
    let answer = Answer::new(Status::OK).field("Cache-Control", "no-cache");
    if wants_page(request) {
        return our_page(answer, shown);
    }
    let answer = answer.field("Content-Type", "application/json").field("Vary", "Accept");
    answer.field("X-Content-Type-Options", "nosniff").body(Body::Bytes(shown))
}
