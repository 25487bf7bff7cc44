//! Which service a target belongs to: the server's own paths first, then the sites.
//!
//! It answers nothing itself but what no service has. What must hold: the API's prefixes are never a
//! site's, also those that are not there yet; the longest prefix of a site wins.

use std::sync::Arc;

use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::{decode_path, parse_target};

use super::answer::Answer;
use super::problem::problem;
use super::request::Request;
use super::service::Service;
use super::site::{self, Asked, Site};
use super::status_page::{StatusPage, healthy};

/// Prefixes that belong to the server whatever is served beside them.
const RESERVED: [&[u8]; 7] =
    [b"/api", b"/files", b"/shared", b"/uploads", b"/healthz", b"/readyz", b"/metrics"];

/// Methods that every resource here answers; others read a body, which comes with accounts.
const READS: &str = "GET, HEAD, OPTIONS";

/// What a server serves.
pub struct Routes {
    sites: Vec<Site>,
    status: StatusPage,
}

impl Routes {
    /// Routes to `sites`, and to the server's own pages.
    pub fn new(mut sites: Vec<Site>, status: StatusPage) -> Arc<Routes> {
        sites.sort_by_key(|site| std::cmp::Reverse(site.prefix().len()));
        Arc::new(Routes { sites, status })
    }

    async fn read(&self, request: &mut Request<'_>) -> Answer {
        let target = match parse_target(request.target()) {
            Ok(target) => target,
            Err(bad) => return site::refused(request, bad.status(), bad.detail()),
        };
        let mut path = Vec::with_capacity(target.path.len());
        if let Err(bad) = decode_path(target.path, &mut path) {
            return site::refused(request, bad.status(), bad.detail());
        }
        if let Some(answer) = self.own(&path) {
            return answer;
        }
        match self.sites.iter().find_map(|site| Some((site, site.strip(&path)?))) {
            Some((site, name)) => {
                let asked = Asked { query: target.query, name, path };
                site::answer(site, request, asked).await
            }
            None => site::refused(request, Status::NOT_FOUND, "Nothing is served under this path."),
        }
    }

    fn own(&self, path: &[u8]) -> Option<Answer> {
        match path {
            b"/healthz" => Some(healthy()),
            b"/api/status" => Some(self.status.answer()),
            _ => RESERVED.iter().any(|prefix| is_below(path, prefix)).then(|| {
                problem(Status::NOT_FOUND, "This path belongs to the server's API, which has nothing there.")
            }),
        }
    }
}

/// Whether a path belongs to the server's own API, so that no site can be there.
pub fn is_reserved(path: &str) -> bool {
    RESERVED.iter().any(|prefix| is_below(path.as_bytes(), prefix))
}

/// Whether `path` is `prefix` or lies below it.
fn is_below(path: &[u8], prefix: &[u8]) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

impl Service for Arc<Routes> {
    async fn answer(&self, request: &mut Request<'_>) -> Answer {
        match request.method() {
            Method::Get | Method::Head => self.read(request).await,
            Method::Options => Answer::new(Status::NO_CONTENT).field("Allow", READS),
            Method::Other => problem(Status::NOT_IMPLEMENTED, "This server does not know the method."),
            _ => problem(Status::METHOD_NOT_ALLOWED, "What is here can only be read: use GET or HEAD.")
                .field("Allow", READS),
        }
    }
}
