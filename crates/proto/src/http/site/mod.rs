//! Sites over HTTP, and how any folder's files become responses.
//!
//! It checks no permission: accounts' files are sent by [`send`] and [`list`] too, after that check.
//! Lookups, conditions, ranges and listings are in `plimsoll_content`. Invariant: a response has the bytes
//! that its head describes.

mod file;
mod folder;

use plimsoll_content::{Found, Lookup, Site, Visibility, is_hidden, not_found_page, page};
use plimsoll_io::{Io, JobOwner};
use plimsoll_store::{Error, Location};
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::negotiate::{prefers_html, prefers_json};
use plimsoll_wire::http::problem_code::ProblemCode;
use plimsoll_wire::http::status::Status;

pub use self::file::send;
pub(super) use self::folder::redirect_to;
pub use self::folder::{FramedPage, Selection, list, listed, page_of_listing, redirect};
use super::answer::{Answer, Body};
use super::limits::RETRY_AFTER_SECONDS;
use super::problem::coded_problem;
use super::request::Request;

/// The refusal of a listing of a folder that is too large for it.
pub const TOO_MANY_ENTRIES: &str = "The folder has too many entries to be listed at once. List it in pages: \
                                    ?format=json&limit=1000, then as next_href says.";

/// The requested path of a file or folder.
pub struct RequestPath<'a> {
    /// The query: what follows the `?`.
    pub query: Option<&'a [u8]>,
    /// The whole decoded path.
    pub path: Vec<u8>,
    /// Length in bytes of the prefix that a listing does not show.
    pub prefix_bytes: usize,
}

/// Returns the lookup of a file or folder for a request.
/// It is work on behalf of the owner of `io`.
pub fn lookup<'a>(
    request: &Request<'a>,
    io: &'a Io,
    location: &'a Location,
    visibility: Visibility,
) -> Lookup<'a> {
    let head = (request.head, request.block);
    Lookup { io, hot: request.hot, location, visibility, head, wants_digest: false }
}

/// Returns the response for `name` in a site: relative, with a trailing slash if the path has one.
pub(super) async fn answer(
    site: &Site,
    request: &mut Request<'_>,
    name: Vec<u8>,
    path: RequestPath<'_>,
) -> Answer {
    if is_hidden(&name) {
        return not_there(site, request).await;
    }
    if name.is_empty() && !path.path.ends_with(b"/") {
        // The root of a site under a prefix, requested without a trailing slash.
        return redirect(&path);
    }
    let location = site.location(name);
    match lookup(request, request.io, &location, Visibility::Public).run().await {
        Ok(Found::File(found)) => cached_by(site.cache_control(&path.path), send(request, found)),
        Ok(Found::Folder) => list_folder(site, request, &location, &path).await,
        Ok(Found::FolderWithoutSlash) => redirect(&path),
        Err(error) => failed(site, request, &error).await,
    }
}

/// Adds Cache-Control to a response about a file: the same to all that RFC 9110, section 15.4.5, names.
fn cached_by(rule: Option<&str>, answer: Answer) -> Answer {
    let is_about_file =
        [Status::OK, Status::PARTIAL_CONTENT, Status::NOT_MODIFIED].contains(&answer.status());
    match rule.filter(|_| is_about_file) {
        Some(value) => answer.field("Cache-Control", value),
        None => answer,
    }
}

/// Lists a folder of a site. Guests of one address wait for each other, and delay no other clients.
async fn list_folder(
    site: &Site,
    request: &mut Request<'_>,
    location: &Location,
    path: &RequestPath<'_>,
) -> Answer {
    let page = match page_of_listing(request, path) {
        Ok(page) => page,
        Err(bad) => return refused(request, Status::BAD_REQUEST, &bad.to_string()),
    };
    let io = request.io.for_owner(JobOwner::guest(request.peer));
    let selection = Selection { only: None, page, framed: None };
    match list(request, &io, location, path, Visibility::Public, selection).await {
        Ok(Some(answer)) => answer,
        Ok(None) => busy(request),
        Err(error) => failed(site, request, &error).await,
    }
}

