//! The place of the API among the routes: what answers under its prefixes, if the server has accounts.
//!
//! It is not the API. What must hold: a path is decoded once, here, so that routes and API cannot read it
//! differently.

use std::pin::Pin;

use plimsoll_wire::http::target::{BadTarget, decode_path, parse_target};

use super::answer::Answer;
use super::operator::operators_only;
use super::request::Request;

/// A target, decoded.
pub struct Called<'a> {
    /// The decoded path: begins with a slash.
    pub path: Vec<u8>,
    /// What follows the `?`, as it was sent.
    pub query: Option<&'a [u8]>,
}

impl<'a> Called<'a> {
    /// Reads a request's target.
    pub(super) fn read(target: &'a [u8]) -> Result<Called<'a>, BadTarget> {
        let target = parse_target(target)?;
        let mut path = Vec::with_capacity(target.path.len());
        decode_path(target.path, &mut path)?;
        Ok(Called { path, query: target.query })
    }
}

/// An answer on its way.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// A decision on its way; an error is the answer that refuses.
pub type Authorising<'a> = Pin<Box<dyn Future<Output = Result<(), Answer>> + 'a>>;

/// What answers under the API's prefixes.
pub trait Api: Send + Sync {
    /// The answer to one request, whatever its method.
    fn answer<'a>(&'a self, request: &'a mut Request<'_>, called: Called<'a>) -> Answering<'a>;

    /// The same answer, if all of it is at hand, so that nobody is asked and nothing is waited for; else
    /// nothing has been done. That is what most downloads of a kept connection are, and a future for each
    /// takes a microsecond of fifteen.
    fn at_hand(&self, request: &mut Request<'_>, called: &Called<'_>) -> Option<Answer> {
        let _ = (request, called);
        None
    }

    /// Decides whether the request is from an account with the right to read metrics and status.
    fn authorise_operator<'a>(&'a self, request: &'a mut Request<'_>) -> Authorising<'a> {
        let _ = request;
        Box::pin(async { Err(operators_only()) })
    }

    /// Whether no client may learn what the server does: then `/metrics` and `/api/status` are the API's to
    /// answer, too.
    fn is_private(&self) -> bool {
        false
    }
}
