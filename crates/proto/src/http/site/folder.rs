//! A folder as an answer: the way to it, or what is in it, as a page or as JSON.
//!
//! It reads nothing. What must hold: a redirect leads to the same server, whatever the path is.

use std::io;

use plimsoll_io::{Entry, File, Work};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use super::listing::{Listing, Order};
use super::{Asked, Manner, etag, our_page, page, wants_listing_page};
use crate::http::answer::{Answer, Body};
use crate::http::limits::LISTING_ENTRIES_MAX;
use crate::http::request::Request;

/// Where the folder is, with the slash at its end that makes relative links right. A decoded path never
/// begins with two slashes, so this never names another host.
pub fn redirect(asked: &Asked<'_>) -> Answer {
    let mut location = Vec::new();
    encode_path(&asked.path, &mut location);
    location.push(b'/');
    if let Some(query) = asked.query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    Answer::new(Status::MOVED_PERMANENTLY).field("Location", location)
}

/// A folder below `root` as the request wants it, a page or JSON; of its entries, those named `only`, if that
/// is said. Where it may take its time and few do so at once: a large folder takes long to read, to sort and
/// to write, and memory too.
///
/// # Errors
/// What keeps the folder from being read; [`io::ErrorKind::QuotaExceeded`] if it has too many entries.
pub async fn list(
    request: &Request<'_>,
    root: &File,
    asked: &Asked<'_>,
    manner: Manner,
    only: Option<Vec<Vec<u8>>>,
) -> io::Result<Answer> {
    let (root, name, show) = (root.clone(), asked.name.clone(), Show::new(request, asked, manner));
    let as_page = show.as_page;
    let shown = request.io.ask(Work::Listings, move |fs| {
        let mut entries = fs.list(&root, &name, LISTING_ENTRIES_MAX)?;
        if let Some(only) = only {
            entries.retain(|entry| only.contains(&entry.name));
        }
        Ok(show.write(entries))
    });
    Ok(answer(as_page, manner, shown.await?))
}

/// As [`list`], of entries that came from elsewhere. Where it may take its time, too.
///
/// # Errors
/// Too much is waiting.
pub async fn list_entries(
    request: &Request<'_>,
    mut entries: Vec<Entry>,
    asked: &Asked<'_>,
    manner: Manner,
    only: Option<Vec<Vec<u8>>>,
) -> io::Result<Answer> {
    let show = Show::new(request, asked, manner);
    let as_page = show.as_page;
    let shown = request.io.ask(Work::Listings, move |_| {
        if let Some(only) = only {
            entries.retain(|entry| only.contains(&entry.name));
        }
        Ok(show.write(entries))
    });
    Ok(answer(as_page, manner, shown.await?))
}

/// As [`list`], of entries that are in no folder.
pub fn listed(request: &Request<'_>, asked: &Asked<'_>, entries: Vec<Entry>) -> Answer {
    let manner = Manner::Private;
    let show = Show::new(request, asked, manner);
    answer(show.as_page, manner, show.write(entries))
}

/// How a request wants a listing.
struct Show {
    path: Vec<u8>,
    order: Order,
    as_page: bool,
    manner: Manner,
}

impl Show {
    fn new(request: &Request<'_>, asked: &Asked<'_>, manner: Manner) -> Show {
        let path = asked.path.get(asked.unshown..).unwrap_or_default().to_vec();
        Show {
            path,
            order: Order::from_query(asked.query),
            as_page: wants_listing_page(request, asked),
            manner,
        }
    }

    fn write(self, entries: Vec<Entry>) -> Vec<u8> {
        let listing = Listing::new(&self.path, entries, self.order, self.manner, etag);
        if self.as_page { page::listing(&listing) } else { listing.to_json() }
    }
}

/// What [`Show`] wrote for the same request.
fn answer(as_page: bool, manner: Manner, shown: Vec<u8>) -> Answer {
    let answer = Answer::new(Status::OK).field("Cache-Control", manner.of_listings());
    if as_page {
        return our_page(answer, shown);
    }
    let answer = answer.field("Content-Type", "application/json").field("Vary", "Accept");
    answer.field("X-Content-Type-Options", "nosniff").body(Body::Bytes(shown))
}
