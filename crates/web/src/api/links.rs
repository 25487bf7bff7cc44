//! `/api/links`: make public links, end them, list them.
//!
//! The rights of a link are not checked here. Invariants: the `url` of a link is in the response to its
//! creation only; a response is bounded; following `next` lists every link that exists throughout.

use plimsoll_auth::{Error as AuthError, Link, LinkPermission, NewLink, Secret};
use plimsoll_operations::Error;
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::Error as StoreError;
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use plimsoll_wire::http::origin::parse_origin;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encoded_path;
use serde::{Deserialize, Serialize};

use super::shares::{Paging, expiry, path_of};
use crate::limits::LINKS_PER_PAGE_MAX;
use crate::page::cookie::is_over_https;
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

/// A new link. A path that is not UTF-8 must be sent as `href`, percent-encoded; other paths by either.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    path: Option<String>,
    href: Option<String>,
    permission: LinkPermission,
    expires: Option<String>,
    password: Option<String>,
    downloads: Option<u64>,
    files: Option<u64>,
    bytes: Option<u64>,
}

/// The JSON of a link.
#[derive(Serialize)]
struct LinkJson {
    id: String,
    path: String,
    href: String,
    permission: LinkPermission,
    created: String,
    expires: Option<String>,
    password: bool,
    downloads: Option<u64>,
    downloaded: u64,
    files: Option<u64>,
    uploaded: u64,
    bytes: Option<u64>,
    uploaded_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// A page of links, in the order of their ids. `next` is the last id, if more follow.
#[derive(Serialize)]
struct Page {
    links: Vec<LinkJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<Link> for LinkJson {
    fn from(link: Link) -> LinkJson {
        let reads = link.permission == LinkPermission::Read;
        LinkJson {
            path: format!("/{}", String::from_utf8_lossy(&link.path)),
            href: format!("/{}", encoded_path(&link.path)),
            permission: link.permission,
            created: format_rfc3339(since_1970(link.created)),
            expires: link.expires.map(|ends| format_rfc3339(since_1970(ends))),
            password: link.has_password,
            downloads: link.uses_max.filter(|_| reads),
            downloaded: if reads { link.uses } else { 0 },
            files: link.uses_max.filter(|_| !reads),
            uploaded: if reads { 0 } else { link.uses },
            bytes: link.bytes_max,
            uploaded_bytes: link.bytes,
            id: link.id,
            url: None,
        }
    }
}

/// Returns the URL of a link: of this server, by the name that the client uses for it.
pub(crate) fn url_of(request: &Request<'_>, token: &Secret) -> String {
    let scheme = if is_over_https(request) { "https" } else { "http" };
    let hosts = request.forwarded_hosts().into_iter().chain(request.head.authority(request.block));
    let origins = hosts.map(|host| parse_origin(&format!("{scheme}://{}", String::from_utf8_lossy(host))));
    let token = String::from_utf8_lossy(token.bytes());
    format!("{}/s/{token}", origins.flatten().next().unwrap_or_default())
}

pub(super) async fn make(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let new: New = json::read(ask.request).await?;
    let path = path_of(new.path.as_deref(), new.href.as_deref())?;
    let uses_max = match new.permission {
        LinkPermission::Read if new.files.is_some() || new.bytes.is_some() => {
            return Err(Refusal::bad("\"files\" and \"bytes\" are limits of uploads. Send \"downloads\"."));
        }
        LinkPermission::Upload if new.downloads.is_some() => {
            return Err(Refusal::bad(
                "A link for uploads permits no downloads. Send \"files\" or \"bytes\".",
            ));
        }
        LinkPermission::Read => new.downloads,
        LinkPermission::Upload => new.files,
    };
    let new = NewLink {
        path: path.as_bytes().to_vec(),
        permission: new.permission,
        expires: expiry(ask.request.io, new.expires.as_deref())?,
        password: new.password.map(|password| Secret::new(password.into_bytes())),
        uses_max,
        bytes_max: new.bytes,
    };
    let made = ask.web.operations.link(&caller, new).await;
    let (link, token) = made.map_err(|error| not_made(error, &path.to_string()))?;
    let url = url_of(ask.request, &token);
    Ok(json::answer(Status::CREATED, &LinkJson { url: Some(url), ..LinkJson::from(link) }))
}

/// Reports that the path is missing.
pub(crate) fn not_made(error: Error, path: &str) -> Refusal {
    match error {
        Error::Store(StoreError::NotFound) => Refusal::new(
            Status::NOT_FOUND,
            format!("There is nothing at {:?} to link to. Check the path.", format!("/{path}")),
        ),
        Error::Store(StoreError::NotFolder) => {
            Refusal::new(Status::CONFLICT, "A link for uploads needs a folder. Make one, and link to it.")
        }
        error => error.into(),
    }
}

pub(super) async fn end(ask: RoutedRequest<'_, '_>, id: &str) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    ask.web.operations.unlink(&caller, id).await.map_err(|error| match error {
        Error::Auth(AuthError::NotFound) => Refusal::new(
            Status::NOT_FOUND,
            format!("There is no public link {id:?} of this account. See those there are: GET /api/links"),
        ),
        other => other.into(),
    })?;
    Ok(Answer::new(Status::NO_CONTENT))
}

pub(super) async fn list(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let asked = Paging::from_query(ask.called.query, LINKS_PER_PAGE_MAX)?;
    let links = ask.web.operations.links(&caller).await?;
    Ok(page(&asked, links))
}

/// Returns a page of links.
pub(super) fn page(asked: &Paging<'_>, links: Vec<Link>) -> Answer {
    let (links, next) = asked.page_of(links, |link| &link.id);
    json::answer(Status::OK, &Page { links: links.into_iter().map(LinkJson::from).collect(), next })
}
