//! Whether a folder is public or private, and the response fields that follow from it.
//!
//! Invariants: an uploaded file cannot run code in a browser that displays it; no shared cache stores a
//! private file.

/// The audience of a folder's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Every client: index pages and precompressed siblings are served, hidden names are not.
    Public,
    /// Clients with permission: every name is served, as it is.
    Private,
}

impl Visibility {
    /// Whether hidden names are left out, and index pages and precompressed siblings are served.
    pub(crate) fn is_public(self) -> bool {
        self == Visibility::Public
    }

    /// Returns the request fields that select the response, as the value of Vary.
    pub(crate) fn vary(self) -> &'static str {
        match self {
            // Always: a sibling may be added later, and a cache must not give it to a client that does not
            // accept its encoding.
            Visibility::Public => "Accept-Encoding",
            Visibility::Private => "Authorization",
        }
    }

    /// Returns the value of Cache-Control of every response about a file, also of a 304. That of a public
    /// file is the operator's.
    pub(crate) fn file_cache_control(self) -> Option<&'static str> {
        (self == Visibility::Private).then_some(PRIVATE)
    }

    /// Returns further fields of every response with a file.
    pub(crate) fn file_fields(self) -> &'static [(&'static str, &'static str)] {
        /// Browsers display a page without scripts, forms and external content, in an origin of its own.
        const POLICY: &str = "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self'; \
                              style-src 'unsafe-inline'";
        match self {
            Visibility::Public => &[],
            Visibility::Private => &[("Content-Security-Policy", POLICY)],
        }
    }

    /// Returns the value of Cache-Control for a listing.
    pub fn listing_cache_control(self) -> &'static str {
        match self {
            Visibility::Public => "no-cache",
            Visibility::Private => PRIVATE,
        }
    }
}

/// Caches must revalidate at each use, because a right may have ended.
const PRIVATE: &str = "private, no-cache";
