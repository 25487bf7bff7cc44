//! `POST /purge`: removes stored responses by URL, prefix or tag, on the addresses for operators only.
//!
//! It does not find them (`cache` does). Invariant: the response is sent after the removal is durable.

use std::sync::Arc;

use plimsoll_proto::http::{Answer, Api, Body, DecodedTarget, PendingAnswer, Request, problem};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use crate::cache::opening::CacheOpener;
use crate::cache::policy::ResourceKey;
use crate::cache::store::PurgeTarget;

/// The path of the requests.
const PURGE: &[u8] = b"/purge";

/// The service of `/purge`.
pub struct Purging(Arc<CacheOpener>);

impl Purging {
    /// Creates the service for a cache.
    #[must_use]
    pub fn new(cache: Arc<CacheOpener>) -> Arc<Purging> {
        Arc::new(Purging(cache))
    }

    async fn purge(&self, request: &Request<'_>, target: &DecodedTarget<'_>) -> Answer {
        const FORM: &str = "Write POST /purge?url=URL, ?prefix=URL, ?tag=TAG or ?all=yes.";
        const CLOSED: &str = "The cache is not open. Try again shortly.";
        const FAILED: &str = "The responses are removed, but may come back after a restart: the disk failed. \
                              Purge again.";
        if target.path != PURGE {
            return problem(
                Status::NOT_FOUND,
                "Only /purge, /metrics, /api/status, /healthz and /readyz are here.",
            );
        }
        if request.method() != Method::Post {
            return problem(Status::METHOD_NOT_ALLOWED, FORM).field("Allow", "POST");
        }
        let Some(purge) = target.query.and_then(purge_target) else {
            return problem(Status::BAD_REQUEST, FORM);
        };
        let Some(cache) = self.0.open(request.io).await else {
            return problem(Status::SERVICE_UNAVAILABLE, CLOSED).field("Retry-After", "2");
        };
        match cache.purge(request.io, purge).await {
            Ok(purged) => {
                let body = format!("{{\"purged\":{purged}}}\n").into_bytes();
                let answer = Answer::new(Status::OK).field("Content-Type", "application/json");
                answer.field("Cache-Control", "no-store").body(Body::Bytes(body))
            }
            Err(error) => {
                tracing::warn!(%error, "a purge is not durable");
                problem(Status::INTERNAL_SERVER_ERROR, FAILED)
            }
        }
    }
}

impl Api for Purging {
    fn answer<'a>(&'a self, request: &'a mut Request<'_>, target: DecodedTarget<'a>) -> PendingAnswer<'a> {
        Box::pin(async move { self.purge(request, &target).await })
    }
}

/// Reads the query of a purge: one parameter. Its value goes on to the end of the query and is not decoded,
/// because the keys of the cache are URLs as they were sent.
fn purge_target(query: &[u8]) -> Option<PurgeTarget> {
    let equals = query.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (query.get(..equals)?, query.get(equals + 1..)?);
    if value.is_empty() {
        return None;
    }
    match name {
        b"url" => ResourceKey::parse(value).map(|key| PurgeTarget::Uri(key.digest())),
        b"prefix" => ResourceKey::parse(value).map(|key| PurgeTarget::Prefix(key.uri().to_vec())),
        b"tag" => Some(PurgeTarget::Tag(value.to_vec())),
        b"all" => (value == b"yes").then_some(PurgeTarget::All),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_names_one_target() {
        let uri = ResourceKey::parse(b"http://a/b?c=d").unwrap().digest();
        assert_eq!(purge_target(b"url=http://A:80/b?c=d"), Some(PurgeTarget::Uri(uri)));
        let query = ResourceKey::parse(b"http://a/%7e?c=d&e=f").unwrap().digest();
        assert_eq!(purge_target(b"url=http://a/%7e?c=d&e=f"), Some(PurgeTarget::Uri(query)));
        let prefix = PurgeTarget::Prefix(b"http://a/x".to_vec());
        assert_eq!(purge_target(b"prefix=http://a/x"), Some(prefix));
        assert_eq!(purge_target(b"tag=one"), Some(PurgeTarget::Tag(b"one".to_vec())));
        assert_eq!(purge_target(b"all=yes"), Some(PurgeTarget::All));
        for bad in ["", "url", "url=", "url=x", "all=no", "prefix=/x", "x=y"] {
            assert_eq!(purge_target(bad.as_bytes()), None, "{bad}");
        }
    }
}
