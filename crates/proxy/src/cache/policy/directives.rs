//! Cache-Control and Pragma (RFC 9111, sections 5.2 and 5.4; RFC 5861; RFC 8246).
//!
//! Not here: the effect of a directive. Invariants: names are compared without case; a directive that is sent
//! twice with different values counts as zero seconds, so that the response is stale (section 4.2.1); a line
//! that breaks the grammar makes each use validate, and still forbids what its words forbid.

use std::time::Duration;

use plimsoll_wire::http::is_token;

use super::fields::{FieldLines, list_members};
use crate::cache::limits::DELTA_SECONDS_MAX;

/// The directives of a request that this cache honours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `no-store`: the response must not be stored.
    pub no_store: bool,
    /// `no-cache`, or `Pragma: no-cache` without Cache-Control: the stored response must be validated.
    pub no_cache: bool,
    /// `only-if-cached`: a stored response, or 504.
    pub only_if_cached: bool,
    /// `max-age`: the largest acceptable age.
    pub max_age: Option<Duration>,
    /// `min-fresh`: the least time that the response must remain fresh.
    pub min_fresh: Option<Duration>,
    /// `max-stale`: the largest acceptable staleness; without a value, any.
    pub max_stale: Option<Duration>,
    /// `stale-if-error`: the largest acceptable staleness if the origin fails.
    pub stale_if_error: Option<Duration>,
}

