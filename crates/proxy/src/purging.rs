//! `POST /purge`: removes stored responses by URL, prefix or tag, on the addresses for operators only.
//!
//! It does not find them (`cache` does). Invariant: the response is sent after the removal is durable.

use std::sync::Arc;

use plimsoll_proto::http::{Answer, Api, Body, DecodedTarget, PendingAnswer, Request, StatusPage, problem};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use crate::cache::opening::CacheOpener;
use crate::cache::policy::{ResourceKey, Servers};
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
        let targets = target.query.map(purge_targets).unwrap_or_default();
        if targets.is_empty() {
            return problem(Status::BAD_REQUEST, FORM);
        }
        let Some(cache) = self.0.open(request.io).await else {
            return problem(Status::SERVICE_UNAVAILABLE, CLOSED).field("Retry-After", "2");
        };
        match cache.purge(request.io, targets).await {
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
    fn answer<'a>(
        &'a self,
        request: &'a mut Request<'_>,
        target: DecodedTarget<'a>,
        _: &'a StatusPage,
    ) -> PendingAnswer<'a> {
        Box::pin(async move { self.purge(request, &target).await })
    }
}

/// Reads the query of a purge: one parameter. Its value goes on to the end of the query and is not decoded,
/// because the keys of the cache are URLs as they were sent. Returns nothing if it is malformed.
fn purge_targets(query: &[u8]) -> Vec<PurgeTarget> {
    let equals = query.iter().position(|&byte| byte == b'=').unwrap_or(query.len());
    let (name, value) = query.split_at(equals);
    let value = value.get(1..).unwrap_or_default();
    if value.is_empty() {
        return Vec::new();
    }
    match name {
        b"url" => {
            let at = |key: &ResourceKey, servers| PurgeTarget::Uri(key.clone().at(servers).digest());
            let key = ResourceKey::parse(value);
            key.map_or_else(Vec::new, |key| vec![at(&key, Servers::Origins), at(&key, Servers::Forwarded)])
        }
        b"prefix" => {
            let key = ResourceKey::parse(value);
            key.into_iter().map(|key| PurgeTarget::Prefix(key.uri().to_vec())).collect()
        }
        b"tag" => vec![PurgeTarget::Tag(value.to_vec())],
        b"all" if value == b"yes" => vec![PurgeTarget::All],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_names_one_url_prefix_or_tag() {
        let uri = |uri: &[u8]| {
            let key = ResourceKey::parse(uri).unwrap();
            [Servers::Origins, Servers::Forwarded].map(|at| PurgeTarget::Uri(key.clone().at(at).digest()))
        };
        assert_eq!(purge_targets(b"url=http://A:80/b?c=d"), uri(b"http://a/b?c=d"));
        assert_eq!(purge_targets(b"url=http://a/%7e?c=d&e=f"), uri(b"http://a/%7e?c=d&e=f"));
        assert_eq!(purge_targets(b"prefix=http://a/x"), [PurgeTarget::Prefix(b"http://a/x".to_vec())]);
        assert_eq!(purge_targets(b"tag=one"), [PurgeTarget::Tag(b"one".to_vec())]);
        assert_eq!(purge_targets(b"all=yes"), [PurgeTarget::All]);
        for bad in ["", "url", "url=", "url=x", "all=no", "prefix=/x", "x=y"] {
            assert_eq!(purge_targets(bad.as_bytes()), [], "{bad}");
        }
    }
}
