//! `?archive=zip`: a folder, or some of its entries, as a zip archive.
//!
//! The archive is generated while it is sent (`proto` does it). Invariants: it has what listings of the
//! folders show; its audit entry is one, and has the bytes sent; an archive that cannot be completed ends
//! with the connection, because its status was sent before.

use std::collections::BTreeSet;

use plimsoll_content::Walk;
use plimsoll_operations::{AuditEntry, Caller, Error, ReadAccess, VisibleEntries};
use plimsoll_proto::http::{Answer, Body, Request};
use plimsoll_proto::{Archive, StreamedBody};
use plimsoll_store::is_name;
use plimsoll_wire::http::form_urlencoded::{decode, value_of};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::media_type::is_media_type;
use plimsoll_wire::http::status::Status;
use serde::Deserialize;

use super::FileTarget;
use crate::disposition::content_disposition;
use crate::limits::ARCHIVE_NAMES_BYTES_MAX;
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

/// The JSON of a request for some entries of a folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    names: Vec<String>,
}

/// Whether the query requests an archive.
///
/// # Errors
/// It requests another kind of archive.
pub(crate) fn is_wanted(query: Option<&[u8]>) -> Result<bool, Refusal> {
    match query.and_then(|query| value_of(query, "archive")).as_deref() {
        None => Ok(false),
        Some(b"zip") => Ok(true),
        Some(_) => Err(Refusal::bad("\"archive\" must be zip.")),
    }
}

/// POST: the entries that the body names, as JSON or as a form.
pub(super) async fn post(ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let names = names(ask.request).await?;
    let audit = ask.web.operations.begin_download(&caller, &target.place);
    let read = ask.web.operations.read_audited(&caller, &target.place, audit).await?;
    send(ask.request, &caller, read, &target.path, Some(names)).await
}

/// Returns the response with the archive of the folder at `path`.
pub(super) async fn send(
    request: &Request<'_>,
    caller: &Caller,
    (access, audit): (ReadAccess, AuditEntry),
    path: &[u8],
    names: Option<BTreeSet<Vec<u8>>>,
) -> Result<Answer, Refusal> {
    match begin(caller, access, names).await {
        Ok(archive) => Ok(answer(request, archive, audit, path)),
        Err(error) => Ok(audit.end(Err(error))?),
    }
}

/// Begins the archive of a folder, or of its entries with these names.
///
/// # Errors
/// As [`Walk::begin`]; [`Error::NotShared`] above a share.
pub(crate) async fn begin(
    caller: &Caller,
    access: ReadAccess,
    names: Option<BTreeSet<Vec<u8>>>,
) -> Result<Archive, Error> {
    if access.shown != VisibleEntries::All {
        return Err(Error::NotShared);
    }
    let walk = Walk::begin(caller.io().clone(), access.location, names).await?;
    Ok(Archive::new(caller.io().clone(), walk))
}

/// Returns the response with an archive, which has the name of the folder at `path`.
pub(crate) fn answer(request: &Request<'_>, archive: Archive, mut audit: AuditEntry, path: &[u8]) -> Answer {
    let answer = Answer::new(Status::OK)
        .field("Content-Type", "application/zip")
        .field("Content-Disposition", content_disposition("attachment", &name_of(path)))
        .field("Accept-Ranges", "none")
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
        .body(Body::Stream(StreamedBody::new(archive)));
    if request.method() == Method::Head {
        audit.omit();
        audit.done();
        return answer;
    }
    let answer = answer.while_permitted(audit.take_permit());
    answer.when_sent(move |bytes, whole| {
        audit.moved(bytes);
        if whole {
            audit.done();
        }
    })
}

/// Returns the name of the archive of the folder at `path`.
fn name_of(path: &[u8]) -> Vec<u8> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let name = path.rsplit(|byte| *byte == b'/').next().filter(|name| !name.is_empty()).unwrap_or(b"files");
    [name, b".zip"].concat()
}

/// Reads the names of the body.
async fn names(request: &mut Request<'_>) -> Result<BTreeSet<Vec<u8>>, Refusal> {
    let kind = request.field(Field::ContentType).unwrap_or_default();
    let names: BTreeSet<Vec<u8>> = if is_media_type(kind, "application/x-www-form-urlencoded") {
        let form = json::body_within(request, ARCHIVE_NAMES_BYTES_MAX, TOO_LONG).await?;
        let values = form.split(|byte| *byte == b'&').filter_map(|field| field.strip_prefix(b"names="));
        let decoded: Option<_> = values.map(decode).collect();
        decoded.ok_or_else(|| Refusal::bad("A name of the form is not percent-encoded."))?
    } else if is_media_type(kind, "application/json") {
        let Names { names } = json::read_within(request, ARCHIVE_NAMES_BYTES_MAX, TOO_LONG).await?;
        names.into_iter().map(String::into_bytes).collect()
    } else {
        return Err(Refusal::new(
            Status::UNSUPPORTED_MEDIA_TYPE,
            "Name the entries as JSON, {\"names\":[…]}, or as a form with a field \"names\" for each.",
        ));
    };
    let is_entry = |name: &Vec<u8>| !name.is_empty() && !name.contains(&b'/') && is_name(name);
    if names.is_empty() || !names.iter().all(is_entry) {
        return Err(Refusal::bad("\"names\" must be names of entries of the folder: one or more, no paths."));
    }
    Ok(names)
}

const TOO_LONG: &str = "The names are longer than 1 MiB together. Download the whole folder instead.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_name_of_its_folder() {
        for (path, name) in [
            (&b"/files/"[..], &b"files.zip"[..]),
            (b"", b"files.zip"),
            (b"/files/my photos/", b"my photos.zip"),
            (b"docs", b"docs.zip"),
        ] {
            assert_eq!(name_of(path), name);
        }
    }
}
