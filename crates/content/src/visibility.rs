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
            Visibility::Private => "Authorization, Cookie",
        }
    }

    /// Returns the value of Cache-Control of every response about a file, also of a 304. That of a public
    /// file is the operator's.
    pub(crate) fn file_cache_control(self) -> Option<&'static str> {
        (self == Visibility::Private).then_some(PRIVATE)
    }

    /// Returns further fields of every response with a file of this media type.
    pub(crate) fn file_fields(self, media: &str) -> &'static [(&'static str, &'static str)] {
        match self {
            Visibility::Public => &[],
            Visibility::Private => display_of(media).fields(),
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

/// How a browser may use an uploaded file that a person opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Display {
    /// In its window: the kind has no scripts.
    Inert,
    /// By its viewer of PDF, which runs scripts of a file away from every page.
    Viewer,
    /// Only as a download.
    Download,
}

/// Returns how a browser may use a file of this media type.
fn display_of(media: &str) -> Display {
    match media {
        "application/pdf" => Display::Viewer,
        "text/plain; charset=utf-8" | "text/markdown; charset=utf-8" => Display::Inert,
        // Unlike other pictures, it may have scripts.
        "image/svg+xml" => Display::Download,
        _ if ["image/", "audio/", "video/"].iter().any(|kind| media.starts_with(kind)) => Display::Inert,
        _ => Display::Download,
    }
}

impl Display {
    fn fields(self) -> &'static [(&'static str, &'static str)] {
        /// Browsers display the file without scripts, forms and external content, in an origin of its own.
        const SANDBOX: (&str, &str) = (
            "Content-Security-Policy",
            "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'; \
             frame-ancestors 'self'",
        );
        /// A browser's viewer does not open in a sandbox.
        const OF_VIEWER: (&str, &str) =
            ("Content-Security-Policy", "script-src 'none'; object-src 'self'; frame-ancestors 'self'");
        /// Pages of other sites cannot embed the file.
        const OWN_PAGES: (&str, &str) = ("Cross-Origin-Resource-Policy", "same-origin");
        match self {
            Display::Inert => &[SANDBOX, OWN_PAGES],
            Display::Viewer => &[OF_VIEWER, OWN_PAGES],
            Display::Download => &[SANDBOX, OWN_PAGES, ("Content-Disposition", "attachment")],
        }
    }
}

/// Caches must revalidate at each use, because a right may have ended.
const PRIVATE: &str = "private, no-cache";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_could_have_scripts_is_downloaded() {
        for media in ["text/html; charset=utf-8", "image/svg+xml", "text/xml", "application/xhtml+xml"] {
            assert_eq!(display_of(media), Display::Download, "{media}");
        }
        for media in ["image/png", "audio/mpeg", "video/mp4", "text/plain; charset=utf-8"] {
            assert_eq!(display_of(media), Display::Inert, "{media}");
        }
        assert_eq!(display_of("application/pdf"), Display::Viewer);
    }
}
