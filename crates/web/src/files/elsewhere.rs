//! GET and HEAD of a path in a remote store.
//!
//! The store selects the bytes to send, by the same code as for local files: conditions, ranges and
//! digests refer to the file that is open there. Invariants: a GET of a file is one request to the
//! store; fields about the store itself are not forwarded.

use std::io::ErrorKind;

use plimsoll_content::Visibility;
use plimsoll_content::limits::LISTING_ENTRIES_MAX;
use plimsoll_io::{FileKind, Io};
use plimsoll_operations::{Caller, Error, Operation, Operations, Reading, Shown, Transfer};
use plimsoll_proto::http::site::{self, RequestPath};
use plimsoll_proto::http::{Answer, Body, Request};
use plimsoll_store::apart::{Contents, Elsewhere, STAT, Wanted};
use plimsoll_store::{Error as StoreError, Path};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::status::Status;

use super::digests;
use super::read::{gone, recorded, redirect, selection, why_not};
use crate::refusal::Refusal;

/// The request fields that select the response.
const CHOOSING: [Field; 7] = [
    Field::Accept,
    Field::IfMatch,
    Field::IfModifiedSince,
    Field::IfNoneMatch,
    Field::IfRange,
    Field::IfUnmodifiedSince,
    Field::Range,
];

/// Response fields of the connection to the store, or from the store to its front, which are not
/// forwarded.
const OWN: [&str; 8] =
    ["Connection", "Content-Length", "Date", "Keep-Alive", STAT, "Server", "Transfer-Encoding", "Trailer"];

pub(super) async fn get(
    request: &mut Request<'_>,
    who: (&Operations, &Caller),
    reading: Reading,
    home: &Elsewhere,
    asked: &RequestPath<'_>,
) -> Result<Answer, Refusal> {
    let is_folder = asked.name.is_empty() || asked.name.ends_with(b"/");
    if is_folder {
        return list(request, who.1.io(), reading, home, asked).await;
    }
    let Reading { path, shown, mut transfer, .. } = reading;
    if shown != Shown::All {
        // Above a share there are no files for the caller, only folders on the path to it.
        let stat = home.stat(who.1.io(), &path).await;
        return match stat.map(|stat| stat.kind) {
            Ok(FileKind::Folder) => Ok(redirect(transfer, asked)),
            Ok(_) => Ok(transfer.end(Err(Error::NOT_FOUND))?),
            Err(error) => Ok(transfer.end(Err(not_read(error)))?),
        };
    }
    let fetched = match fetch(request, who, home, &path).await {
        Ok(contents) if digests::are_wanted(request) => transfer.check_permit().await.map(|()| contents),
        fetched => fetched,
    };
    match fetched {
        Ok(contents) => Ok(relayed(request, contents, transfer)),
        Err(Error::Store(StoreError::IsFolder)) => Ok(redirect(transfer, asked)),
        Err(Error::Store(error)) => Ok(transfer.end(Err(not_read(error)))?),
        Err(error) => Ok(transfer.end(Err(error))?),
    }
}

/// Requests the file from the store, with the request's fields.
async fn fetch(
    request: &mut Request<'_>,
    (operations, caller): (&Operations, &Caller),
    home: &Elsewhere,
    path: &Path,
) -> Result<Contents, Error> {
    let io = caller.io();
    if !digests::are_wanted(request) {
        return Ok(home.get(io, path, wanted(request)).await?);
    }
    let _turn = operations.digest_turn(caller)?;
    let mut with_digest = wanted(request);
    with_digest.is_long = true;
    for value in request.head.all(request.block, Field::WantReprDigest) {
        with_digest.fields.push(("Want-Repr-Digest", text(value)));
    }
    let plain = wanted(request);
    match request.body.while_connected(None, home.get(io, path, with_digest)).await {
        // A client that closes its side gets no digest, as for a local file.
        None => Ok(home.get(io, path, plain).await?),
        Some(got) => Ok(got?),
    }
}

fn wanted(request: &Request<'_>) -> Wanted {
    let mut wanted = Wanted { head_only: request.method() == Method::Head, ..Wanted::default() };
    for field in CHOOSING {
        for value in request.head.all(request.block, field) {
            wanted.fields.push((field.name(), text(value)));
        }
    }
    wanted
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// Returns the store's response as this server's.
fn relayed(request: &Request<'_>, contents: Contents, transfer: Transfer) -> Answer {
    let status = contents.status();
    let mut answer = Answer::new(status);
    for (name, value) in contents.fields() {
        let is_own = OWN.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name));
        if let Ok(name) = std::str::from_utf8(name)
            && !is_own
        {
            answer = answer.field(name, value);
        }
    }
    if status != Status::NOT_MODIFIED {
        answer = answer.body(Body::Contents(Box::new(contents)));
    }
    recorded(request, answer, transfer)
}

async fn list(
    request: &mut Request<'_>,
    io: &Io,
    reading: Reading,
    home: &Elsewhere,
    asked: &RequestPath<'_>,
) -> Result<Answer, Refusal> {
    let Reading { path, shown, mut transfer, .. } = reading;
    let selection = match selection(request, asked, shown) {
        Ok(selection) => selection,
        Err(refusal) => {
            transfer.becomes(Operation::List);
            transfer.failed("bad request");
            return Err(refusal);
        }
    };
    // Above a share, only a few names are listed, wherever they sort, so the store must not select a
    // page.
    let page = selection.page.as_ref().filter(|_| selection.only.is_none());
    let listing = home.list(io, &path, LISTING_ENTRIES_MAX, page);
    let Some(listed) = request.body.while_connected_or_recently(listing).await else {
        transfer.becomes(Operation::List);
        return Err(gone());
    };
    let entries = match listed {
        Ok(entries) => entries,
        Err(error) => {
            if matches!(error, StoreError::TooManyEntries) {
                transfer.becomes(Operation::List);
            }
            return Ok(transfer.end(Err(not_read(error)))?);
        }
    };
    transfer.becomes(Operation::List);
    match site::list_entries(request, io, entries, asked, Visibility::Private, selection).await {
        Ok(answer) => {
            let answer = answer.while_permitted(transfer.take_permit());
            transfer.done();
            Ok(answer)
        }
        Err(error) if error.kind() == ErrorKind::ConnectionAborted => Err(gone()),
        Err(error) => Ok(transfer.end(Err(why_not(error)))?),
    }
}

/// Maps an error of reading a name: a name that no file can have is not found.
fn not_read(error: StoreError) -> Error {
    match error {
        StoreError::NotFolder | StoreError::Path(_) => Error::NOT_FOUND,
        other => other.into(),
    }
}
