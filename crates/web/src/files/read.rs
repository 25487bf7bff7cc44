//! GET and HEAD of a file or of a folder's listing.
//!
//! Sending files is not done here (`proto` does it). Invariants: the record of a download ends when its
//! last byte is sent, and contains the number of bytes sent; above a share, only the path to it is
//! visible.

use std::io;

use plimsoll_content::{Found, Representation, Root, Visibility};
use plimsoll_io::{Entry, File, FileKind, Io, Stat};
use plimsoll_operations::{Caller, Error, Operation, Operations, Place, Reading, Shown, Transfer};
use plimsoll_proto::http::site::{self, RequestPath, Selection};
use plimsoll_proto::http::{Answer, DecodedTarget, Request};
use plimsoll_store::{Algorithm, Error as StoreError, Files, KnownDigests, Path};
use plimsoll_wire::http::digest::sha256_digest;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use super::{Spot, digests, elsewhere};
use crate::refusal::Refusal;
use crate::{Ask, Web, credentials};

pub(crate) async fn get(ask: Ask<'_, '_>, spot: Spot) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let reading = ask.web.operations.read(&caller, &spot.place, Operation::Download).await?;
    let name = spot.name(&reading.path);
    let path =
        RequestPath { query: ask.called.query, name, path: spot.path, prefix_bytes: spot.prefix_bytes };
    if path.name.is_empty() && !spot.is_folder {
        return Ok(redirect(reading.transfer, &path));
    }
    let known_digests;
    let root = match reading.files.clone() {
        // To compute a digest, the file must be open.
        Files::Here { folder, edition, digests: known } => {
            known_digests = known;
            Root { folder, edition: Some(edition).filter(|_| !digests::are_wanted(ask.request)) }
        }
        Files::Apart(home) => {
            let operations = &ask.web.operations;
            // Boxed: this future is ten times the size of that for a local file. Inline, it would enlarge
            // the enclosing future, which is moved for local files, too.
            let answer = elsewhere::get(ask.request, (operations, &*caller), reading, &home, &path);
            return Box::pin(answer).await;
        }
    };
    // Boxed, like every future here that is rare or large. The enclosing future is allocated for each
    // request, and allocating one kilobyte is cheaper than two.
    match Box::pin(site::lookup(ask.request, &root, &path.name, Visibility::Private).run()).await {
        Ok(Found::File(found)) if reading.shown == Shown::All => {
            if digests::are_wanted(ask.request) {
                let who = (&ask.web.operations, &*caller, &known_digests);
                return Box::pin(send_with_digest(ask.request, found, reading.transfer, who)).await;
            }
            let answer = site::send(ask.request, found);
            Ok(recorded(ask.request, answer, reading.transfer))
        }
        Ok(Found::File(_)) => Ok(reading.transfer.end(Err(Error::NOT_FOUND))?),
        Ok(Found::FolderWithoutSlash) => Ok(redirect(reading.transfer, &path)),
        Ok(Found::Folder) => Box::pin(list(ask.request, caller.io(), &root.folder, reading, &path)).await,
        Err(error) => Ok(reading.transfer.end(Err(why_not(error)))?),
    }
}

/// Answers a read of a file in the caller's own home without blocking. Returns `None` unless the
/// credentials are cached on the connection and the file is in the hot cache.
pub(crate) fn at_hand(web: &Web, request: &mut Request<'_>, called: &DecodedTarget<'_>) -> Option<Answer> {
    let path = called.path.strip_prefix(b"/files")?;
    let is_read = matches!(request.method(), Method::Get | Method::Head);
    if !is_read || !path.starts_with(b"/") || path.ends_with(b"/") || digests::are_wanted(request) {
        return None;
    }
    let caller = credentials::at_hand(web, request)?;
    let place = Place::own(Path::parse(path).ok()?);
    let Files::Here { folder, edition, .. } = web.operations.read_at_hand(&caller, &place)? else {
        return None;
    };
    let root = Root { folder, edition: Some(edition) };
    let found = site::lookup(request, &root, place.path.as_bytes(), Visibility::Private).cached()?;
    let transfer = web.operations.reads_at_hand(&caller, &place);
    let mut answer = site::send(request, found);
    if answer.may_take_long() {
        answer = answer.while_permitted(Some(Box::new(web.operations.permit_at_hand(&caller, &place))));
    }
    Some(recorded(request, answer, transfer))
}

pub(super) fn redirect(mut transfer: Transfer, path: &RequestPath<'_>) -> Answer {
    transfer.becomes(Operation::List);
    transfer.done();
    site::redirect(path).field("Cache-Control", "private, no-cache")
}

