//! Content negotiation: Accept, Accept-Encoding and Accept-Language (RFC 9110, section 12.5).
//!
//! Not here: the available representations. Invariant: a malformed member is ignored and never fails a
//! request, since these fields are preferences.

use super::grammar::{list, split_unquoted};

/// The preference for a coding or media type, in thousandths. 0 means not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quality(u16);

impl Quality {
    /// `q=0`: "a value of 0 means "not acceptable"" (RFC 9110, section 12.4.2).
    pub const NONE: Self = Self(0);
    /// Acceptable by default, without an entry in the field.
    pub const LEAST: Self = Self(1);
    /// `q=1`, which is also the default of a member without q.
    pub const FULL: Self = Self(1000);

    /// Returns whether this is acceptable.
    #[must_use]
    pub fn is_acceptable(self) -> bool {
        self != Self::NONE
    }

    /// Returns the value in thousandths.
    #[must_use]
    pub fn thousandths(self) -> u16 {
        self.0
    }
}

/// Returns the preference that an Accept-Encoding field gives to `coding`.
///
/// "identity", the absence of a coding, is acceptable unless it is excluded: "If the representation has no
/// content coding, then it is acceptable by default unless specifically excluded by the Accept-Encoding
/// header field stating either "identity;q=0" or "*;q=0" without a more specific entry for "identity""
/// (section 12.5.3).
#[must_use]
pub fn accepts_encoding(value: &[u8], coding: &[u8]) -> Quality {
    let is_identity = coding.eq_ignore_ascii_case(b"identity");
    let mut named = None;
    let mut any = None;
    for (name, quality) in members(value) {
        if is_same_coding(name, coding) {
            named = named.max(Some(quality));
        } else if name == b"*" {
            any = any.max(Some(quality));
        }
    }
    let least = if is_identity { Quality::LEAST } else { Quality::NONE };
    let by_wildcard = any.map(|quality| if is_identity { quality.min(Quality::LEAST) } else { quality });
    named.or(by_wildcard).unwrap_or(least)
}

/// "A recipient SHOULD consider "x-gzip" to be equivalent to "gzip"" (section 8.4.1.3).
fn is_same_coding(name: &[u8], coding: &[u8]) -> bool {
    let plain = |name: &[u8]| name.eq_ignore_ascii_case(b"x-gzip");
    name.eq_ignore_ascii_case(coding) || (plain(name) && coding.eq_ignore_ascii_case(b"gzip"))
}

/// Returns the offered media type with the highest preference, the first among equals. Returns None if none
/// is acceptable.
///
/// An empty Accept states no preference, so the first offer is chosen.
#[must_use]
pub fn choose<'a>(accept: &[u8], offers: &[&'a str]) -> Option<&'a str> {
    if list(accept).next().is_none() {
        return offers.first().copied();
    }
    let mut best = (Quality::NONE, None);
    for &offer in offers {
        let quality = media_quality(accept, offer.as_bytes());
        if quality > best.0 {
            best = (quality, Some(offer));
        }
    }
    best.1
}

/// Returns the offered language with the highest preference, the first among equals. Offers are primary tags,
/// such as `de`, and match every range that begins with them (RFC 4647, section 3.3.1).
#[must_use]
pub fn choose_language<'a>(accept: &[u8], offers: &[&'a str]) -> Option<&'a str> {
    let mut best = (Quality::NONE, None);
    for (range, quality) in members(accept) {
        let primary = range.split(|&byte| byte == b'-').next().unwrap_or_default();
        let offered = offers.iter().find(|offer| primary.eq_ignore_ascii_case(offer.as_bytes()));
        if let Some(offer) = offered.filter(|_| quality > best.0) {
            best = (quality, Some(*offer));
        }
    }
    best.1
}

/// Returns whether HTML is preferred to JSON. A browser's Accept prefers it, `*/*` does not.
#[must_use]
pub fn prefers_html(accept: &[u8]) -> bool {
    choose(accept, &["application/json", "text/html"]) == Some("text/html")
}

/// Returns whether JSON is preferred to HTML. An Accept that names JSON prefers it. `*/*` and an absent
/// Accept do not, because wget, lftp and rclone follow the links of a page.
#[must_use]
pub fn prefers_json(accept: &[u8]) -> bool {
    choose(accept, &["text/html", "application/json"]) == Some("application/json")
}

/// Returns the preference for a media type: "If more than one media range applies to a given type, the most
/// specific reference has precedence" (section 12.5.1).
///
/// Parameters of a range other than q are not compared: a client that requests `text/html;charset=utf-8`
/// wants HTML.
fn media_quality(accept: &[u8], offer: &[u8]) -> Quality {
    let mut best = (0, Quality::NONE);
    for (range, quality) in members(accept) {
        let specificity = media_specificity(range, offer);
        if specificity > 0 && (specificity, quality) > best {
            best = (specificity, quality);
        }
    }
    best.1
}

/// Returns 3 for the type itself, 2 for `type/*`, 1 for `*/*`, 0 for another type.
fn media_specificity(range: &[u8], offer: &[u8]) -> u8 {
    let kind = |media: &[u8]| media.iter().position(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    match range {
        _ if range.eq_ignore_ascii_case(offer) => 3,
        b"*/*" => 1,
        [kind_range @ .., b'*'] if kind(range) == kind_range.len() && kind(offer) == kind_range.len() => {
            let offered = offer.get(..kind_range.len()).unwrap_or_default();
            if kind_range.eq_ignore_ascii_case(offered) { 2 } else { 0 }
        }
        _ => 0,
    }
}

/// Iterates over the members of such a field and their qualities. A member with an invalid q is skipped.
fn members(value: &[u8]) -> impl Iterator<Item = (&[u8], Quality)> {
    list(value).filter_map(|member| {
        let mut parts = split_unquoted(member, b';');
        let name = parts.next()?;
        let quality = parts.find_map(|parameter| match parameter {
            [b'q' | b'Q', b'=', weight @ ..] => Some(parse_quality(weight)),
            _ => None,
        });
        Some((name, quality.unwrap_or(Some(Quality::FULL))?))
    })
}

/// `qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] )`
fn parse_quality(weight: &[u8]) -> Option<Quality> {
    let (whole, fraction) = match weight {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let mut thousandths = digit(*whole)? * 1000;
    for (&byte, place) in fraction.iter().zip([100, 10, 1]) {
        thousandths += digit(byte)? * place;
    }
    (thousandths <= 1000).then_some(Quality(thousandths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_language_is_chosen_among_the_offers() {
        for (accept, language) in [
            ("de-AT,de;q=0.9,en;q=0.8", Some("de")),
            ("fr, en-GB;q=0.5, de;q=0.4", Some("en")),
            ("en;q=0.1, DE", Some("de")),
            ("fr", None),
            ("de;q=0", None),
            ("", None),
        ] {
            assert_eq!(choose_language(accept.as_bytes(), &["en", "de"]), language, "{accept}");
        }
    }
}
