//! How a folder's files are served: as a site to anyone, or as somebody's own to who may read them.
//!
//! It does not decide who may. What must hold: whatever a stranger has uploaded can do nothing in a browser
//! that shows it, and no shared cache keeps it.

/// How a folder's files are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As its owner has made it for the world: index pages, precompressed siblings, and no hidden names.
    Site,
    /// As they are, every name, to who may read them.
    Private,
}

impl Manner {
    /// Whether hidden names are left out, and index pages and precompressed siblings are taken.
    pub(super) fn is_site(self) -> bool {
        self == Manner::Site
    }

    /// What of a request, beside its target, a file's answer depends on.
    pub(super) fn vary(self) -> &'static str {
        match self {
            // Always: a sibling may come later, and a cache must not give one client what another asked for.
            Manner::Site => "Accept-Encoding",
            Manner::Private => "Authorization",
        }
    }

    /// Fields that every answer with a file has.
    pub(super) fn of_files(self) -> &'static [(&'static str, &'static str)] {
        /// A page is shown without scripts, forms and anything from elsewhere, as if from a place of its own.
        const POLICY: &str = "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self'; \
                              style-src 'unsafe-inline'";
        match self {
            Manner::Site => &[],
            Manner::Private => &[("Content-Security-Policy", POLICY), ("Cache-Control", PRIVATE)],
        }
    }

    /// The Cache-Control of a listing.
    pub(super) fn of_listings(self) -> &'static str {
        match self {
            Manner::Site => "no-cache",
            Manner::Private => PRIVATE,
        }
    }
}

/// For who may read it alone, and to be asked for again each time: a right may have ended.
const PRIVATE: &str = "private, no-cache";
