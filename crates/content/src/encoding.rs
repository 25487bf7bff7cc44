//! Precompressed siblings: `page.html.br` and `page.html.gz` beside `page.html`.
//!
//! Nothing is compressed here. Invariant: an encoding that the client does not accept is never sent.

use plimsoll_wire::http::negotiate::{Quality, accepts_encoding};

/// The encoding of a sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Brotli (RFC 7932).
    Brotli,
    /// Gzip (RFC 1952).
    Gzip,
}

/// The encodings that a client accepts, the preferred one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encodings([Option<Encoding>; 2]);

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Encoding::Brotli => "br",
            Encoding::Gzip => "gzip",
        }
    }

    pub(crate) fn suffix(self) -> &'static [u8] {
        match self {
            Encoding::Brotli => b".br",
            Encoding::Gzip => b".gz",
        }
    }

    /// Returns its quality value, unless the client does not accept it, or prefers the plain file.
    fn quality(self, field: &[u8]) -> Option<(Encoding, Quality)> {
        let quality = accepts_encoding(field, self.name().as_bytes());
        let plain = accepts_encoding(field, b"identity");
        (quality.is_acceptable() && quality >= plain).then_some((self, quality))
    }
}

impl Encodings {
    /// None is accepted.
    pub(crate) const NONE: Encodings = Encodings([None; 2]);
    /// All are accepted, as by browsers.
    pub(crate) const ALL: Encodings = Encodings([Some(Encoding::Brotli), Some(Encoding::Gzip)]);

    /// Parses an Accept-Encoding field. Without one, siblings are not served.
    pub(crate) fn accepted(field: Option<&[u8]>) -> Encodings {
        let Some(field) = field else { return Encodings::NONE };
        match (Encoding::Brotli.quality(field), Encoding::Gzip.quality(field)) {
            (Some((brotli, liked)), Some((gzip, more))) if more.thousandths() > liked.thousandths() => {
                Encodings([Some(gzip), Some(brotli)])
            }
            (brotli, gzip) => Encodings([brotli, gzip].map(|taken| taken.map(|(encoding, _)| encoding))),
        }
    }

    /// Returns a distinct number for each value.
    pub(crate) fn code(self) -> u8 {
        self.0.iter().fold(0, |code, taken| code * 3 + taken.map_or(0, |encoding| encoding as u8 + 1))
    }

    pub(crate) fn in_order(self) -> impl Iterator<Item = Encoding> {
        self.0.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(field: &str) -> Vec<&'static str> {
        Encodings::accepted(Some(field.as_bytes())).in_order().map(Encoding::name).collect()
    }

    #[test]
    fn the_smaller_comes_first_unless_the_client_likes_the_other_better() {
        assert_eq!(order("gzip, br"), ["br", "gzip"]);
        assert_eq!(order("gzip;q=1, br;q=0.5"), ["gzip", "br"]);
        assert_eq!(order("gzip"), ["gzip"]);
        assert_eq!(order("br;q=0, gzip"), ["gzip"]);
        assert!(order("identity").is_empty());
        assert_eq!(order("identity;q=0.5, gzip;q=0.4, br"), ["br"]);
        assert_eq!(order("identity, gzip"), ["gzip"]);
        assert!(Encodings::accepted(None).in_order().next().is_none());
    }
}
