//! GET and HEAD of a file or of a folder's listing.
//!
//! Sending files is not done here (`proto` does it). Invariants: the audit entry of a download ends when its
//! last byte is sent, and contains the number of bytes sent; HEAD and 304, which send none, have no entry;
//! above a share, only the path to it is visible.

use plimsoll_auth::Permissions;
use plimsoll_content::{Found, Visibility};
use plimsoll_io::{Entry, FileKind, Io, Stat};
use plimsoll_operations::{AuditEntry, Caller, Error, HomePath, Operation, ReadAccess, VisibleEntries};
use plimsoll_proto::http::site::{self, RequestPath, Selection};
use plimsoll_proto::http::{Answer, DecodedTarget, Request};
use plimsoll_store::{Error as StoreError, Location, Path};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use super::{FileTarget, archive, digests};
use crate::refusal::Refusal;
use crate::{RoutedRequest, Web, credentials, page};

pub(crate) async fn get(ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let is_archive = target.is_folder && archive::is_wanted(ask.called.query)?;
    let request = ask.request;
    let mut audit = ask.web.operations.begin_download(&caller, &target.place);
    if request.method() == Method::Head {
        audit.omit();
    }
    let (access, audit) = ask.web.operations.read_audited(&caller, &target.place, audit).await?;
    let path = RequestPath { query: ask.called.query, path: target.path, prefix_bytes: target.prefix_bytes };
    if target.place.path.is_root() && !target.is_folder {
        return Ok(redirect(audit, &path));
    }
    if is_archive {
        return Box::pin(archive::send(request, &caller, (access, audit), &path.path, None)).await;
    }
    if target.is_folder {
        return Box::pin(list(request, &caller, (access, audit), &path)).await;
    }
    let ReadAccess { location, shown, .. } = access;
    if shown != VisibleEntries::All {
        // Above a share there are no files for the caller, only folders on the path to it.
        return match location.stat(caller.io()).await {
            Ok(stat) if stat.kind == FileKind::Folder => Ok(redirect(audit, &path)),
            Ok(_) => Ok(audit.end(Err(Error::NOT_FOUND))?),
            Err(error) => Ok(audit.end(Err(error))?),
        };
    }
    if digests::are_wanted(request) {
        return Box::pin(get_with_digest(request, caller.io(), location, audit, &path)).await;
    }
    // Boxed, like every future here that is rare or large. The enclosing future is allocated for each
    // request, and allocating one kilobyte is cheaper than two.
    let lookup = site::lookup(request, caller.io(), &location, Visibility::Private);
    match Box::pin(lookup.run()).await {
        Ok(Found::File(found)) => {
            let answer = site::send(request, found);
            Ok(audited(request, answer, audit))
        }
        Ok(Found::Folder | Found::FolderWithoutSlash) => Ok(redirect(audit, &path)),
        Err(error) => Ok(audit.end(Err(error))?),
    }
}

/// As [`get`], of a file, with its digest.
async fn get_with_digest(
    request: &mut Request<'_>,
    io: &Io,
    location: Location,
    mut audit: AuditEntry,
    path: &RequestPath<'_>,
) -> Result<Answer, Refusal> {
    match digests::send_with_digest(request, io, location, None).await {
        Ok(Some((answer, _))) => {
            // The permission may have ended while the digest was computed.
            if let Err(ended) = audit.check_permit().await {
                return Ok(audit.end(Err(ended))?);
            }
            Ok(audited(request, answer, audit))
        }
        Ok(None) => Ok(redirect(audit, path)),
        Err(error) => Ok(audit.end(Err(error))?),
    }
}

/// Answers a read of a file in the caller's own home without blocking. Returns `None` unless the
/// credentials are cached on the connection and the file is in the hot cache.
pub(crate) fn try_get(web: &Web, request: &mut Request<'_>, called: &DecodedTarget<'_>) -> Option<Answer> {
    let path = called.path.strip_prefix(b"/files")?;
    let is_read = matches!(request.method(), Method::Get | Method::Head);
    if !is_read || !path.starts_with(b"/") || path.ends_with(b"/") || digests::are_wanted(request) {
        return None;
    }
    let caller = credentials::try_caller(web, request)?;
    let place = HomePath::own(Path::parse(path).ok()?);
    let location = web.operations.try_locate(&caller, &place)?;
    let found = site::lookup(request, caller.io(), &location, Visibility::Private).cached()?;
    let audit = web.operations.begin_download(&caller, &place);
    let mut answer = site::send(request, found);
    if answer.may_take_long() {
        answer = answer.while_permitted(Some(Box::new(web.operations.permit_to_read_own(&caller, &place))));
    }
    Some(audited(request, answer, audit))
}

