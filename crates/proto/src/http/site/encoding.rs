//! Precompressed siblings: `page.html.br` and `page.html.gz` beside `page.html`.
//!
//! Nothing is compressed here. What must hold: an encoding that the client does not take is never sent.

use plimsoll_wire::http::negotiate::{Quality, accepts_encoding};

/// A coding that siblings may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Brotli (RFC 7932).
    Brotli,
    /// Gzip (RFC 1952).
    Gzip,
}

/// The codings that a client takes, the one it likes best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encodings([Option<Encoding>; 2]);

impl Encoding {
    pub(super) fn name(self) -> &'static str {
        match self {
            Encoding::Brotli => "br",
            Encoding::Gzip => "gzip",
        }
    }

    pub(super) fn suffix(self) -> &'static [u8] {
        match self {
            Encoding::Brotli => b".br",
            Encoding::Gzip => b".gz",
        }
    }

    /// How much a client wants it, unless not at all or less than the file as it is.
    fn taken(self, field: &[u8]) -> Option<(Encoding, Quality)> {
        let quality = accepts_encoding(field, self.name().as_bytes());
        let plain = accepts_encoding(field, b"identity");
        (quality.is_acceptable() && quality >= plain).then_some((self, quality))
    }
}

impl Encodings {
    /// None is taken.
    pub(super) const NONE: Encodings = Encodings([None; 2]);
    /// All are taken, as by browsers.
    pub(super) const ALL: Encodings = Encodings([Some(Encoding::Brotli), Some(Encoding::Gzip)]);

    /// What an Accept-Encoding field says; without one, a sibling is not looked for.
    pub(super) fn accepted(field: Option<&[u8]>) -> Encodings {
        let Some(field) = field else { return Encodings::NONE };
        match (Encoding::Brotli.taken(field), Encoding::Gzip.taken(field)) {
            (Some((brotli, liked)), Some((gzip, more))) if more.thousandths() > liked.thousandths() => {
                Encodings([Some(gzip), Some(brotli)])
            }
            (brotli, gzip) => Encodings([brotli, gzip].map(|taken| taken.map(|(encoding, _)| encoding))),
        }
    }

    /// A number of its own for each order.
    pub(super) fn code(self) -> u8 {
        self.0.iter().fold(0, |code, taken| code * 3 + taken.map_or(0, |encoding| encoding as u8 + 1))
    }

    pub(super) fn in_order(self) -> impl Iterator<Item = Encoding> {
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
