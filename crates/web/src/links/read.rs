//! GET and HEAD of what a link shows: a page about a file for a browser, its bytes, or the listing of a
//! folder; the whole folder as a zip archive.
//!
//! Sending is not done here (`proto` does it). Invariants: a link with a limit counts a download before the
//! first byte of its body is sent; a file that could have scripts never runs in a browser.

use plimsoll_auth::Link;
use plimsoll_content::{Found, Representation, Visibility, is_displayed};
use plimsoll_io::FileKind;
use plimsoll_operations::{AuditEntry, Caller, Error, HomePath, Operation, Operations, ReadAccess};
use plimsoll_proto::http::site::{self, RequestPath, Selection};
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::Path;
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encoded_path;

use super::{LinkTarget, cookies, hidden, link_of};
use crate::disposition::content_disposition;
use crate::files::{archive, audited, gone};
use crate::refusal::Refusal;
use crate::{RoutedRequest, page};

/// The form in which a client wants a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A page about it.
    Page,
    /// In the browser's window, if its kind has no scripts.
    View,
    /// As a download.
    Download,
}

impl Form {
    /// `?download` and `?view` select it. Otherwise a browser gets the page of a linked file, and views a
    /// file of a linked folder; other clients get the bytes.
    fn of(request: &Request<'_>, query: Option<&[u8]>, is_link_itself: bool) -> Form {
        let names = query.unwrap_or_default().split(|byte| *byte == b'&');
        let names = names.filter_map(|pair| pair.split(|byte| *byte == b'=').next());
        let (mut downloads, mut views) = (false, false);
        names.for_each(|name| match name {
            b"download" => downloads = true,
            b"view" => views = true,
            _ => {}
        });
        match (downloads, views) {
            (true, _) => Form::Download,
            (_, true) => Form::View,
            _ if !site::wants_page(request) => Form::Download,
            _ if is_link_itself => Form::Page,
            _ => Form::View,
        }
    }
}

/// Returns the place of a path below a link.
fn place_of(link: &Link, target: &LinkTarget) -> Result<HomePath, Refusal> {
    Ok(HomePath::own(Path::parse(&[&*link.path, target.rest()].concat())?))
}

pub(super) async fn get(
    ask: RoutedRequest<'_, '_>,
    caller: &Caller,
    target: &LinkTarget,
) -> Result<Answer, Refusal> {
    let link = link_of(caller)?;
    let (request, operations) = (ask.request, &ask.web.operations);
    let place = place_of(link, target)?;
    let is_folder = target.path.ends_with(b"/");
    let is_archive = is_folder && archive::is_wanted(ask.called.query)?;
    let path =
        RequestPath { query: ask.called.query, path: target.path.clone(), prefix_bytes: target.prefix_bytes };
    let mut audit = operations.begin_download(caller, &place);
    if request.method() == Method::Head {
        audit.omit();
    }
    let (access, audit) = operations.read_audited(caller, &place, audit).await.map_err(hidden)?;
    if is_archive {
        return Box::pin(send_archive(operations, request, caller, (access, audit), &place)).await;
    }
    if is_folder {
        return list(request, caller, (access, audit), &path).await;
    }
    let form = Form::of(request, path.query, target.rest().is_empty());
    if form == Form::Page {
        return about(request, caller, (access, audit), &path).await;
    }
    let lookup = site::lookup(request, caller.io(), &access.location, Visibility::Linked);
    match Box::pin(lookup.run()).await {
        Ok(Found::File(found)) => {
            let disposition = disposition(&found, place.path.as_bytes(), form);
            let version = (&place.path, &*found.fields.etag().to_owned());
            let answer = site::send(request, found);
            match count(&ask.web.operations, request, caller, (target, version), &answer).await {
                Ok(cookie) => {
                    let answer = answer.field("Content-Disposition", disposition);
                    let answer =
                        cookie.into_iter().fold(answer, |answer, cookie| answer.field("Set-Cookie", cookie));
                    Ok(audited(request, answer, audit))
                }
                Err(error) => audit.end(Err(error)).map_err(hidden),
            }
        }
        Ok(Found::Folder | Found::FolderWithoutSlash) => Ok(redirect(audit, &path)),
        Err(error) => audit.end(Err(error)).map_err(hidden),
    }
}

fn redirect(mut audit: AuditEntry, path: &RequestPath<'_>) -> Answer {
    audit.becomes(Operation::List);
    audit.done();
    let answer = Answer::new(Status::FOUND).field("Cache-Control", "no-store");
    let mut location = encoded_path(&[&*path.path, b"/"].concat());
    if let Some(query) = path.query {
        location = format!("{location}?{}", String::from_utf8_lossy(query));
    }
    answer.field("Location", location)
}