fn busy(request: &Request<'_>) -> Answer {
    refused(request, Status::SERVICE_UNAVAILABLE, "The server is busy; try again shortly.")
        .field_display("Retry-After", RETRY_AFTER_SECONDS)
}

/// Returns the response for a name that could not be opened or read.
async fn failed(site: &Site, request: &Request<'_>, error: &Error) -> Answer {
    match error {
        Error::NotFound => not_there(site, request).await,
        Error::Denied(_) => refused(
            request,
            Status::FORBIDDEN,
            "The server may not read this file; its operator can change that.",
        ),
        Error::Busy => busy(request),
        Error::TooManyEntries => refused(request, Status::SERVICE_UNAVAILABLE, TOO_MANY_ENTRIES)
            .field_display("Retry-After", RETRY_AFTER_SECONDS),
        _ => {
            tracing::error!(%error, "a site's file could not be read");
            refused(
                request,
                Status::INTERNAL_SERVER_ERROR,
                "The file could not be read; the server's log says why.",
            )
        }
    }
}

/// Returns a 404 response: the site's own page if it has one, otherwise the server's.
async fn not_there(site: &Site, request: &Request<'_>) -> Answer {
    let own = if wants_page(request) { not_found_page(site, request.io).await } else { None };
    match own {
        Some(page) => page_with(Answer::new(Status::NOT_FOUND), page),
        None => refused(request, Status::NOT_FOUND, "There is no such file here."),
    }
}

/// Returns the page under `/` of a server with neither a site there nor accounts.
pub fn start_page() -> Answer {
    our_page(Answer::new(Status::OK), page::start()).field("Cache-Control", "no-cache")
}

/// Returns an error as a page for browsers and as a problem for programs.
pub fn refused(request: &Request<'_>, status: Status, detail: &str) -> Answer {
    refused_with(request, status, detail, None)
}

/// As [`refused`], with a code for programs.
pub fn refused_with(
    request: &Request<'_>,
    status: Status,
    detail: &str,
    code: Option<ProblemCode>,
) -> Answer {
    if wants_page(request) {
        our_page(Answer::new(status), page::error(status, detail))
    } else {
        // A 404 may be cached by default: a browser must not get the response for a program.
        coded_problem(status, detail, code).field("Vary", "Accept")
    }
}

/// Whether the client prefers a page to a description for programs, as a browser does that opens a link.
pub fn wants_page(request: &Request<'_>) -> bool {
    request.field(Field::Accept).is_some_and(prefers_html) && !is_wget(request)
}

/// Whether the client is wget, which follows the links of a plain listing. Wget2 sends a browser's Accept.
fn is_wget(request: &Request<'_>) -> bool {
    request.field(Field::UserAgent).is_some_and(|agent| agent.starts_with(b"Wget"))
}

/// Whether a folder is listed as a page: unless the query has `format=json`, or Accept prefers JSON.
fn wants_listing_page(request: &Request<'_>, path: &RequestPath<'_>) -> bool {
    let mut parameters = path.query.unwrap_or_default().split(|byte| *byte == b'&');
    let is_json = parameters.any(|parameter| parameter == b"format=json");
    !is_json && !request.field(Field::Accept).is_some_and(prefers_json)
}

/// Returns a response with a page. The caller has added the policy for it.
pub fn page_with(answer: Answer, page: Vec<u8>) -> Answer {
    let answer = answer.field("Content-Type", "text/html; charset=utf-8").field("Vary", "Accept");
    answer.field("X-Content-Type-Options", "nosniff").body(Body::Bytes(page))
}

/// Returns a generated page, in which nothing may load or run anything. The forms of listings sort them.
fn our_page(answer: Answer, page: Vec<u8>) -> Answer {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                          form-action 'self'; frame-ancestors 'self'";
    page_with(answer.field("Content-Security-Policy", POLICY), page)
}
