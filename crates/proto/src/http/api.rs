//! The interface between the routes and the API, which answers under its own prefixes if the server has
//! accounts.
//!
//! It is not the API itself. Invariant: a path is decoded once, here, so that routes and API cannot read it
//! differently.

use std::pin::Pin;

use plimsoll_wire::http::target::{BadTarget, decode_path, parse_target};

use super::answer::Answer;
use super::operator::operators_only;
use super::request::Request;
use super::status_page::StatusPage;

/// A decoded target.
pub struct DecodedTarget<'a> {
    /// The decoded path, which begins with a slash.
    pub path: Vec<u8>,
    /// The part behind the `?`, as it was sent.
    pub query: Option<&'a [u8]>,
    /// The path with its escapes, as it was sent.
    pub(super) sent: &'a [u8],
}

impl<'a> DecodedTarget<'a> {
    /// Decodes a request's target.
    pub(super) fn read(target: &'a [u8]) -> Result<DecodedTarget<'a>, BadTarget> {
        let target = parse_target(target)?;
        let mut path = Vec::with_capacity(target.path.len());
        decode_path(target.path, &mut path)?;
        Ok(DecodedTarget { path, query: target.query, sent: target.path })
    }
}

/// A pending response.
pub type PendingAnswer<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// A pending decision. The error is the response that refuses the request.
pub type PendingAuthorisation<'a> = Pin<Box<dyn Future<Output = Result<(), Answer>> + 'a>>;

/// The service under the API's prefixes.
pub trait Api: Send + Sync {
    /// Returns the response to one request of any method. `status` is of the server that received it.
    fn answer<'a>(
        &'a self,
        request: &'a mut Request<'_>,
        target: DecodedTarget<'a>,
        status: &'a StatusPage,
    ) -> PendingAnswer<'a>;

    /// Returns the response without blocking, if everything for it is cached; `None` before any effect
    /// otherwise. Most downloads on a keep-alive connection take this path; a boxed future for each costs one
    /// microsecond of fifteen.
    fn try_answer(&self, request: &mut Request<'_>, target: &DecodedTarget<'_>) -> Option<Answer> {
        let _ = (request, target);
        None
    }

    /// Decides whether the request is from an account with the right to read metrics and status.
    fn authorise_operator<'a>(&'a self, request: &'a mut Request<'_>) -> PendingAuthorisation<'a> {
        let _ = request;
        Box::pin(async { Err(operators_only()) })
    }

    /// Whether there are pages for people: under `/app`, and under `/` if no site is there.
    fn has_pages(&self) -> bool {
        false
    }

    /// Whether the server hides its activity from clients. Then the API answers `/metrics` and `/api/status`
    /// too.
    fn is_private(&self) -> bool {
        false
    }
}
