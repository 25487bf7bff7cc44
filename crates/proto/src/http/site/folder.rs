//! A folder as an answer: the way to it, or what is in it, as a page or as JSON.
//!
//! It reads nothing. What must hold: a redirect leads to the same server, whatever the path is.

use std::io;

use plimsoll_io::{Entry, File, FolderListing, Io, ListingPage};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use super::listing::{BadPage, ListingWriter, Order, View, page_of};
use super::{Asked, Manner, etag, our_page, wants_listing_page};
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

/// What of a folder is listed.
#[derive(Default)]
pub struct Selection {
    /// The names, if not all are.
    pub only: Option<Vec<Vec<u8>>>,
    /// The part that the query asks for, if it does.
    pub page: Option<ListingPage>,
}

/// The page of a listing that the query asks for; none if the folder is to be shown as a whole, or to people.
///
/// # Errors
/// The query asks for a page that there is not.
pub fn page_of_listing(request: &Request<'_>, asked: &Asked<'_>) -> Result<Option<ListingPage>, BadPage> {
    if wants_listing_page(request, asked) { Ok(None) } else { page_of(asked.query) }
}

/// A folder below `root` as the request wants it, a page or JSON. It is made where it may take its time, in
/// turns with others than the owner of `io`, and no further once the client is gone.
///
/// # Errors
/// What keeps the folder from being read; [`io::ErrorKind::QuotaExceeded`] if it has too many entries and is
/// not asked for in pages; [`io::ErrorKind::ConnectionAborted`] if the client is gone.
pub async fn list(
    request: &mut Request<'_>,
    io: &Io,
    root: &File,
    asked: &Asked<'_>,
    manner: Manner,
    selection: Selection,
) -> io::Result<Answer> {
    let view = view(request, asked, manner, selection);
    let entries_max = if view.page.is_some() { usize::MAX } else { LISTING_ENTRIES_MAX };
    let as_page = view.as_page;
    let writer = ListingWriter::new(view);
    let listing = FolderListing::of_folder(root.clone(), asked.name.clone(), entries_max, writer);
    Ok(answer(as_page, manner, made(request, io, listing).await?))
}

/// As [`list`], of entries that came from elsewhere: of a page, those of the page and one more.
///
/// # Errors
/// Too much is waiting; [`io::ErrorKind::ConnectionAborted`] if the client is gone.
pub async fn list_entries(
    request: &mut Request<'_>,
    io: &Io,
    mut entries: Vec<Entry>,
    asked: &Asked<'_>,
    manner: Manner,
    selection: Selection,
) -> io::Result<Answer> {
    let view = view(request, asked, manner, selection);
    let (as_page, limit) = (view.as_page, view.page.as_ref().map(|page| page.limit));
    // The page may show fewer of them: it is not the last one for that.
    let next = limit.filter(|limit| entries.len() > *limit).and_then(|limit| {
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let last = entries.get(limit - 1).map(|entry| entry.name.clone());
        entries.truncate(limit);
        last
    });
    let writer = ListingWriter::new(view).with_next(next);
    let listing = FolderListing::of_entries(entries, writer);
    Ok(answer(as_page, manner, made(request, io, listing).await?))
}

async fn made(
    request: &mut Request<'_>,
    io: &Io,
    listing: FolderListing<ListingWriter>,
) -> io::Result<Vec<u8>> {
    let made = request.body.while_connected_or_recently(io.list(listing)).await;
    made.unwrap_or_else(|| Err(io::ErrorKind::ConnectionAborted.into()))
}

/// As [`list`], of entries that are few and in no folder.
pub fn listed(request: &Request<'_>, asked: &Asked<'_>, entries: Vec<Entry>, selection: Selection) -> Answer {
    let view = view(request, asked, Manner::Private, selection);
    let as_page = view.as_page;
    answer(as_page, Manner::Private, ListingWriter::new(view).written(entries))
}

/// How a request wants a listing.
fn view(request: &Request<'_>, asked: &Asked<'_>, manner: Manner, selection: Selection) -> View {
    View {
        path: asked.path.get(asked.unshown..).unwrap_or_default().to_vec(),
        order: Order::from_query(asked.query),
        as_page: wants_listing_page(request, asked),
        manner,
        only: selection.only,
        page: selection.page,
        etag,
    }
}

/// The answer with what a [`ListingWriter`] wrote for the same request.
fn answer(as_page: bool, manner: Manner, written: Vec<u8>) -> Answer {
    let answer = Answer::new(Status::OK).field("Cache-Control", manner.of_listings());
    if as_page {
        return our_page(answer, written);
    }
    let answer = answer.field("Content-Type", "application/json").field("Vary", "Accept");
    answer.field("X-Content-Type-Options", "nosniff").body(Body::Bytes(written))
}
