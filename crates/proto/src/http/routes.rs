//! Routes a target to its service: the server's own paths first, then the sites.
//!
//! It answers only targets that belong to no service. Invariants: the API's prefixes are never a site's, not
//! even those that are still unused. The longest prefix of a site wins.

use std::sync::Arc;

use plimsoll_content::Site;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::{BadTarget, has_adjacent_slashes};

use super::answer::Answer;
use super::api::{Api, DecodedTarget};
use super::cors::Cors;
use super::https_rules::HttpsRules;
use super::link_path::{may_be_link, split_link};
use super::operator::{OperatorHosts, metrics, operators_only};
use super::problem::problem;
use super::request::Request;
use super::service::Service;
use super::site::{self, RequestPath};
use super::status_page::{StatusPage, healthy};

/// Prefixes that belong to the server and never to a site.
const RESERVED: [&[u8]; 7] =
    [b"/api", b"/files", b"/shared", b"/uploads", b"/healthz", b"/readyz", b"/metrics"];

/// The prefix of pages for people. On a server without accounts, a site may have this prefix, and paths
/// like `/s/TOKEN`.
const PAGES: &[u8] = b"/app";

/// Prefixes of accounts' files, below which adjacent slashes are one, as over FTP.
const FILES: [&[u8]; 2] = [b"/files", b"/shared"];

/// Pages under those prefixes that exist even without accounts.
const OWN_PAGES: [&[u8]; 4] = [b"/healthz", b"/readyz", METRICS, STATUS];
/// Those that probes request, by whatever name: they reveal nothing.
const HEALTH: [&[u8]; 2] = [b"/healthz", b"/readyz"];
const METRICS: &[u8] = b"/metrics";
const STATUS: &[u8] = b"/api/status";

/// The path of the service that only addresses for operators have.
const OPERATORS_API: &[u8] = b"/purge";

/// The methods of every resource of a site. All others are the API's.
const READS: &str = "GET, HEAD, OPTIONS";

/// The service of a server.
pub struct Routes {
    sites: Vec<Site>,
    status: StatusPage,
    api: Option<Arc<dyn Api>>,
    /// The names of this address, if only operators reach it: one of `--metrics`.
    operators: Option<OperatorHosts>,
    cors: Cors,
    https: HttpsRules,
}

impl Routes {
    /// Creates routes to `sites` and to the server's own pages, without accounts.
    pub fn new(sites: Vec<Site>, status: StatusPage) -> Arc<Routes> {
        Routes::new_with_cors(sites, status, None, Cors::default())
    }

    /// Creates the routes of an address that only operators reach: health, readiness, metrics and status,
    /// for every client, under these names. `service` is under `/purge`.
    pub fn for_operators(
        status: StatusPage,
        hosts: OperatorHosts,
        service: Option<Arc<dyn Api>>,
    ) -> Arc<Routes> {
        Arc::new(Routes { operators: Some(hosts), ..Routes::of(Vec::new(), status, service) })
    }

    /// As [`Routes::new`], with the API.
    pub fn with_api(sites: Vec<Site>, status: StatusPage, api: Arc<dyn Api>) -> Arc<Routes> {
        Routes::new_with_cors(sites, status, Some(api), Cors::default())
    }

    /// Creates routes to `sites`, to the server's own pages and to the API, if there are accounts. Pages of
    /// the origins of `cors` may read the responses.
    pub fn new_with_cors(
        sites: Vec<Site>,
        status: StatusPage,
        api: Option<Arc<dyn Api>>,
        cors: Cors,
    ) -> Arc<Routes> {
        Routes::new_with_https(sites, status, api, cors, HttpsRules::default())
    }

    /// As [`Routes::new_with_cors`], with orders to clients about HTTPS.
    pub fn new_with_https(
        sites: Vec<Site>,
        status: StatusPage,
        api: Option<Arc<dyn Api>>,
        cors: Cors,
        https: HttpsRules,
    ) -> Arc<Routes> {
        Arc::new(Routes { cors, https, ..Routes::of(sites, status, api) })
    }

    fn of(mut sites: Vec<Site>, status: StatusPage, api: Option<Arc<dyn Api>>) -> Routes {
        sites.sort_by_key(|site| std::cmp::Reverse(site.prefix().len()));
        let (cors, https) = (Cors::default(), HttpsRules::default());
        Routes { sites, status, api, operators: None, cors, https }
    }

    async fn answer_unmarked(&self, request: &mut Request<'_>) -> Answer {
        if let Some(answer) = self.https.redirect(request) {
            return answer;
        }
        if let Some(answer) = self.cors.preflight(request) {
            return answer;
        }
        let target = match DecodedTarget::read(request.target()) {
            Ok(target) => target,
            Err(bad) => return self.answer_malformed_target(request, bad),
        };
        if let Some(hosts) = self.operators.as_ref().filter(|_| !HEALTH.contains(&&*target.path))
            && let Some(refusal) = hosts.refusal(request)
        {
            return refusal;
        }
        if let Some(answer) = self.https.challenge_answer(request, &target.path).await {
            return answer;
        }
        if is_redirected(&target) {
            let answer = site::redirect_to(Status::PERMANENT_REDIRECT, &target.path, target.query);
            if !may_be_link(&target.path) {
                return answer;
            }
            // A cache must not store the token of a public link, nor a browser send it to another site.
            return answer.field("Cache-Control", "no-store").field("Referrer-Policy", "no-referrer");
        }
        if let Some(api) = self.api_for(&target.path) {
            return match api.try_answer(request, &target) {
                Some(answer) => answer,
                None => api.answer(request, target, &self.status).await,
            };
        }
        if target.path == b"/"
            && !request.method().reads()
            && let Some(pages) = self.pages()
        {
            // Also where a site is: some WebDAV clients ask there first, whatever path they are given.
            return pages.answer(request, target, &self.status).await;
        }
        match request.method() {
            Method::Get | Method::Head => self.read(request, target).await,
            other => method_not_allowed(other),
        }
    }

