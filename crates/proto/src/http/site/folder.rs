//! A folder as a response: a redirect to it, or its listing, as a page or as JSON.
//!
//! It reads no folder itself. Invariant: a redirect leads to the same server, whatever the path is.

use std::ops::Range;

use plimsoll_content::limits::LISTING_ENTRIES_MAX;
use plimsoll_content::page::{FolderFrame, PublicFolder};
use plimsoll_content::{BadPage, ListingForm, ListingView, ListingWriter, Order, Visibility, etag, page_of};
use plimsoll_io::{Entry, Io, ListingPage};
use plimsoll_store::{Error, Location};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use super::{RequestPath, our_page, page_with, wants_listing_page};
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
    /// The frame of an HTML page, if it is not that of a public folder.
    pub framed: Option<FramedPage>,
}

/// A frame around the HTML page of a folder.
pub struct FramedPage {
    /// The frame.
    pub frame: Box<dyn FolderFrame>,
    /// The fields of the response.
    pub fields: Vec<(&'static str, String)>,
    /// The positions of the shown entries.
    pub window: Range<usize>,
}

/// The form of a response with a listing, and its fields.
enum ListingFields {
    Json,
    PublicPage,
    FramedPage(Vec<(&'static str, String)>),
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
    let (view, fields) = view(request, path, visibility, selection);
    let page = view.page.clone();
    // Of a few names, wherever they sort, a store must not select a page.
    let page = page.filter(|_| view.only.is_none());
    let listing = location.list(io, LISTING_ENTRIES_MAX, page.as_ref(), ListingWriter::new(view));
    let Some(listed) = request.body.while_connected_or_recently(listing).await else { return Ok(None) };
    Ok(Some(answer(fields, visibility, listed?)))
}

/// As [`list`], of a few entries that are in no folder.
pub fn listed(
    request: &Request<'_>,
    path: &RequestPath<'_>,
    entries: Vec<Entry>,
    selection: Selection,
) -> Answer {
    let (view, fields) = view(request, path, Visibility::Private, selection);
    answer(fields, Visibility::Private, ListingWriter::new(view).written(entries))
}

/// Returns the form of the listing that a request selects, and the fields of its response.
fn view(
    request: &Request<'_>,
    path: &RequestPath<'_>,
    visibility: Visibility,
    selection: Selection,
) -> (ListingView, ListingFields) {
    let (form, fields, window) = match selection.framed {
        _ if !wants_listing_page(request, path) => (ListingForm::Json, ListingFields::Json, None),
        None => (ListingForm::Page(Box::new(PublicFolder)), ListingFields::PublicPage, None),
        Some(FramedPage { frame, fields, window }) => {
            (ListingForm::Page(frame), ListingFields::FramedPage(fields), Some(window))
        }
    };
    let view = ListingView {
        path: path.path.get(path.prefix_bytes..).unwrap_or_default().to_vec(),
        order: Order::from_query(path.query),
        form,
        visibility,
        only: selection.only,
        page: selection.page,
        window,
        etag,
    };
    (view, fields)
}

/// Returns the response with a generated listing.
fn answer(fields: ListingFields, visibility: Visibility, written: Vec<u8>) -> Answer {
    let answer = Answer::new(Status::OK);
    let cached = |answer: Answer| answer.field("Cache-Control", visibility.listing_cache_control());
    match fields {
        ListingFields::FramedPage(fields) => {
            let with_fields = |answer: Answer, (name, value)| answer.field(name, value);
            page_with(fields.into_iter().fold(answer, with_fields), written)
        }
        ListingFields::PublicPage => our_page(cached(answer), written),
        ListingFields::Json => cached(answer)
            .field("Content-Type", "application/json")
            .field("Vary", "Accept")
            .field("X-Content-Type-Options", "nosniff")
            .body(Body::Bytes(written)),
    }
}
