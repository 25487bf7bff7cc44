//! PROPFIND: the properties of a file, of a folder, or of a folder and its entries (RFC 4918, section 9.1).
//!
//! Invariants: a folder with its entries is a listing: it needs the same right, has the same audit entry,
//! takes turns with other owners, and ends when the right ends. However many entries there are, the response
//! is generated while it is sent.

use std::time::UNIX_EPOCH;

use plimsoll_content::{EntryLock, PropertyWriter};
use plimsoll_io::{FileKind, Io, Stat};
use plimsoll_operations::{Caller, Error, Operation, ReadAccess, VisibleEntries};
use plimsoll_proto::http::{Answer, Body, BodyError, Request};
use plimsoll_proto::{BodyStream, PendingChunk, StreamedBody, patiently};
use plimsoll_store::ListingStream;
use plimsoll_wire::http::dav::Depth;
use plimsoll_wire::http::dav::multistatus::{
    BEGIN, DavQuota, DavResource, END, FINITE_DEPTH, MEDIA_TYPE, PropertySelection,
};
use plimsoll_wire::http::dav::property::LiveProperty;
use plimsoll_wire::http::dav::request::Propfind;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use super::read::gone;
use super::{FileTarget, lock, refuse_coding};
use crate::limits::XML_BYTES_MAX;
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials};

/// Returns the properties of a file or folder.
pub(crate) async fn answer(ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let (depth, selection) = (depth(ask.request)?, selection(ask.request).await?);
    let operations = &ask.web.operations;
    let (access, mut audit) = operations.read(&caller, &target.place, Operation::List).await?;
    let stat = match stat(caller.io(), &access, &target).await {
        Ok(stat) => stat,
        Err(error) => return Ok(audit.end(Err(error))?),
    };
    let is_folder = stat.kind == FileKind::Folder;
    if !is_folder || depth != Depth::One {
        // Nothing is listed, as by a HEAD.
        audit.omit();
    }
    if is_folder && depth == Depth::Infinity {
        audit.done();
        return Ok(finite_depth());
    }
    let quota = match quota(&ask, &caller, &target, &selection).await {
        Ok(quota) => quota,
        Err(error) => return Ok(audit.end(Err(error))?),
    };
    let locks = match locks(&ask, &caller, &target, &selection).await {
        Ok(locks) => locks,
        Err(error) => return Ok(audit.end(Err(error))?),
    };
    let ReadAccess { location, shown, .. } = access;
    let only = match shown {
        VisibleEntries::All => None,
        VisibleEntries::Only(names) => Some(names),
    };
    let path = path_of(&target, is_folder);
    let (writer, mut out) =
        (PropertyWriter::new(selection, location.clone(), &path, only, quota), BEGIN.to_vec());
    let writer = match locks {
        Some((path, locks)) => writer.with_locks(&path, locks),
        None => writer,
    };
    writer.write_self(name_of(&path), &stat, &mut out);
    if !is_folder || depth == Depth::Zero {
        out.extend_from_slice(END);
        audit.done();
        return Ok(multistatus(Body::Bytes(out)));
    }
    let mut entries = location.list_in_parts(writer);
    let first = ask.request.body.while_connected_or_recently(Box::pin(entries.next(caller.io()))).await;
    let first = match first.ok_or_else(gone)? {
        Ok(part) => part,
        Err(error) => return Ok(audit.end(Err(error))?),
    };
    out.extend_from_slice(&first.bytes);
    let permit = audit.take_permit();
    audit.done();
    if first.is_last {
        out.extend_from_slice(END);
        return Ok(multistatus(Body::Bytes(out)).while_permitted(permit));
    }
    let body = FolderBody { io: caller.io().clone(), entries, first: Some(out), has_ended: false };
    Ok(multistatus(Body::Stream(StreamedBody::new(body))).while_permitted(permit))
}

/// Returns the properties of `/`, which leads to the folders of accounts. Windows requests those first.
pub(crate) async fn root(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let _caller = credentials::caller(ask.web, ask.request).await?;
    let (depth, selection) = (depth(ask.request)?, selection(ask.request).await?);
    Ok(virtual_folder(&selection, depth, b"/", vec![(b"files".to_vec(), None), (b"shared".to_vec(), None)]))
}

/// Returns the properties of `/shared/`, which has a folder for each account that shares something with the
/// caller.
pub(crate) async fn owners(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let (depth, selection) = (depth(ask.request)?, selection(ask.request).await?);
    let owners = match depth {
        Depth::One => ask.web.operations.sharers(&caller).await?.into_iter().collect(),
        Depth::Zero | Depth::Infinity => Vec::new(),
    };
    let entries = owners.into_iter().map(|(owner, last)| {
        let modified = last.duration_since(UNIX_EPOCH).unwrap_or_default();
        (owner.into_bytes(), Some(modified))
    });
    Ok(virtual_folder(&selection, depth, b"/shared/", entries.collect()))
}

/// The name of an entry, and the time of its modification.
type VirtualEntry = (Vec<u8>, Option<std::time::Duration>);

/// Returns the properties of a folder that is on no disk, and of the folders in it.
fn virtual_folder(
    selection: &PropertySelection,
    depth: Depth,
    path: &[u8],
    entries: Vec<VirtualEntry>,
) -> Answer {
    if depth == Depth::Infinity {
        return finite_depth();
    }
    let mut out = BEGIN.to_vec();
    let mut push = |path: &[u8], modified| {
        let mut href = Vec::new();
        encode_path(path, &mut href);
        let name = String::from_utf8_lossy(name_of(path));
        let resource =
            DavResource { href: &href, name: &name, modified, file: None, quota: None, locks: None };
        selection.write(&resource, &mut out);
    };
    push(path, None);
    for (name, modified) in entries.into_iter().filter(|_| depth == Depth::One) {
        push(&[path, &name, b"/"].concat(), modified);
    }
    out.extend_from_slice(END);
    multistatus(Body::Bytes(out))
}

