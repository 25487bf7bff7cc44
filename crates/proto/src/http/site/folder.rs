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

/// What is in it.
pub(super) fn answer(request: &Request<'_>, asked: &Asked<'_>, entries: Vec<Entry>) -> Answer {
    let listing = Listing::new(&asked.path, entries, Order::from_query(asked.query), etag);
    let answer = Answer::new(Status::OK).field("Cache-Control", "no-cache");
    if wants_page(request) {
        return our_page(answer, page::listing(&listing));
    }
    let answer = answer.field("Content-Type", "application/json").field("Vary", "Accept");
    answer.field("X-Content-Type-Options", "nosniff").body(Body::Bytes(listing.to_json()))
}