    async fn read(&self, request: &mut Request<'_>, target: DecodedTarget<'_>) -> Answer {
        if let Some(answer) = self.server_page(&target.path, request).await {
            return answer;
        }
        if self.operators.is_some() {
            return problem(Status::NOT_FOUND, "Only /metrics, /api/status, /healthz and /readyz are here.");
        }
        match self.sites.iter().find_map(|site| Some((site, site.strip(&target.path)?))) {
            Some((site, name)) => {
                let DecodedTarget { path, query, .. } = target;
                site::answer(site, request, name, RequestPath { query, path, prefix_bytes: 0 }).await
            }
            None if target.path != b"/" => {
                site::refused(request, Status::NOT_FOUND, "Nothing is served under this path.")
            }
            None => match self.pages() {
                Some(pages) => pages.answer(request, target, &self.status).await,
                None => site::start_page(),
            },
        }
    }

    /// Returns the API if it has pages for people.
    fn pages(&self) -> Option<&dyn Api> {
        self.api.as_deref().filter(|api| self.operators.is_none() && api.has_pages())
    }

    /// Answers a malformed target. `OPTIONS *` is about the server as a whole.
    fn answer_malformed_target(&self, request: &Request<'_>, bad: BadTarget) -> Answer {
        match request.method() {
            Method::Get | Method::Head => site::refused(request, bad.status(), bad.detail()),
            other if self.api.is_none() || request.target() == b"*" => method_not_allowed(other),
            _ => problem(bad.status(), bad.detail()),
        }
    }

    async fn server_page(&self, path: &[u8], request: &mut Request<'_>) -> Option<Answer> {
        match path {
            b"/healthz" => Some(healthy()),
            b"/readyz" => Some(self.status.readiness.answer(request.io).await),
            METRICS | STATUS => Some(match self.authorise_operator(request).await {
                Err(refused) => refused,
                Ok(()) if path == METRICS => metrics(&self.status),
                Ok(()) => self.status.answer(),
            }),
            _ => (self.operators.is_none() && is_below_any(path, &RESERVED)).then(|| {
                problem(Status::NOT_FOUND, "This path belongs to the server's API, which has nothing there.")
            }),
        }
    }

    /// Decides whether a client may read metrics and status.
    async fn authorise_operator(&self, request: &mut Request<'_>) -> Result<(), Answer> {
        if self.operators.is_some() || request.is_local() {
            return Ok(());
        }
        match &self.api {
            Some(api) => api.authorise_operator(request).await,
            None => Err(operators_only()),
        }
    }

    /// Returns the API if the path belongs to it.
    fn api_for(&self, path: &[u8]) -> Option<&dyn Api> {
        if self.operators.is_some() {
            return self.api.as_deref().filter(|_| path == OPERATORS_API);
        }
        if is_below_any(path, &[PAGES]) || split_link(path).is_some() {
            return self.pages();
        }
        let api = self.api.as_deref().filter(|_| is_below_any(path, &RESERVED))?;
        let is_for_operators = path == STATUS || path == METRICS;
        let is_own = OWN_PAGES.contains(&path) && !(is_for_operators && api.is_private());
        (!is_own).then_some(api)
    }
}

/// Whether a client is redirected to the path without its adjacent slashes. A proxy in front may protect a
/// path and compare it as it is sent. Below the prefixes of accounts' files this server alone decides about
/// rights, and not every client follows a redirect with its file.
fn is_redirected(target: &DecodedTarget<'_>) -> bool {
    let is_file = is_below_any(&target.path, &FILES) && !target.sent.starts_with(b"//");
    !is_file && has_adjacent_slashes(target.sent)
}

/// Whether a path belongs to the server's API and cannot be a site's.
pub fn is_reserved(path: &str) -> bool {
    is_below_any(path.as_bytes(), &RESERVED)
}

/// Whether `path` is one of `prefixes` or lies below it.
fn is_below_any(path: &[u8], prefixes: &[&[u8]]) -> bool {
    let is_below =
        |prefix: &&[u8]| path.strip_prefix(*prefix).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
    prefixes.iter().any(is_below)
}

impl Service for Arc<Routes> {
    fn cors(&self) -> Option<&Cors> {
        Some(&self.cors)
    }

    async fn answer(&self, request: &mut Request<'_>) -> Answer {
        let answer = self.answer_unmarked(request).await;
        self.https.mark(request, answer)
    }
}

/// Returns the response to a method other than GET and HEAD for a read-only resource.
fn method_not_allowed(method: Method) -> Answer {
    match method {
        Method::Options => Answer::new(Status::NO_CONTENT).field("Allow", READS),
        Method::Other => problem(Status::NOT_IMPLEMENTED, "This server does not know the method."),
        _ => problem(Status::METHOD_NOT_ALLOWED, "What is here can only be read: use GET or HEAD.")
            .field("Allow", READS),
    }
}
