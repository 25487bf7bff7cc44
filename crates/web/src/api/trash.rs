//! `/api/trash`: the caller's trash, listed, restored and deleted for good.
//!
//! It decides nothing ([`plimsoll_operations`] does). Invariants: a response is bounded; following `next`
//! lists every entry that exists throughout.

use plimsoll_io::FileKind;
use plimsoll_operations::Error;
use plimsoll_proto::http::Answer;
use plimsoll_store::limits::TRASH_PAGE_MAX;
use plimsoll_store::{Error as StoreError, Path, TrashId, TrashPage, TrashedEntry};
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encoded_path;
use serde::{Deserialize, Serialize};

use super::shares::{limit_of, path_of};
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

/// Seconds of a day.
pub(crate) const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The JSON of an entry. `url` is the path that it had, percent-encoded.
#[derive(Serialize)]
struct TrashedJson {
    id: String,
    path: String,
    url: String,
    kind: &'static str,
    size: u64,
    deleted: String,
    expires: String,
}

/// A page of the trash, the newest entries first. `next` is the last id, if more follow.
#[derive(Serialize)]
struct Page {
    /// For how many days entries stay; 0 if there is no trash.
    days: u64,
    entries: Vec<TrashedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The path that a restored entry is to get: as `path`, or percent-encoded as `href`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPath {
    path: Option<String>,
    href: Option<String>,
}

/// The path of a restored entry.
#[derive(Serialize)]
struct Restored {
    path: String,
    url: String,
}

/// Returns the URL of a path in the caller's home.
fn url_of(path: &Path) -> String {
    format!("/files/{}", encoded_path(path.as_bytes()))
}

impl From<TrashedEntry> for TrashedJson {
    fn from(entry: TrashedEntry) -> TrashedJson {
        let kind = match entry.kind {
            FileKind::File => "file",
            FileKind::Folder => "folder",
            FileKind::Other => "other",
        };
        TrashedJson {
            path: format!("/{}", entry.path),
            url: url_of(&entry.path),
            kind,
            size: entry.usage.bytes,
            deleted: format_rfc3339(since_1970(entry.id.removed())),
            expires: format_rfc3339(entry.expires),
            id: entry.id.to_string(),
        }
    }
}

pub(super) async fn list(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let query = ask.called.query.unwrap_or_default();
    let limit = match value_of(query, "limit") {
        Some(limit) => limit_of(&limit, TRASH_PAGE_MAX)?,
        None => TRASH_PAGE_MAX,
    };
    let after = value_of(query, "after").map(|id| parse_id(&id)).transpose()?;
    // One more than is shown says whether more follow.
    let mut entries = ask.web.operations.trash(&caller, TrashPage { after, limit: limit + 1 }).await?;
    let is_last = entries.len() <= limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| !is_last).map(|last| last.id.to_string());
    let days = ask.web.operations.trash_info(&caller).await?.time.as_secs() / DAY_SECONDS;
    let entries = entries.into_iter().map(TrashedJson::from).collect();
    Ok(json::answer(Status::OK, &Page { days, entries, next }))
}

pub(super) async fn restore(ask: RoutedRequest<'_, '_>, id: &str) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let has_body = ask.request.field(Field::ContentLength).is_some_and(|length| length != b"0")
        || ask.request.field(Field::TransferEncoding).is_some();
    let to: NewPath = if has_body { json::read(ask.request).await? } else { NewPath::default() };
    let to = match (&to.path, &to.href) {
        (None, None) => None,
        (path, href) => Some(path_of(path.as_deref(), href.as_deref())?),
    };
    let restored = ask.web.operations.restore(&caller, parse_id(id.as_bytes())?, to).await;
    let path = restored.map_err(not_restored)?;
    Ok(json::answer(Status::OK, &Restored { path: format!("/{path}"), url: url_of(&path) }))
}

pub(super) async fn delete(ask: RoutedRequest<'_, '_>, id: &str) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    ask.web.operations.drop_trashed(&caller, Some(parse_id(id.as_bytes())?)).await.map_err(of_entry)?;
    Ok(Answer::new(Status::NO_CONTENT))
}

pub(super) async fn empty(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    ask.web.operations.drop_trashed(&caller, None).await?;
    Ok(Answer::new(Status::NO_CONTENT))
}

fn parse_id(id: &[u8]) -> Result<TrashId, Refusal> {
    TrashId::parse(id).ok_or_else(no_such_entry)
}

fn no_such_entry() -> Refusal {
    Refusal::new(
        Status::NOT_FOUND,
        "There is no such entry in the trash. See those there are: GET /api/trash",
    )
}

/// Returns the refusal of an operation on one entry.
fn of_entry(error: Error) -> Refusal {
    match error {
        Error::Store(StoreError::NotFound) => no_such_entry(),
        other => other.into(),
    }
}

/// Returns the refusal of a restoration.
fn not_restored(error: Error) -> Refusal {
    let detail = match error {
        Error::Store(StoreError::AlreadyExists) => {
            "The path is taken. Restore the entry to another one: send {\"path\": \"/NEW\"}."
        }
        Error::Store(StoreError::NoFolder) => {
            "A file is where a folder of the path was. Restore the entry to another path: send \
             {\"path\": \"/NEW\"}."
        }
        other => return of_entry(other),
    };
    Refusal::new(Status::CONFLICT, detail)
}