/// The directives of a response that this cache honours.
// Each directive is a flag of the protocol, not a state of the cache.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache`, with or without field names.
    pub no_cache: bool,
    /// `private`, with or without field names.
    pub private: bool,
    /// `public`.
    pub public: bool,
    /// `must-revalidate`.
    pub must_revalidate: bool,
    /// `proxy-revalidate`.
    pub proxy_revalidate: bool,
    /// `must-understand`.
    pub must_understand: bool,
    /// `immutable`.
    pub immutable: bool,
    /// `max-age`.
    pub max_age: Option<Duration>,
    /// `s-maxage`.
    pub s_maxage: Option<Duration>,
    /// `stale-while-revalidate`.
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error`.
    pub stale_if_error: Option<Duration>,
    /// A line breaks the grammar.
    pub is_malformed: bool,
}

impl RequestDirectives {
    /// Reads the directives of a request.
    #[must_use]
    pub fn parse(fields: FieldLines<'_>) -> RequestDirectives {
        let mut directives = RequestDirectives::default();
        let Parsed { all, is_malformed } = Parsed::of(fields);
        let has_cache_control = is_malformed || !all.is_empty();
        directives.no_cache = is_malformed;
        for (name, argument) in all {
            let seconds = |old| merge_seconds(old, argument);
            match &*name {
                b"no-store" => directives.no_store = true,
                b"no-cache" => directives.no_cache = true,
                b"only-if-cached" => directives.only_if_cached = true,
                b"max-age" => directives.max_age = seconds(directives.max_age),
                b"min-fresh" => directives.min_fresh = seconds(directives.min_fresh),
                b"max-stale" if argument.is_none() => directives.max_stale = Some(Duration::MAX),
                b"max-stale" => directives.max_stale = seconds(directives.max_stale),
                b"stale-if-error" => directives.stale_if_error = seconds(directives.stale_if_error),
                _ => {}
            }
        }
        let mut pragma = fields.members("pragma");
        directives.no_cache |=
            !has_cache_control && pragma.any(|member| member.eq_ignore_ascii_case(b"no-cache"));
        directives
    }
}

impl ResponseDirectives {
    /// Reads the directives of a response.
    #[must_use]
    pub fn parse(fields: FieldLines<'_>) -> ResponseDirectives {
        let Parsed { all, is_malformed } = Parsed::of(fields);
        let mut directives = ResponseDirectives { is_malformed, ..ResponseDirectives::default() };
        for (name, argument) in all {
            let seconds = |old| merge_seconds(old, argument);
            match &*name {
                b"no-store" => directives.no_store = true,
                b"no-cache" => directives.no_cache = true,
                b"private" => directives.private = true,
                b"public" => directives.public = true,
                b"must-revalidate" => directives.must_revalidate = true,
                b"proxy-revalidate" => directives.proxy_revalidate = true,
                b"must-understand" => directives.must_understand = true,
                b"immutable" => directives.immutable = true,
                b"max-age" => directives.max_age = seconds(directives.max_age),
                b"s-maxage" => directives.s_maxage = seconds(directives.s_maxage),
                b"stale-while-revalidate" => {
                    directives.stale_while_revalidate = seconds(directives.stale_while_revalidate);
                }
                b"stale-if-error" => directives.stale_if_error = seconds(directives.stale_if_error),
                _ => {}
            }
        }
        directives
    }
}

/// A name in lower case, and an argument without quotes.
type Directive<'a> = (Vec<u8>, Option<&'a [u8]>);

/// The directives of all lines of Cache-Control.
struct Parsed<'a> {
    all: Vec<Directive<'a>>,
    is_malformed: bool,
}

impl<'a> Parsed<'a> {
    fn of(fields: FieldLines<'a>) -> Parsed<'a> {
        let mut parsed = Parsed { all: Vec::new(), is_malformed: false };
        for line in fields.all("cache-control") {
            let members: Option<Vec<_>> = list_members(line).map(directive).collect();
            parsed.is_malformed |= members.is_none();
            parsed.all.extend(members.unwrap_or_else(|| forbidding_words(line)));
        }
        parsed
    }
}

/// Parses a directive: `token [ "=" ( token / quoted-string ) ]`.
fn directive(member: &[u8]) -> Option<Directive<'_>> {
    let (name, argument) = match member.iter().position(|&byte| byte == b'=') {
        Some(at) => (member.get(..at)?, Some(argument(member.get(at + 1..)?)?)),
        None => (member, None),
    };
    is_token(name).then(|| (name.to_ascii_lowercase(), argument))
}

fn argument(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'"', inner @ .., b'"'] => (!has_end_of_quotes(inner)).then_some(inner),
        _ => is_token(text).then_some(text),
    }
}

/// Whether the text between two quotes has a third.
fn has_end_of_quotes(inner: &[u8]) -> bool {
    let mut is_escaped = false;
    let ends_inside = inner.iter().any(|&byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    ends_inside || is_escaped
}

/// Returns the directives that a malformed line may have meant, and that forbid storing.
fn forbidding_words(line: &[u8]) -> Vec<Directive<'_>> {
    const FORBIDDING: [&[u8]; 2] = [b"no-store", b"private"];
    let words = line.split(|&byte| !is_token(&[byte])).map(<[u8]>::to_ascii_lowercase);
    words.filter(|word| FORBIDDING.contains(&&**word)).map(|word| (word, None)).collect()
}

/// Returns the value of a directive after one more occurrence of it.
fn merge_seconds(old: Option<Duration>, argument: Option<&[u8]>) -> Option<Duration> {
    let new = argument.and_then(delta_seconds).unwrap_or_default();
    Some(if old.is_some_and(|old| old != new) { Duration::ZERO } else { new })
}

/// Parses delta-seconds (RFC 9111, section 1.2.2). A number above the limit is read as the limit.
pub(super) fn delta_seconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = value.iter().fold(0_u64, |sum, digit| {
        sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')).min(DELTA_SECONDS_MAX)
    });
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(value: &str) -> ResponseDirectives {
        ResponseDirectives::parse(FieldLines::new(format!("Cache-Control: {value}\r\n").as_bytes()))
    }

    fn request(lines: &str) -> RequestDirectives {
        RequestDirectives::parse(FieldLines::new(lines.as_bytes()))
    }

    #[test]
    fn names_are_compared_without_case_and_arguments_may_be_quoted() {
        let directives = response("Max-Age=\"60\", PUBLIC, S-MaxAge=5");
        assert_eq!(directives.max_age, Some(Duration::from_secs(60)));
        assert_eq!(directives.s_maxage, Some(Duration::from_secs(5)));
        assert!(directives.public);
    }

    #[test]
    fn a_directive_inside_a_quoted_argument_is_not_a_directive() {
        let directives = response("no-cache=\"a, private, no-store\", ext=\"max-age=9\"");
        assert!(directives.no_cache && !directives.private && !directives.no_store);
        assert_eq!(directives.max_age, None);
    }

    #[test]
    fn a_malformed_line_forbids_what_its_words_forbid_and_is_never_fresh() {
        for value in
            ["public; max-age=1", "max-age=60 public", "max-age =60", "max-age=\"60", "a=\"b\"c", "=1"]
        {
            let directives = response(value);
            assert!(
                directives.is_malformed && !directives.no_store && directives.max_age.is_none(),
                "{value}"
            );
        }
        for value in
            ["no-store; foo", "max-age=60;no-store", "max-age=60, ext=\"a, No-Store", "x=\"a\\\", no-store"]
        {
            assert!(response(value).is_malformed && response(value).no_store, "{value}");
        }
        assert!(response("max-age=60, private; x").private);
        for value in ["max-age=60,, public,", "ext=\"a\\\", no-store\"", "max-age=1.5", ""] {
            assert!(!response(value).is_malformed, "{value}");
        }
        let asked = request("Cache-Control: no-store; foo\r\n");
        assert!(asked.no_store && asked.no_cache);
    }

    #[test]
    fn conflicting_or_malformed_seconds_count_as_zero() {
        for value in ["max-age=1, max-age=2", "max-age=-5", "max-age=1.5", "max-age", "max-age=x"] {
            assert_eq!(response(value).max_age, Some(Duration::ZERO), "{value}");
        }
        assert_eq!(response("max-age=7, max-age=7").max_age, Some(Duration::from_secs(7)));
    }

    #[test]
    fn seconds_above_the_limit_are_read_as_the_limit() {
        let limit = Some(Duration::from_secs(DELTA_SECONDS_MAX));
        assert_eq!(response("max-age=99999999999999999999999").max_age, limit);
        assert_eq!(response("max-age=2147483648").max_age, limit);
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        assert!(request("Pragma: No-Cache\r\n").no_cache);
        assert!(!request("Pragma: no-cache\r\nCache-Control: max-age=5\r\n").no_cache);
    }

    #[test]
    fn max_stale_without_a_value_accepts_any_staleness() {
        assert_eq!(request("Cache-Control: max-stale\r\n").max_stale, Some(Duration::MAX));
        let bounded = request("Cache-Control: max-stale=9\r\n").max_stale;
        assert_eq!(bounded, Some(Duration::from_secs(9)));
    }
}
