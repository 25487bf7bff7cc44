//! The resources that speak JSON: accounts, sessions, passwords, shares, links and the trash.
//!
//! There is one file for each. Invariant: `openapi.json` describes exactly these endpoints.

mod accounts;
pub(crate) mod links;
mod openapi;
pub(crate) mod operate;
mod password;
pub(crate) mod search;
mod sessions;
mod shares;
pub(crate) mod trash;
mod whoami;

use plimsoll_proto::http::Answer;
use plimsoll_wire::http::head::Method;

use self::operate::OperatorPoint;
use crate::RoutedRequest;
use crate::refusal::Refusal;
use crate::resource::nothing;

/// A resource below `/api`.
#[derive(Clone)]
pub(crate) enum Point {
    /// Sign-up.
    Accounts,
    /// Log-in.
    Sessions,
    /// The session of the request's token.
    CurrentSession,
    /// The caller's account.
    WhoAmI,
    /// The caller's password.
    Password,
    /// The shares that the caller has given.
    Shares,
    /// One of the caller's shares, by its id.
    Share(String),
    /// The shares that the caller has received.
    Shared,
    /// The caller's public links.
    Links,
    /// One of the caller's public links, by its id.
    Link(String),
    /// The entries with a name, below a folder.
    Search,
    /// The caller's trash.
    Trash,
    /// An entry of the caller's trash, by its id.
    Trashed(String),
    /// The restoration of an entry of the caller's trash.
    Restore(String),
    /// A resource of operators.
    Operate(OperatorPoint),
    /// The description of the API.
    OpenApi,
}

/// The endpoints with fixed paths, by path.
const POINTS: [(&str, Point); 11] = [
    ("accounts", Point::Accounts),
    ("sessions", Point::Sessions),
    ("sessions/current", Point::CurrentSession),
    ("whoami", Point::WhoAmI),
    ("password", Point::Password),
    ("shares", Point::Shares),
    ("shared", Point::Shared),
    ("links", Point::Links),
    ("search", Point::Search),
    ("trash", Point::Trash),
    ("openapi.json", Point::OpenApi),
];

impl Point {
    /// Returns the endpoint of a path below `/api/`.
    pub(crate) fn of(rest: &str) -> Result<Point, Refusal> {
        let named = POINTS.iter().find(|(name, _)| *name == rest).map(|(_, point)| point.clone());
        let id = |prefix, suffix| {
            let id: &str = rest.strip_prefix(prefix)?.strip_suffix(suffix)?;
            (!id.is_empty() && !id.contains('/')).then(|| id.to_owned())
        };
        let one = || id("shares/", "").map(Point::Share).or_else(|| id("links/", "").map(Point::Link));
        let trashed =
            || id("trash/", "").map(Point::Trashed).or_else(|| id("trash/", "/restore").map(Point::Restore));
        let operated = || rest.strip_prefix("operate/").and_then(OperatorPoint::of).map(Point::Operate);
        let one = || one().or_else(trashed).or_else(operated);
        named.or_else(one).ok_or_else(nothing)
    }

    pub(crate) fn methods(&self) -> &'static [Method] {
        use Method::{Delete, Get, Head, Post, Put};
        match self {
            Point::Operate(point) => point.methods(),
            Point::Accounts | Point::Sessions => &[Post],
            Point::CurrentSession | Point::Share(_) | Point::Link(_) | Point::Trashed(_) => &[Delete],
            Point::Trash => &[Get, Head, Delete],
            Point::Restore(_) => &[Post],
            Point::WhoAmI | Point::Shared | Point::Search | Point::OpenApi => &[Get, Head],
            Point::Password => &[Put],
            Point::Shares | Point::Links => &[Get, Head, Post],
        }
    }
}

/// Returns the response of an endpoint to one of its methods.
pub(crate) async fn answer(
    ask: RoutedRequest<'_, '_>,
    method: Method,
    point: Point,
) -> Result<Answer, Refusal> {
    match point {
        Point::Accounts => accounts::sign_up(ask).await,
        Point::Sessions => sessions::log_in(ask).await,
        Point::CurrentSession => sessions::log_out(ask).await,
        Point::WhoAmI => whoami::look(ask).await,
        Point::Password => password::change(ask).await,
        Point::Shares if method == Method::Post => shares::give(ask).await,
        Point::Shares => shares::by_me(ask).await,
        Point::Share(id) => shares::take_back(ask, &id).await,
        Point::Shared => shares::with_me(ask).await,
        Point::Links if method == Method::Post => links::make(ask).await,
        Point::Links => links::list(ask).await,
        Point::Link(id) => links::end(ask, &id).await,
        Point::Search => search::find(ask).await,
        Point::Trash if method == Method::Delete => trash::empty(ask).await,
        Point::Trash => trash::list(ask).await,
        Point::Trashed(id) => trash::delete(ask, &id).await,
        Point::Restore(id) => trash::restore(ask, &id).await,
        Point::Operate(point) => operate::answer(ask, method, point).await,
        Point::OpenApi => Ok(openapi::answer()),
    }
}
