//! `GET /api/search`: the entries below a folder whose names have a text.
//!
//! Not here: the search itself. Invariant: an `href` leads to exactly the entry, whatever its name.

use plimsoll_content::WalkEntry;
use plimsoll_io::FileKind;
use plimsoll_proto::http::Answer;
use plimsoll_store::Path;
use plimsoll_wire::calendar::format_rfc3339;
use plimsoll_wire::http::form_urlencoded::{encode, value_of};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encoded_path;
use serde::Serialize;

use crate::files::{FileTarget, gone};
use crate::refusal::Refusal;
use crate::search::Search;
use crate::{RoutedRequest, credentials, json};

/// The JSON of a result.
#[derive(Serialize)]
struct Results {
    entries: Vec<ResultJson>,
    /// The query of a request that continues the search, unless all entries were visited.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_href: Option<String>,
}

#[derive(Serialize)]
struct ResultJson {
    path: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    modified: String,
    etag: String,
    href: String,
}

impl ResultJson {
    /// `folder` is the path in the home of the folder that was searched.
    fn new(folder: &Path, prefix: &[u8], entry: &WalkEntry) -> ResultJson {
        let is_folder = entry.stat.kind == FileKind::Folder;
        let slash: &[u8] = if folder.is_root() { b"" } else { b"/" };
        let path = [folder.as_bytes(), slash, &entry.path].concat();
        ResultJson {
            path: format!("/{}", String::from_utf8_lossy(&path)),
            kind: if is_folder { "folder" } else { "file" },
            size: (!is_folder).then_some(entry.stat.size),
            modified: format_rfc3339(entry.stat.modified),
            etag: plimsoll_content::etag(&entry.stat),
            href: href_of(&[prefix, &path].concat(), is_folder),
        }
    }
}

/// Returns the path of an entry in URLs, percent-encoded.
pub(crate) fn href_of(path: &[u8], is_folder: bool) -> String {
    let mut href = encoded_path(path);
    href.extend(is_folder.then_some('/'));
    href
}

pub(super) async fn find(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let search = Search::from_query(ask.called.query)?;
    let value = |name| ask.called.query.and_then(|query| value_of(query, name));
    let prefix = match value("owner") {
        None => b"/files/".to_vec(),
        Some(owner) => [b"/shared/", &*owner, b"/"].concat(),
    };
    let FileTarget { place, .. } = FileTarget::of([&*prefix, &value("path").unwrap_or_default()].concat())?;
    let found = search.run(ask.web, ask.request, &caller, &place).await?.ok_or_else(gone)?;
    let next_href = found.next.map(|next| next_href(ask.called.query.unwrap_or_default(), &next));
    let entries = found.entries.iter().map(|entry| ResultJson::new(&place.path, &prefix, entry)).collect();
    Ok(json::answer(Status::OK, &Results { entries, next_href }))
}

/// Returns the query that continues a search after `next`.
pub(crate) fn next_href(query: &[u8], next: &[u8]) -> String {
    let fields = query.split(|byte| *byte == b'&').filter(|field| !field.starts_with(b"after="));
    let fields: Vec<_> = fields.map(String::from_utf8_lossy).collect();
    let mut href = format!("?{}&after=", fields.join("&"));
    encode(next, &mut href);
    href
}