fn redirect(mut audit: AuditEntry, path: &RequestPath<'_>) -> Answer {
    audit.becomes(Operation::List);
    audit.done();
    site::redirect(path).field("Cache-Control", "private, no-cache")
}

/// Returns the response, with its audit entry set to end when the outcome is known.
pub(crate) fn audited(request: &Request<'_>, answer: Answer, mut audit: AuditEntry) -> Answer {
    match answer.status() {
        Status::OK | Status::PARTIAL_CONTENT if request.method() == Method::Get => {
            let answer = match audit.take_permit() {
                Some(permit) => answer.while_permitted(Some(permit)),
                None => answer,
            };
            return answer.when_sent(move |bytes, whole| {
                audit.moved(bytes);
                if whole {
                    audit.done();
                }
            });
        }
        Status::PRECONDITION_FAILED => audit.failed("precondition"),
        Status::RANGE_NOT_SATISFIABLE => audit.failed("bad request"),
        _ => {
            audit.omit();
            audit.done();
        }
    }
    answer
}

/// Returns the selection of a listing: the entries of `shown`, and the page that the query requests.
///
/// # Errors
/// The query requests an invalid page.
fn selection(
    request: &Request<'_>,
    caller: &Caller,
    path: &RequestPath<'_>,
    (shown, may): (VisibleEntries, Permissions),
) -> Result<Selection, Refusal> {
    let page = site::page_of_listing(request, path).map_err(|bad| Refusal::bad(bad.to_string()))?;
    let only = match shown {
        VisibleEntries::All => None,
        VisibleEntries::Only(names) => Some(names),
    };
    let framed = site::wants_page(request)
        .then(|| page::folder_of_account(request, path, &caller.identity.account, may));
    Ok(Selection { only, page, framed })
}

/// The response to a client that has disconnected.
pub(crate) fn gone() -> Refusal {
    Refusal::later(Status::SERVICE_UNAVAILABLE, "The client has ended the connection.", None)
}

async fn list(
    request: &mut Request<'_>,
    caller: &Caller,
    (access, mut audit): (ReadAccess, AuditEntry),
    path: &RequestPath<'_>,
) -> Result<Answer, Refusal> {
    let ReadAccess { location, shown, may } = access;
    // Above a share, the caller can change nothing.
    let may = if shown == VisibleEntries::All { may } else { Permissions::NONE };
    let selection = match selection(request, caller, path, (shown, may)) {
        Ok(selection) => selection,
        Err(refusal) => {
            audit.becomes(Operation::List);
            audit.failed("bad request");
            return Err(refusal);
        }
    };
    let listed = site::list(request, caller.io(), &location, path, Visibility::Private, selection).await;
    if matches!(listed, Ok(_) | Err(StoreError::TooManyEntries)) {
        audit.becomes(Operation::List);
    }
    match listed {
        Ok(Some(answer)) => {
            let answer = answer.while_permitted(audit.take_permit());
            if answer.status() == Status::NOT_MODIFIED {
                audit.omit();
            }
            audit.done();
            Ok(answer)
        }
        Ok(None) => Err(gone()),
        Err(StoreError::TooManyEntries) => {
            audit.failed("too many entries");
            Err(Refusal::later(Status::SERVICE_UNAVAILABLE, site::TOO_MANY_ENTRIES, None))
        }
        Err(error) => Ok(audit.end(Err(error))?),
    }
}

/// `GET /shared/`: a listing with a folder for each account that shares something with the caller.
pub(crate) async fn owners(ask: RoutedRequest<'_, '_>, path: Vec<u8>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let shares = ask.web.operations.shared(&caller).await?;
    let path = RequestPath { query: ask.called.query, path, prefix_bytes: "/shared".len() };
    if !path.path.ends_with(b"/") {
        return Ok(site::redirect(&path).field("Cache-Control", "private, no-cache"));
    }
    let mut entries: Vec<Entry> = Vec::new();
    for share in shares {
        let modified = share.created.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let kind = FileKind::Folder;
        let stat = Stat { kind, size: 0, device: 0, inode: 0, modified, changed: modified, links: 1 };
        // Shares are sorted by owner; an owner has the time of the last share.
        match entries.last_mut().filter(|last| last.name == share.owner.as_bytes()) {
            Some(last) if last.stat.modified < modified => last.stat = stat,
            Some(_) => {}
            None => entries.push(Entry { name: share.owner.into_bytes(), stat }),
        }
    }
    let selection = selection(ask.request, &caller, &path, (VisibleEntries::All, Permissions::NONE))?;
    Ok(site::listed(ask.request, &path, entries, selection))
}
