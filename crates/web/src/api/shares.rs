//! `/api/shares` and `/api/shared`: give shares, revoke them, list those given and received.
//!
//! The rights of a share are not checked here. Invariants: the `url` of a share leads to exactly the
//! shared path; a response is bounded; following `next` lists every share that exists throughout.

use std::time::SystemTime;

use plimsoll_auth::{Error as AuthError, Permission, Share};
use plimsoll_io::Io;
use plimsoll_operations::Error;
use plimsoll_proto::http::Answer;
use plimsoll_store::{Error as StoreError, Path};
use plimsoll_wire::calendar::{format_rfc3339, parse_rfc3339, since_1970};
use plimsoll_wire::http::problem_code::ProblemCode;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::{decode_path, encoded_path};
use serde::{Deserialize, Serialize};

use crate::limits::SHARES_PER_PAGE_MAX;
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

/// A new share. A path that is not UTF-8 must be sent as `href`, percent-encoded; other paths by either.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    path: Option<String>,
    href: Option<String>,
    with: String,
    permission: Permission,
    expires: Option<String>,
}

/// The JSON of a share, for its owner and its grantee alike.
#[derive(Serialize)]
struct ShareJson {
    id: String,
    owner: String,
    path: String,
    with: String,
    permission: Permission,
    created: String,
    expires: Option<String>,
    url: String,
}

/// A page of shares, in the order of their ids. `next` is the last id, if more follow.
#[derive(Serialize)]
struct Page {
    shares: Vec<ShareJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The page of a list that the query requests.
pub(super) struct Paging<'a> {
    limit: usize,
    after: Option<&'a [u8]>,
}

impl From<Share> for ShareJson {
    fn from(share: Share) -> ShareJson {
        let url = [b"/shared/", share.owner.as_bytes(), b"/", &*share.path].concat();
        ShareJson {
            path: format!("/{}", String::from_utf8_lossy(&share.path)),
            url: encoded_path(&url),
            created: format_rfc3339(since_1970(share.created)),
            expires: share.expires.map(|ends| format_rfc3339(since_1970(ends))),
            id: share.id,
            owner: share.owner,
            with: share.with,
            permission: share.permission,
        }
    }
}

pub(super) async fn give(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let new: New = json::read(ask.request).await?;
    let path = path_of(new.path.as_deref(), new.href.as_deref())?;
    let expires = expiry(ask.request.io, new.expires.as_deref())?;
    let shown = path.to_string();
    let share = ask.web.operations.share(&caller, path, &new.with, new.permission, expires).await;
    let share = share.map_err(|error| not_given(error, &shown, &new.with))?;
    Ok(json::answer(Status::CREATED, &ShareJson::from(share)))
}

/// Reports which of the two is missing: the account or the path.
fn not_given(error: Error, path: &str, with: &str) -> Refusal {
    let detail = match error {
        Error::Auth(AuthError::NotFound) => {
            format!("There is no account {with:?} to share with. Check the name.")
        }
        Error::Store(StoreError::NotFound) => {
            format!("There is nothing at {:?} to share. Check the path.", format!("/{path}"))
        }
        other => return other.into(),
    };
    Refusal::new(Status::NOT_FOUND, detail)
}

/// Parses the time at which a share or a link ends.
pub(super) fn expiry(io: &Io, text: Option<&str>) -> Result<Option<SystemTime>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let time = parse_rfc3339(text).filter(|time| *time > io.wall());
    time.map(Some)
        .ok_or_else(|| Refusal::bad("\"expires\" must be a time to come, such as 2030-12-31T23:59:59Z."))
}

/// Returns the path, which is sent in one of two forms.
pub(super) fn path_of(path: Option<&str>, href: Option<&str>) -> Result<Path, Refusal> {
    match (path, href) {
        (Some(path), None) => Ok(Path::parse(path.as_bytes())?),
        (None, Some(href)) => {
            let mut path = Vec::new();
            decode_path(href.as_bytes(), &mut path).map_err(|bad| Refusal::bad(bad.detail()))?;
            Ok(Path::parse(&path)?)
        }
        _ => Err(Refusal::bad("Send \"path\", or \"href\" with the same path percent-encoded.")),
    }
}

pub(super) async fn take_back(ask: RoutedRequest<'_, '_>, id: &str) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    ask.web.operations.unshare(&caller, id).await.map_err(|error| match error {
        Error::Auth(AuthError::NotFound) => {
            let detail =
                format!("There is no share {id:?} of this account. See those there are: GET /api/shares");
            Refusal::new(Status::NOT_FOUND, detail).coded(ProblemCode::NoSuchShare)
        }
        other => other.into(),
    })?;
    Ok(Answer::new(Status::NO_CONTENT))
}

pub(super) async fn by_me(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let asked = Paging::from_query(ask.called.query, SHARES_PER_PAGE_MAX)?;
    Ok(page(&asked, ask.web.operations.shares(&caller).await?))
}

pub(super) async fn with_me(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let asked = Paging::from_query(ask.called.query, SHARES_PER_PAGE_MAX)?;
    Ok(page(&asked, ask.web.operations.shared(&caller).await?))
}

impl<'a> Paging<'a> {
    /// Parses `limit`, of at most `max`, and `after`.
    pub(super) fn from_query(query: Option<&'a [u8]>, max: usize) -> Result<Paging<'a>, Refusal> {
        let mut asked = Paging { limit: max, after: None };
        for parameter in query.unwrap_or_default().split(|byte| *byte == b'&') {
            if let Some(limit) = parameter.strip_prefix(b"limit=") {
                asked.limit = limit_of(limit, max)?;
            } else if let Some(after) = parameter.strip_prefix(b"after=") {
                asked.after = Some(after);
            }
        }
        Ok(asked)
    }

    /// Returns the items of the page, and the last id if more follow. They are sorted by id, so that the
    /// start of a page is defined even if the item before it has ended.
    pub(super) fn page_of<T>(&self, mut items: Vec<T>, id: impl Fn(&T) -> &str) -> (Vec<T>, Option<String>) {
        items.retain(|item| self.after.is_none_or(|after| id(item).as_bytes() > after));
        items.sort_unstable_by(|one, other| id(one).cmp(id(other)));
        let is_last = items.len() <= self.limit;
        items.truncate(self.limit);
        let next = items.last().filter(|_| !is_last).map(|last| id(last).to_owned());
        (items, next)
    }
}

/// Parses the number of entries of a page.
pub(super) fn limit_of(text: &[u8], max: usize) -> Result<usize, Refusal> {
    let limit = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    limit
        .filter(|limit| (1..=max).contains(limit))
        .ok_or_else(|| Refusal::bad(format!("\"limit\" must be a number from 1 to {max}.")))
}

/// Returns a page of shares.
pub(super) fn page(asked: &Paging<'_>, shares: Vec<Share>) -> Answer {
    let (shares, next) = asked.page_of(shares, |share| &share.id);
    json::answer(Status::OK, &Page { shares: shares.into_iter().map(ShareJson::from).collect(), next })
}
