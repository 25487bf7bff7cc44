//! GET and HEAD of a file or of a folder's listing.
//!
//! Sending files is not done here (`proto` does it). Invariants: the record of a download ends when its
//! last byte is sent, and contains the number of bytes sent; HEAD and 304, which send none, have no record;
//! above a share, only the path to it is visible.

use plimsoll_content::{Found, Visibility};
use plimsoll_io::{Entry, FileKind, Io, Stat};
use plimsoll_operations::{Error, HomePath, Operation, OperationRecord, ReadAccess, VisibleEntries};
use plimsoll_proto::http::site::{self, RequestPath, Selection};
use plimsoll_proto::http::{Answer, DecodedTarget, Request};
use plimsoll_store::{Error as StoreError, Location, Path};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use super::{FileTarget, digests};
use crate::refusal::Refusal;
use crate::{RoutedRequest, Web, credentials};

pub(crate) async fn get(ask: RoutedRequest<'_, '_>, spot: FileTarget) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let request = ask.request;
    let mut record = ask.web.operations.begin_download(&caller, &spot.place);
    if request.method() == Method::Head {
        record.omit();
    }
    let (access, record) = ask.web.operations.read_recorded(&caller, &spot.place, record).await?;
    let path = RequestPath { query: ask.called.query, path: spot.path, prefix_bytes: spot.prefix_bytes };
    if spot.place.path.is_root() && !spot.is_folder {
        return Ok(redirect(record, &path));
    }
    if spot.is_folder {
        return Box::pin(list(request, caller.io(), (access, record), &path)).await;
    }
    let ReadAccess { location, shown, .. } = access;
    if shown != VisibleEntries::All {
        // Above a share there are no files for the caller, only folders on the path to it.
        return match location.stat(caller.io()).await {
            Ok(stat) if stat.kind == FileKind::Folder => Ok(redirect(record, &path)),
            Ok(_) => Ok(record.end(Err(Error::NOT_FOUND))?),
            Err(error) => Ok(record.end(Err(error))?),
        };
    }
    if digests::are_wanted(request) {
        return Box::pin(get_with_digest(request, caller.io(), location, record, &path)).await;
    }
    // Boxed, like every future here that is rare or large. The enclosing future is allocated for each
    // request, and allocating one kilobyte is cheaper than two.
    let lookup = site::lookup(request, caller.io(), &location, Visibility::Private);
    match Box::pin(lookup.run()).await {
        Ok(Found::File(found)) => {
            let answer = site::send(request, found);
            Ok(recorded(request, answer, record))
        }
        Ok(Found::Folder | Found::FolderWithoutSlash) => Ok(redirect(record, &path)),
        Err(error) => Ok(record.end(Err(error))?),
    }
}

/// As [`get`], of a file, with its digest.
async fn get_with_digest(
    request: &mut Request<'_>,
    io: &Io,
    location: Location,
    mut record: OperationRecord,
    path: &RequestPath<'_>,
) -> Result<Answer, Refusal> {
    match digests::send_with_digest(request, io, location, None).await {
        Ok(Some((answer, _))) => {
            // The permission may have ended while the digest was computed.
            if let Err(ended) = record.check_permit().await {
                return Ok(record.end(Err(ended))?);
            }
            Ok(recorded(request, answer, record))
        }
        Ok(None) => Ok(redirect(record, path)),
        Err(error) => Ok(record.end(Err(error))?),
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
    let record = web.operations.begin_download(&caller, &place);
    let mut answer = site::send(request, found);
    if answer.may_take_long() {
        answer = answer.while_permitted(Some(Box::new(web.operations.permit_to_read_own(&caller, &place))));
    }
    Some(recorded(request, answer, record))
}

fn redirect(mut record: OperationRecord, path: &RequestPath<'_>) -> Answer {
    record.becomes(Operation::List);
    record.done();
    site::redirect(path).field("Cache-Control", "private, no-cache")
}

/// Returns the response, with its record set to end when the outcome is known.
fn recorded(request: &Request<'_>, answer: Answer, mut record: OperationRecord) -> Answer {
    match answer.status() {
        Status::OK | Status::PARTIAL_CONTENT if request.method() == Method::Get => {
            let answer = match record.take_permit() {
                Some(permit) => answer.while_permitted(Some(permit)),
                None => answer,
            };
            return answer.when_sent(move |bytes, whole| {
                record.moved(bytes);
                if whole {
                    record.done();
                }
            });
        }
        Status::PRECONDITION_FAILED => record.failed("precondition"),
        Status::RANGE_NOT_SATISFIABLE => record.failed("bad request"),
        _ => {
            record.omit();
            record.done();
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
    path: &RequestPath<'_>,
    shown: VisibleEntries,
) -> Result<Selection, Refusal> {
    let page = site::page_of_listing(request, path).map_err(|bad| Refusal::bad(bad.to_string()))?;
    let only = match shown {
        VisibleEntries::All => None,
        VisibleEntries::Only(names) => Some(names),
    };
    Ok(Selection { only, page })
}

/// The response to a client that has disconnected.
pub(super) fn gone() -> Refusal {
    Refusal::later(Status::SERVICE_UNAVAILABLE, "The client has ended the connection.", None)
}

async fn list(
    request: &mut Request<'_>,
    io: &Io,
    (access, mut record): (ReadAccess, OperationRecord),
    path: &RequestPath<'_>,
) -> Result<Answer, Refusal> {
    let ReadAccess { location, shown, .. } = access;
    let selection = match selection(request, path, shown) {
        Ok(selection) => selection,
        Err(refusal) => {
            record.becomes(Operation::List);
            record.failed("bad request");
            return Err(refusal);
        }
    };
    let listed = site::list(request, io, &location, path, Visibility::Private, selection).await;
    if matches!(listed, Ok(_) | Err(StoreError::TooManyEntries)) {
        record.becomes(Operation::List);
    }
    match listed {
        Ok(Some(answer)) => {
            let answer = answer.while_permitted(record.take_permit());
            if answer.status() == Status::NOT_MODIFIED {
                record.omit();
            }
            record.done();
            Ok(answer)
        }
        Ok(None) => Err(gone()),
        Err(StoreError::TooManyEntries) => {
            record.failed("too many entries");
            Err(Refusal::later(Status::SERVICE_UNAVAILABLE, site::TOO_MANY_ENTRIES, None))
        }
        Err(error) => Ok(record.end(Err(error))?),
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
    let selection = selection(ask.request, &path, VisibleEntries::All)?;
    Ok(site::listed(ask.request, &path, entries, selection))
}
