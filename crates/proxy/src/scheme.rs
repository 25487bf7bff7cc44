//! The scheme of a request's URL: whether its client's connection is encrypted.
//!
//! It does not encrypt. Invariant: a client that is not a trusted proxy cannot claim a scheme.

use plimsoll_io::Stream;

use crate::cache::policy::FieldBlock;
use crate::fields::is_name;

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// Returns the scheme of the requests on a connection.
    pub(crate) fn of(stream: &Stream) -> Scheme {
        if stream.is_encrypted() { Scheme::Https } else { Scheme::Http }
    }

    /// Returns the scheme that is reported to an origin, which may answer by it: that of a trusted proxy's
    /// X-Forwarded-Proto, or else that of the connection. `fields` are those that the origin gets.
    pub(crate) fn as_forwarded(self, fields: &FieldBlock) -> Scheme {
        let reported = fields.lines().iter().find(|(name, _)| is_name(name, b"x-forwarded-proto"));
        match reported {
            Some((_, value)) if value.eq_ignore_ascii_case(b"https") => Scheme::Https,
            Some(_) => Scheme::Http,
            None => self,
        }
    }

    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}