/// The body of a response about a folder and its entries.
struct FolderBody {
    io: Io,
    entries: ListingStream<PropertyWriter>,
    /// The start of the body, which was generated before the head.
    first: Option<Vec<u8>>,
    has_ended: bool,
}

impl BodyStream for FolderBody {
    fn next(&mut self) -> PendingChunk<'_> {
        Box::pin(async move {
            if let Some(first) = self.first.take() {
                return Ok(Some(first));
            }
            if self.has_ended {
                return Ok(None);
            }
            let (io, entries) = (&self.io, &mut self.entries);
            let mut part = patiently(io, async || entries.next(io).await).await.inspect_err(|error| {
                tracing::warn!(%error, "a listing was cut short, because the folder could not be read");
            })?;
            if part.is_last {
                self.has_ended = true;
                part.bytes.extend_from_slice(END);
            }
            Ok(Some(part.bytes))
        })
    }
}

/// Returns the metadata of a target, which must be a folder if its path says so. Above a share, the caller
/// may know of folders only.
pub(super) async fn stat(io: &Io, access: &ReadAccess, target: &FileTarget) -> Result<Stat, Error> {
    let stat = access.location.stat(io).await?;
    match stat.kind {
        FileKind::Folder => Ok(stat),
        FileKind::File if !target.is_folder && access.shown == VisibleEntries::All => Ok(stat),
        FileKind::File | FileKind::Other => Err(Error::NOT_FOUND),
    }
}

/// Returns the path in the home and the locks there, if the request is for them and the server has locks.
async fn locks(
    ask: &RoutedRequest<'_, '_>,
    caller: &Caller,
    target: &FileTarget,
    selection: &PropertySelection,
) -> Result<Option<(Vec<u8>, Vec<EntryLock>)>, Error> {
    if !selection.has(LiveProperty::LockDiscovery) && !selection.has(LiveProperty::SupportedLock) {
        return Ok(None);
    }
    let Some(known) = ask.web.operations.locks_at(caller, &target.place).await? else { return Ok(None) };
    let path = target.place.path.as_bytes();
    let near = known.held(caller.io().wall()).filter(|lock| lock.is_at_or_below(path));
    let locks = near.map(|lock| lock::entry(caller.io(), &target.place, lock)).collect();
    Ok(Some((path.to_vec(), locks)))
}

/// Returns the quota of the caller's own home, if the request is for it.
async fn quota(
    ask: &RoutedRequest<'_, '_>,
    caller: &Caller,
    target: &FileTarget,
    selection: &PropertySelection,
) -> Result<Option<DavQuota>, Error> {
    if !selection.has(LiveProperty::QuotaAvailable) && !selection.has(LiveProperty::QuotaUsed) {
        return Ok(None);
    }
    let known = ask.web.operations.usage_at(caller, &target.place).await?;
    Ok(known.map(|known| {
        // Entries of the trash make room, so they are available.
        let used = known.usage.bytes.saturating_sub(known.trash.usage.bytes);
        DavQuota { available: known.account.quota.bytes.map(|quota| quota.saturating_sub(used)), used }
    }))
}

/// Returns the Depth of a request. "Servers MUST treat a request without a Depth header as if a "Depth:
/// infinity" header was included" (section 9.1).
fn depth(request: &Request<'_>) -> Result<Depth, Refusal> {
    match request.field(Field::Depth).map(Depth::parse) {
        None => Ok(Depth::Infinity),
        Some(Some(depth)) => Ok(depth),
        Some(None) => Err(Refusal::bad("Depth must be 0 or 1.")),
    }
}

async fn selection(request: &mut Request<'_>) -> Result<PropertySelection, Refusal> {
    let propfind = Propfind::parse(&xml(request).await?).map_err(|bad| Refusal::bad(bad.to_string()))?;
    Ok(PropertySelection::of(&propfind))
}

/// Reads the body of a request that has been authenticated.
pub(super) async fn xml(request: &mut Request<'_>) -> Result<Vec<u8>, Refusal> {
    refuse_coding(request)?;
    match request.body.bytes(XML_BYTES_MAX).await {
        Ok(bytes) => Ok(bytes.to_vec()),
        Err(BodyError::TooLong) => {
            Err(Refusal::new(Status::CONTENT_TOO_LARGE, "The body is longer than 64 KiB. Send less."))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns a multi-status response, which is for one account alone.
pub(super) fn multistatus(body: Body) -> Answer {
    xml_answer(Status::MULTI_STATUS).body(body)
}

/// Refuses a listing of all levels, which no client needs and which could take hours.
fn finite_depth() -> Answer {
    xml_answer(Status::FORBIDDEN).body(Body::Bytes(FINITE_DEPTH.to_vec()))
}

pub(super) fn xml_answer(status: Status) -> Answer {
    let answer = Answer::new(status).field("Content-Type", MEDIA_TYPE);
    answer.field("Cache-Control", "no-store").field("X-Content-Type-Options", "nosniff")
}

/// Returns the decoded path of a target; that of a folder ends with a slash.
pub(super) fn path_of(target: &FileTarget, is_folder: bool) -> Vec<u8> {
    let mut path = target.path.clone();
    if is_folder && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path
}

/// Returns the last name of a path.
fn name_of(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