/// Sends a file with its digest, if that is cached or would not delay the bytes. A download of a large
/// file does not wait for its digest: a client can request that by a concurrent HEAD.
async fn send_with_digest(
    request: &mut Request<'_>,
    found: Representation,
    mut transfer: Transfer,
    (operations, caller, known): (&Operations, &Caller, &KnownDigests),
) -> Result<Answer, Refusal> {
    let (file, stat) = (found.file().cloned(), found.stat);
    let mut answer = site::send(request, found);
    let is_sent = matches!(answer.status(), Status::OK | Status::PARTIAL_CONTENT);
    if let Some(digest) = known.get(&stat).filter(|_| is_sent) {
        answer = answer.field("Repr-Digest", sha256_digest(&digest));
    } else if let Some(file) = file.filter(|_| is_sent && !digests::delay_bytes(request, stat.size)) {
        let making = async {
            let digest = operations.digest(caller, file, Algorithm::Sha256).await?;
            if let Ok(sha256) = digest.as_slice().try_into() {
                known.note(&stat, sha256);
            }
            Ok(digest)
        };
        match digests::with(request, answer, None, making).await {
            Ok(with_digest) => answer = with_digest,
            Err(error) => return Ok(transfer.end(Err(error))?),
        }
        if let Err(ended) = transfer.check_permit().await {
            return Ok(transfer.end(Err(ended))?);
        }
    }
    Ok(recorded(request, answer, transfer))
}

/// Returns the response, with its record set to end when the outcome is known.
pub(super) fn recorded(request: &Request<'_>, answer: Answer, mut transfer: Transfer) -> Answer {
    match answer.status() {
        Status::OK | Status::PARTIAL_CONTENT if request.method() == Method::Get => {
            let answer = match transfer.take_permit() {
                Some(permit) => answer.while_permitted(Some(permit)),
                None => answer,
            };
            return answer.when_sent(move |bytes, whole| {
                transfer.moved(bytes);
                if whole {
                    transfer.done();
                }
            });
        }
        Status::PRECONDITION_FAILED => transfer.failed("precondition"),
        Status::RANGE_NOT_SATISFIABLE => transfer.failed("bad request"),
        _ => transfer.done(),
    }
    answer
}

/// Returns the selection of a listing: the entries of `shown`, and the page that the query requests.
///
/// # Errors
/// The query requests an invalid page.
pub(super) fn selection(
    request: &Request<'_>,
    path: &RequestPath<'_>,
    shown: Shown,
) -> Result<Selection, Refusal> {
    let page = site::page_of_listing(request, path).map_err(|bad| Refusal::bad(bad.to_string()))?;
    let only = match shown {
        Shown::All => None,
        Shown::Only(names) => Some(names),
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
    root: &File,
    reading: Reading,
    path: &RequestPath<'_>,
) -> Result<Answer, Refusal> {
    let Reading { shown, mut transfer, .. } = reading;
    transfer.becomes(Operation::List);
    let selection = match selection(request, path, shown) {
        Ok(selection) => selection,
        Err(refusal) => {
            transfer.failed("bad request");
            return Err(refusal);
        }
    };
    match site::list(request, io, root, path, Visibility::Private, selection).await {
        Ok(answer) => {
            let answer = answer.while_permitted(transfer.take_permit());
            transfer.done();
            Ok(answer)
        }
        Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
            transfer.failed("too many entries");
            Err(Refusal::later(Status::SERVICE_UNAVAILABLE, site::TOO_MANY_ENTRIES, None))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Err(gone()),
        Err(error) => Ok(transfer.end(Err(why_not(error)))?),
    }
}

/// Maps an error of reading a name: a name that no file can have is not found.
pub(crate) fn why_not(error: io::Error) -> StoreError {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound | Kind::NotADirectory | Kind::InvalidInput | Kind::InvalidFilename => {
            StoreError::NotFound
        }
        _ => error.into(),
    }
}

/// `GET /shared/`: a listing with a folder for each account that shares something with the caller.
pub(crate) async fn owners(ask: Ask<'_, '_>, path: Vec<u8>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let shares = ask.web.operations.shared(&caller).await?;
    let path = RequestPath { query: ask.called.query, name: Vec::new(), path, prefix_bytes: "/shared".len() };
    if !path.path.ends_with(b"/") {
        return Ok(site::redirect(&path).field("Cache-Control", "private, no-cache"));
    }
    let mut entries: Vec<Entry> = Vec::new();
    for share in shares {
        let modified = share.created.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let stat = Stat { kind: FileKind::Folder, size: 0, device: 0, inode: 0, modified, changed: modified };
        // Shares are sorted by owner; an owner has the time of the last share.
        match entries.last_mut().filter(|last| last.name == share.owner.as_bytes()) {
            Some(last) if last.stat.modified < modified => last.stat = stat,
            Some(_) => {}
            None => entries.push(Entry { name: share.owner.into_bytes(), stat }),
        }
    }
    let selection = selection(ask.request, &path, Shown::All)?;
    Ok(site::listed(ask.request, &path, entries, selection))
}
