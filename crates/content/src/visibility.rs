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
    /// Clients that have a public link, likewise. No cache stores the files: the link may end.
    Linked,
}

impl Visibility {
    /// Whether hidden names are left out, and index pages and precompressed siblings are served.
    pub(crate) fn is_public(self) -> bool {
        self == Visibility::Public
    }

    /// Returns a number that distinguishes the audiences.
    pub(crate) fn code(self) -> u8 {
        match self {
            Visibility::Private => 0,
            Visibility::Public => 1,
            Visibility::Linked => 2,
        }
    }

    /// Returns the request fields that select the response, as the value of Vary.
    pub(crate) fn vary(self) -> &'static str {
        match self {
            // Always: a sibling may be added later, and a cache must not give it to a client that does not
            // accept its encoding.
            Visibility::Public => "Accept-Encoding",
            Visibility::Private => "Authorization, Cookie",
            Visibility::Linked => "Accept, Authorization, Cookie",
        }
    }

    /// Returns the value of Cache-Control of every response about a file, also of a 304. That of a public
    /// file is the operator's.
    pub(crate) fn file_cache_control(self) -> Option<&'static str> {
        match self {
            Visibility::Public => None,
            Visibility::Private => Some(PRIVATE),
            Visibility::Linked => Some(NOT_STORED),
        }
    }

    /// Returns further fields of every response with a file of this media type.
    pub(crate) fn file_fields(self, media: &str) -> &'static [(&'static str, &'static str)] {
        match self {
            Visibility::Public => &[],
            Visibility::Private => display_of(media).fields(),
            // The response has a Content-Disposition of its own, with the name of the file.
            Visibility::Linked => match display_of(media) {
                Display::Download => Display::Inert.fields(),
                display => display.fields(),
            },
        }
    }

    /// Returns the value of Cache-Control for a listing.
    pub fn listing_cache_control(self) -> &'static str {
        match self {
            Visibility::Public => "no-cache",
            Visibility::Private => PRIVATE,
            Visibility::Linked => NOT_STORED,
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

/// Whether a browser may show a file of this media type in its window.
pub fn is_displayed(media: &str) -> bool {
    display_of(media) != Display::Download
}

/// No cache stores a response.
const NOT_STORED: &str = "private, no-store";

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