/// Returns the page about a linked file, or leads to the listing of a linked folder.
async fn about(
    request: &Request<'_>,
    caller: &Caller,
    (access, mut audit): (ReadAccess, AuditEntry),
    path: &RequestPath<'_>,
) -> Result<Answer, Refusal> {
    let link = link_of(caller)?;
    match access.location.stat(caller.io()).await {
        Ok(stat) if stat.kind == FileKind::Folder => Ok(redirect(audit, path)),
        Ok(stat) => {
            audit.omit();
            audit.done();
            Ok(page::link::file(request, link, &stat))
        }
        Err(error) => audit.end(Err(error)).map_err(hidden),
    }
}

async fn list(
    request: &mut Request<'_>,
    caller: &Caller,
    (access, mut audit): (ReadAccess, AuditEntry),
    path: &RequestPath<'_>,
) -> Result<Answer, Refusal> {
    audit.becomes(Operation::List);
    let page = match site::page_of_listing(request, path) {
        Ok(page) => page,
        Err(bad) => {
            audit.failed("bad request");
            return Err(Refusal::bad(bad.to_string()));
        }
    };
    let link = link_of(caller)?;
    let framed = site::wants_page(request).then(|| page::link::folder(request, path, link));
    let selection = Selection { only: None, page, framed };
    let location = &access.location;
    match site::list(request, caller.io(), location, path, Visibility::Linked, selection).await {
        Ok(Some(answer)) => {
            let answer = answer.while_permitted(audit.take_permit());
            audit.done();
            Ok(answer)
        }
        Ok(None) => Err(gone()),
        Err(error) => audit.end(Err(error)).map_err(hidden),
    }
}

/// Returns the response with a folder as an archive. It counts as one download, and cannot be continued.
async fn send_archive(
    operations: &Operations,
    request: &Request<'_>,
    caller: &Caller,
    (access, audit): (ReadAccess, AuditEntry),
    place: &HomePath,
) -> Result<Answer, Refusal> {
    let begun = match archive::begin(caller, access, None).await {
        Ok(archive) if is_limited(caller) && request.method() == Method::Get => {
            operations.count_download(caller, (&place.path, ""), None).await.map(|_| archive)
        }
        begun => begun,
    };
    match begun {
        // Not the path of the request, which has the token.
        Ok(archive) => Ok(archive::answer(request, archive, audit, place.path.as_bytes())),
        Err(error) => audit.end(Err(error)).map_err(hidden),
    }
}

/// Whether the link of a visitor limits its downloads.
fn is_limited(caller: &Caller) -> bool {
    caller.identity.link().is_some_and(|link| link.uses_max.is_some())
}

/// Counts a download if the link limits them and a body is sent. Returns the cookie by which it is
/// continued, unless it continues one itself.
async fn count(
    operations: &Operations,
    request: &Request<'_>,
    caller: &Caller,
    (target, version): (&LinkTarget, (&Path, &str)),
    answer: &Answer,
) -> Result<Option<String>, Error> {
    let is_sent = matches!(answer.status(), Status::OK | Status::PARTIAL_CONTENT);
    if !is_sent || !is_limited(caller) || request.method() != Method::Get {
        return Ok(None);
    }
    let continues = answer.status() == Status::PARTIAL_CONTENT && begins_later(request);
    let counted = cookies::counted(request).filter(|_| continues);
    let grant = operations.count_download(caller, version, counted).await?;
    Ok(grant.map(|grant| cookies::count(request, &encoded_path(&target.path), &grant)))
}

/// Whether a request is for one range that does not begin at the first byte.
fn begins_later(request: &Request<'_>) -> bool {
    let range = request.field(Field::Range).and_then(|range| range.strip_prefix(b"bytes="));
    let Some(range) = range.filter(|range| !range.contains(&b',')) else { return false };
    let first: Vec<u8> = range.iter().copied().take_while(u8::is_ascii_digit).collect();
    first.iter().any(|digit| *digit != b'0')
}

/// Returns the value of Content-Disposition: the name of the file, for clients that know only the link.
fn disposition(found: &Representation, path: &[u8], form: Form) -> String {
    let kind = if form == Form::View && is_displayed(found.media) { "inline" } else { "attachment" };
    content_disposition(kind, path.rsplit(|byte| *byte == b'/').next().unwrap_or_default())
}
