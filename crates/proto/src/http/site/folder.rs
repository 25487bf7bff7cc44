//! A folder as an answer: the way to it, or what is in it, as a page or as JSON.
//!
//! It reads nothing. What must hold: a redirect leads to the same server, whatever the path is.

use std::io;

use plimsoll_io::Work;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use super::listing::{Listing, Order};
use super::{Asked, Site, etag, our_page, page, wants_page};
use crate::http::answer::{Answer, Body};
use crate::http::limits::LISTING_ENTRIES_MAX;
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

/// The folder as the request wants it, a page or JSON. Where it may take its time and few do so at once: a
/// large folder takes long to read, to sort and to write, and memory too.
pub(super) async fn show(site: &Site, request: &Request<'_>, asked: &Asked<'_>) -> io::Result<Vec<u8>> {
    let (root, name, path) = (site.root.clone(), asked.name.clone(), asked.path.clone());
    let (order, as_page) = (Order::from_query(asked.query), wants_page(request));
    let shown = request.io.ask(Work::Listings, move |fs| {
        let entries = fs.list(&root, &name, LISTING_ENTRIES_MAX)?;
        let listing = Listing::new(&path, entries, order, etag);
        Ok(if as_page { page::listing(&listing) } else { listing.to_json() })
    });
    shown.await
}

/// What is in it, as [`show`] wrote it for the same request.
pub(super) fn answer(request: &Request<'_>, shown: Vec<u8>) -> Answer {
    let answer = Answer::new(Status::OK).field("Cache-Control", "no-cache");
    if wants_page(request) {
        return our_page(answer, shown);
    }
    let answer = answer.field("Content-Type", "application/json").field("Vary", "Accept");
    answer.field("X-Content-Type-Options", "nosniff").body(Body::Bytes(shown))
}
