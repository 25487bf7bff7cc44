//! The Cache-Status field (RFC 9211): how the cache handled a request, for a person who debugs it.
//!
//! It decides nothing. Invariant: the text is a valid list member of structured fields, whatever happened.

use std::fmt;

use super::request::Bypass;

/// The reason why a request was forwarded to the origin (RFC 9211, section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// The cache was configured, or made by the request, not to handle it.
    Bypass,
    /// The method requires it.
    Method,
    /// No response is stored for the URI.
    UriMiss,
    /// Responses are stored for the URI, but none for these request fields.
    VaryMiss,
    /// The stored response is fresh, but the request does not accept it.
    Request,
    /// The stored response is stale.
    Stale,
    /// The stored response lacks a part of the requested range.
    Partial,
}

impl Forwarded {
    fn token(self) -> &'static str {
        match self {
            Forwarded::Bypass => "bypass",
            Forwarded::Method => "method",
            Forwarded::UriMiss => "uri-miss",
            Forwarded::VaryMiss => "vary-miss",
            Forwarded::Request => "request",
            Forwarded::Stale => "stale",
            Forwarded::Partial => "partial",
        }
    }
}

/// The value of a Cache-Status field, written with `Display`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Whether the response comes from the cache.
    pub is_hit: bool,
    /// Why the request was forwarded.
    pub forwarded: Option<Forwarded>,
    /// The status of the origin's response, if another was sent to the client.
    pub forwarded_status: Option<u16>,
    /// Seconds of freshness left; negative if stale.
    pub ttl: Option<i64>,
    /// Whether the response was stored.
    pub is_stored: bool,
    /// Whether the request waited for the fetch of another.
    pub is_collapsed: bool,
    /// A token with the reason.
    pub detail: Option<&'static str>,
}

impl CacheStatus {
    /// Creates the status of a hit.
    #[must_use]
    pub fn hit(ttl: i64) -> CacheStatus {
        CacheStatus { is_hit: true, ttl: Some(ttl), ..CacheStatus::default() }
    }

    /// Creates the status of a forwarded request.
    #[must_use]
    pub fn forwarded(reason: Forwarded) -> CacheStatus {
        CacheStatus { forwarded: Some(reason), ..CacheStatus::default() }
    }

    /// Creates the status of a request that went past the cache.
    #[must_use]
    pub fn bypassed(bypass: Bypass) -> CacheStatus {
        match bypass {
            Bypass::Method => CacheStatus::forwarded(Forwarded::Method),
            _ => CacheStatus { detail: Some(bypass.detail()), ..CacheStatus::forwarded(Forwarded::Bypass) },
        }
    }
}

impl fmt::Display for CacheStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plimsoll")?;
        // A response that is both is a validated one: "hit" is only for requests that were not forwarded.
        if self.is_hit && self.forwarded.is_none() {
            f.write_str("; hit")?;
        }
        if let Some(forwarded) = self.forwarded {
            write!(f, "; fwd={}", forwarded.token())?;
        }
        if let Some(status) = self.forwarded_status {
            write!(f, "; fwd-status={status}")?;
        }
        if let Some(ttl) = self.ttl {
            write!(f, "; ttl={ttl}")?;
        }
        if self.is_stored {
            f.write_str("; stored")?;
        }
        if self.is_collapsed {
            f.write_str("; collapsed")?;
        }
        match self.detail {
            Some(detail) => write!(f, "; detail={detail}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_9211_are_written_as_there() {
        assert_eq!(CacheStatus::hit(376).to_string(), "plimsoll; hit; ttl=376");
        let stale = CacheStatus { forwarded_status: Some(304), ..CacheStatus::forwarded(Forwarded::Stale) };
        assert_eq!(stale.to_string(), "plimsoll; fwd=stale; fwd-status=304");
        let joined =
            CacheStatus { is_collapsed: true, is_stored: true, ..CacheStatus::forwarded(Forwarded::UriMiss) };
        assert_eq!(joined.to_string(), "plimsoll; fwd=uri-miss; stored; collapsed");
        let bypassed = |bypass| CacheStatus::bypassed(bypass).to_string();
        assert_eq!(bypassed(Bypass::NoStore), "plimsoll; fwd=bypass; detail=no-store");
        assert_eq!(bypassed(Bypass::Method), "plimsoll; fwd=method");
    }
}
