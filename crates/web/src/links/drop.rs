//! Uploads by a link: a form of a browser, or `curl -T FILE URL/`.
//!
//! Files are stored as those of accounts are (`operations`), in the owner's home and under its quota.
//! Invariants: a visitor replaces no file, and learns of none: neither that it exists, nor what it is named.

use plimsoll_auth::Error as AuthError;
use plimsoll_operations::{Caller, Error, HomePath, ReceiveError};
use plimsoll_proto::http::{Answer, Request, site};
use plimsoll_store::{Error as StoreError, Path};
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::media_type::is_media_type;
use plimsoll_wire::http::status::Status;
use serde::Serialize;

use super::{LinkTarget, hidden, link_of};
use crate::files::form::{self, Clash};
use crate::files::{expected, refuse_coding};
use crate::refusal::Refusal;
use crate::{RoutedRequest, body, json, page};

/// The JSON of an upload: without the names under which the files are stored.
#[derive(Serialize)]
struct Received {
    files: usize,
}

/// Returns the response to an upload of a visitor that failed. It tells nothing of the owner's files, account
/// and quota.
pub(crate) fn hidden_upload(error: Error) -> Refusal {
    match error {
        // Another client has taken the name meanwhile.
        Error::Store(StoreError::Precondition | StoreError::AlreadyExists | StoreError::IsFolder) => {
            let detail = "The file was not stored. Send it again.";
            Refusal::later(Status::SERVICE_UNAVAILABLE, detail, None)
        }
        Error::Store(StoreError::Quota | StoreError::Full) => Refusal::new(
            Status::INSUFFICIENT_STORAGE,
            "The folder has no room for the file. Tell the person who sent the link.",
        ),
        Error::Store(StoreError::TooManyUploads) => Refusal::later(
            Status::TOO_MANY_REQUESTS,
            "The link takes too many files at once just now. Send the file again later.",
            None,
        ),
        Error::Store(StoreError::NoFolder) => hidden(Error::NOT_FOUND),
        error => hidden(error),
    }
}

/// Answers a visitor of a link for uploads.
pub(super) async fn answer(
    ask: RoutedRequest<'_, '_>,
    method: Method,
    caller: &Caller,
    target: &LinkTarget,
) -> Result<Answer, Refusal> {
    // Its connection stays one of a stranger: the address of a link identifies no person.
    match method {
        Method::Put => put(ask, caller, target).await,
        _ if !matches!(target.rest(), b"" | b"/") => Err(hidden(Error::NOT_FOUND)),
        Method::Post => post(ask, caller, target).await,
        _ => {
            let is_done = ask.called.query.is_some_and(|query| value_of(query, "done").is_some());
            let link = ask.web.operations.present_link(caller).await.map_err(hidden)?;
            if !is_done && link.is_some_and(|link| link.is_used_up()) {
                return Err(AuthError::LinkUsedUp.into());
            }
            Ok(show(ask.request, link_of(caller)?, ask.called.query))
        }
    }
}

fn show(request: &Request<'_>, link: &plimsoll_auth::Link, query: Option<&[u8]>) -> Answer {
    if site::wants_page(request) {
        return page::link::upload(request, link, query);
    }
    let text = "You can send files to this link, but not see the folder. To send one: curl -T FILE URL/\n";
    let answer = Answer::new(Status::OK).field("Content-Type", "text/plain; charset=utf-8");
    let answer = answer.field("Cache-Control", "no-store").field("Vary", "Accept");
    answer.body(plimsoll_proto::http::Body::Bytes(text.as_bytes().to_vec()))
}

/// Returns the linked folder.
fn folder_of(caller: &Caller) -> Result<HomePath, Refusal> {
    Ok(HomePath::own(Path::parse(&link_of(caller)?.path)?))
}

async fn post(ask: RoutedRequest<'_, '_>, caller: &Caller, target: &LinkTarget) -> Result<Answer, Refusal> {
    let media = ask.request.field(Field::ContentType).unwrap_or_default();
    if is_media_type(media, "application/x-www-form-urlencoded") {
        // The password of a link that another tab has unlocked.
        return Ok(page::go_to(target.top()));
    }
    let folder = folder_of(caller)?;
    let stored = form::receive(ask.web, ask.request, (caller, &folder), Clash::Rename).await?;
    if site::wants_page(ask.request) {
        return Ok(page::go_to(format!("{}?done=uploaded", target.top())));
    }
    Ok(json::answer(Status::CREATED, &Received { files: stored.len() }))
}

async fn put(ask: RoutedRequest<'_, '_>, caller: &Caller, target: &LinkTarget) -> Result<Answer, Refusal> {
    let name = target.rest().strip_prefix(b"/").unwrap_or_default();
    if name.is_empty() || name.contains(&b'/') {
        return Err(Refusal::bad("Send a file under a name, without a folder: curl -T FILE URL/"));
    }
    refuse_coding(ask.request)?;
    if ask.request.field(Field::ContentRange).is_some() {
        return Err(Refusal::bad("A link takes whole files. Send the file without Content-Range."));
    }
    let (folder, expected) = (folder_of(caller)?, expected(ask.request)?);
    let modified = body::modified(ask.request)?;
    let mut upload = form::begin_renamed(ask.web, ask.request, (caller, &folder), (name, expected)).await?;
    if let Some(modified) = modified {
        upload.set_modified(modified);
    }
    let upload = body::receive(ask.request, upload).await.map_err(|error| match error {
        ReceiveError::Upload(error) => hidden_upload(error),
        ReceiveError::Connection(error) => error.into(),
    })?;
    upload.commit().await.map_err(hidden_upload)?;
    Ok(json::answer(Status::CREATED, &Received { files: 1 }))
}
