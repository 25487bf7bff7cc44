//! A folder as a response: a redirect to it, or its listing, as a page or as JSON.
//!
//! It reads no folder itself. Invariant: a redirect leads to the same server, whatever the path is.

use std::io;

use plimsoll_content::limits::LISTING_ENTRIES_MAX;
use plimsoll_content::{BadPage, ListingView, ListingWriter, Order, Visibility, etag, page_of};
use plimsoll_io::{Entry, File, FolderListing, Io, ListingPage};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use super::{RequestPath, our_page, wants_listing_page};
use crate::http::answer::{Answer, Body};
use crate::http::request::Request;

/// Redirects to the folder's path with a trailing slash, which makes relative links right. A decoded path
/// never begins with two slashes, so the location never names another host.
pub fn redirect(path: &RequestPath<'_>) -> Answer {
    let mut location = Vec::new();
    encode_path(&path.path, &mut location);
    location.push(b'/');
    if let Some(query) = path.query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    Answer::new(Status::MOVED_PERMANENTLY).field("Location", location)
}

/// The entries of a folder that are listed.
#[derive(Default)]
pub struct Selection {
    /// The names, if not all are listed.
    pub only: Option<Vec<Vec<u8>>>,
    /// The page that the query selects, if it does.
    pub page: Option<ListingPage>,
}

/// Returns the page of a listing that the query selects; `None` for the whole folder, or an HTML page.
///
/// # Errors
/// The query selects an invalid page.
pub fn page_of_listing(
    request: &Request<'_>,
    path: &RequestPath<'_>,
) -> Result<Option<ListingPage>, BadPage> {
    if wants_listing_page(request, path) { Ok(None) } else { page_of(path.query) }
}

/// Lists a folder beneath `root`, as HTML or JSON. The listing is generated in slices on behalf of the owner
/// of `io`, in turns with other owners, and is cancelled when the client disconnects.
///
/// # Errors
/// Any error of reading the folder; [`io::ErrorKind::QuotaExceeded`] if it has too many entries and the
/// request selects no page; [`io::ErrorKind::ConnectionAborted`] if the client has disconnected.
pub async fn list(
    request: &mut Request<'_>,
    io: &Io,
    root: &File,
    path: &RequestPath<'_>,
    visibility: Visibility,
    selection: Selection,
) -> io::Result<Answer> {
    let view = view(request, path, visibility, selection);
    let entries_max = if view.page.is_some() { usize::MAX } else { LISTING_ENTRIES_MAX };
    let as_page = view.as_page;
    let writer = ListingWriter::new(view);
    let listing = FolderListing::of_folder(root.clone(), path.name.clone(), entries_max, writer);
    Ok(answer(as_page, visibility, generate(request, io, listing).await?))
}

/// As [`list`], of entries that a remote store has sent: for a page, those of the page and one more.
///
/// # Errors
/// The queue is full; [`io::ErrorKind::ConnectionAborted`] if the client has disconnected.
pub async fn list_entries(
    request: &mut Request<'_>,
    io: &Io,
    mut entries: Vec<Entry>,
    path: &RequestPath<'_>,
    visibility: Visibility,
    selection: Selection,
) -> io::Result<Answer> {
    let view = view(request, path, visibility, selection);
    let (as_page, limit) = (view.as_page, view.page.as_ref().map(|page| page.limit));
    // The page may show fewer entries, and still not be the last.
    let next = limit.filter(|limit| entries.len() > *limit).and_then(|limit| {
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let last = entries.get(limit - 1).map(|entry| entry.name.clone());
        entries.truncate(limit);
        last
    });
    let writer = ListingWriter::new(view).with_next(next);
    let listing = FolderListing::of_entries(entries, writer);
    Ok(answer(as_page, visibility, generate(request, io, listing).await?))
}

async fn generate(
    request: &mut Request<'_>,
    io: &Io,
    listing: FolderListing<ListingWriter>,
) -> io::Result<Vec<u8>> {
    let made = request.body.while_connected_or_recently(io.list(listing)).await;
    made.unwrap_or_else(|| Err(io::ErrorKind::ConnectionAborted.into()))
}

/// As [`list`], of a few entries that are in no folder.
pub fn listed(
    request: &Request<'_>,
    path: &RequestPath<'_>,
    entries: Vec<Entry>,
    selection: Selection,
) -> Answer {
    let view = view(request, path, Visibility::Private, selection);
    let as_page = view.as_page;
    answer(as_page, Visibility::Private, ListingWriter::new(view).written(entries))
}

/// Returns the form of the listing that a request selects.
fn view(
    request: &Request<'_>,
    path: &RequestPath<'_>,
    visibility: Visibility,
    selection: Selection,
) -> ListingView {
    ListingView {
        path: path.path.get(path.prefix_bytes..).unwrap_or_default().to_vec(),
        order: Order::from_query(path.query),
        as_page: wants_listing_page(request, path),
        visibility,
        only: selection.only,
        page: selection.page,
        etag,
    }
}

/// Returns the response with a generated listing.
fn answer(as_page: bool, visibility: Visibility, written: Vec<u8>) -> Answer {
    let answer = Answer::new(Status::OK).field("Cache-Control", visibility.listing_cache_control());
    if as_page {
        return our_page(answer, written);
    }
    let answer = answer.field("Content-Type", "application/json").field("Vary", "Accept");
    answer.field("X-Content-Type-Options", "nosniff").body(Body::Bytes(written))
}
