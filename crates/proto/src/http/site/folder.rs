//! A folder as a response: a redirect to it, or its listing, as a page or as JSON.
//!
//! It reads no folder itself. Invariant: a redirect leads to the same server, whatever the path is.

use plimsoll_content::limits::LISTING_ENTRIES_MAX;
use plimsoll_content::{BadPage, ListingView, ListingWriter, Order, Visibility, etag, page_of};
use plimsoll_io::{Entry, Io, ListingPage};
use plimsoll_store::{Error, Location};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use super::{RequestPath, our_page, wants_listing_page};
use crate::http::answer::{Answer, Body};
use crate::http::request::Request;

/// Redirects to the folder's path with a trailing slash, which makes relative links right.
pub fn redirect(path: &RequestPath<'_>) -> Answer {
    redirect_to(Status::MOVED_PERMANENTLY, &[&*path.path, b"/"].concat(), path.query)
}

/// Redirects to a decoded path. It never begins with two slashes, so the location never names another host.
pub(in crate::http) fn redirect_to(status: Status, path: &[u8], query: Option<&[u8]>) -> Answer {
    let mut location = Vec::new();
    encode_path(path, &mut location);
    if let Some(query) = query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    Answer::new(status).field("Location", location)
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

/// Lists a folder, as HTML or JSON. The listing is generated in slices on behalf of the owner of `io`, in
/// turns with other owners. Returns `None` if the client has disconnected, which cancels it.
///
/// # Errors
/// As [`Location::list`]; [`Error::TooManyEntries`] only if the request selects no page.
pub async fn list(
    request: &mut Request<'_>,
    io: &Io,
    location: &Location,
    path: &RequestPath<'_>,
    visibility: Visibility,
    selection: Selection,
) -> Result<Option<Answer>, Error> {
    let view = view(request, path, visibility, selection);
    let (as_page, page) = (view.as_page, view.page.clone());
    // Of a few names, wherever they sort, a store must not select a page.
    let page = page.filter(|_| view.only.is_none());
    let listing = location.list(io, LISTING_ENTRIES_MAX, page.as_ref(), ListingWriter::new(view));
    let Some(listed) = request.body.while_connected_or_recently(listing).await else { return Ok(None) };
    Ok(Some(answer(as_page, visibility, listed?)))
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
