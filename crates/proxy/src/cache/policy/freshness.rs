//! Freshness, age, and the use of stale responses (RFC 9111, section 4.2; RFC 5861).
//!
//! Not here: the choice of the lifetime ([`super::storable`]). Invariants: a response is fresh while its
//! age is below its lifetime; a clock that goes back makes no response younger than when it was received.

use std::time::{Duration, SystemTime};

use plimsoll_wire::http::date::parse_date;

use super::directives::{RequestDirectives, ResponseDirectives, delta_seconds};
use super::fields::{FieldLines, list_members};

/// When a request was sent to the origin, and when the head of its response was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// When the request was sent.
    pub sent: SystemTime,
    /// When the head of the response was received.
    pub received: SystemTime,
}

/// How long a stored response may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    pub(super) received: SystemTime,
    pub(super) initial_age: Duration,
    pub(super) lifetime: Duration,
    pub(super) while_revalidate: Duration,
    pub(super) if_error: Duration,
    /// `no-cache`: each use needs a validation.
    pub(super) always_validates: bool,
    /// `must-revalidate`, `proxy-revalidate`: no use once stale.
    pub(super) never_stale: bool,
    /// `s-maxage` "also implies the semantics of proxy-revalidate" (section 5.2.2.10). A `stale-*` directive
    /// beside it is the origin's explicit exception; a client's `max-stale` is not.
    pub(super) ignores_client_staleness: bool,
}

/// Whether a stored response may be used for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usability {
    /// It is fresh.
    Fresh,
    /// It is stale, and the request accepts that.
    StaleAccepted,
    /// It is stale; it may be used now if a validation is started.
    StaleWhileRevalidate,
    /// It must be validated first.
    MustValidate,
}

impl Freshness {
    pub(super) fn new(
        directives: &ResponseDirectives,
        fields: FieldLines<'_>,
        times: ExchangeTimes,
        lifetime: Duration,
    ) -> Freshness {
        Freshness {
            received: times.received,
            initial_age: initial_age(fields, times),
            lifetime,
            while_revalidate: directives.stale_while_revalidate.unwrap_or_default(),
            if_error: directives.stale_if_error.unwrap_or_default(),
            always_validates: directives.no_cache,
            never_stale: directives.must_revalidate || directives.proxy_revalidate,
            ignores_client_staleness: directives.s_maxage.is_some(),
        }
    }

    /// Whether the response was received later than another.
    #[must_use]
    pub fn is_newer_than(&self, other: &Freshness) -> bool {
        self.received > other.received
    }

    /// Returns the age at a time (section 4.2.3).
    #[must_use]
    pub fn age(&self, now: SystemTime) -> Duration {
        self.initial_age.saturating_add(now.duration_since(self.received).unwrap_or_default())
    }

    /// Returns the seconds for which the response is still fresh; negative once it is stale.
    #[must_use]
    pub fn seconds_left(&self, now: SystemTime) -> i64 {
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        seconds(self.lifetime).saturating_sub(seconds(self.age(now)))
    }

    /// Decides whether the response may be used for a request with these directives.
    #[must_use]
    pub fn usability(&self, request: &RequestDirectives, now: SystemTime) -> Usability {
        let age = self.age(now);
        let is_too_old = request.max_age.is_some_and(|max| age > max);
        if self.always_validates || request.no_cache || is_too_old {
            return Usability::MustValidate;
        }
        if age < self.lifetime {
            let remains = self.lifetime - age;
            let is_enough = request.min_fresh.is_none_or(|min| remains >= min);
            return if is_enough { Usability::Fresh } else { Usability::MustValidate };
        }
        let staleness = age - self.lifetime;
        if self.never_stale || request.min_fresh.is_some() {
            return Usability::MustValidate;
        }
        if !self.ignores_client_staleness && request.max_stale.is_some_and(|max| staleness <= max) {
            return Usability::StaleAccepted;
        }
        if staleness < self.while_revalidate {
            return Usability::StaleWhileRevalidate;
        }
        Usability::MustValidate
    }

    /// Whether the response may be used for a request with these directives, without another one to the
    /// origin.
    #[must_use]
    pub fn is_usable_now(&self, request: &RequestDirectives, now: SystemTime) -> bool {
        matches!(self.usability(request, now), Usability::Fresh | Usability::StaleAccepted)
    }

    /// Whether the response may be used because the origin failed (RFC 5861, section 4).
    #[must_use]
    pub fn is_usable_on_error(&self, request: &RequestDirectives, now: SystemTime) -> bool {
        if self.always_validates || self.never_stale || request.no_cache {
            return false;
        }
        let of_client = request.stale_if_error.filter(|_| !self.ignores_client_staleness);
        let allowed = self.if_error.max(of_client.unwrap_or_default());
        self.age(now).saturating_sub(self.lifetime) < allowed
    }

    /// Whether the response is worth storing without a validator.
    pub(super) fn is_usable_unvalidated(&self) -> bool {
        let usable = self.lifetime.saturating_add(self.while_revalidate.max(self.if_error));
        !self.always_validates && self.initial_age < usable
    }
}

/// Computes the corrected initial age (section 4.2.3).
fn initial_age(fields: FieldLines<'_>, times: ExchangeTimes) -> Duration {
    let date = fields.first("date").and_then(parse_date).unwrap_or(times.received);
    let apparent = times.received.duration_since(date).unwrap_or_default();
    // "a recipient [of a list of values] ought to use the first value" (section 5.1).
    let age = fields.first("age").and_then(|value| list_members(value).next());
    let age = age.and_then(delta_seconds).unwrap_or_default();
    let delay = times.received.duration_since(times.sent).unwrap_or_default();
    apparent.max(age.saturating_add(delay))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 784_111_777;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(START + seconds)
    }

    fn freshness(lines: &str, lifetime: u64) -> Freshness {
        let fields = FieldLines::new(lines.as_bytes());
        let times = ExchangeTimes { sent: at(0), received: at(2) };
        let directives = ResponseDirectives::parse(fields);
        Freshness::new(&directives, fields, times, Duration::from_secs(lifetime))
    }

    fn usability(of: &Freshness, request: &str, seconds: u64) -> Usability {
        let lines = format!("Cache-Control: {request}\r\n");
        of.usability(&RequestDirectives::parse(FieldLines::new(lines.as_bytes())), at(seconds))
    }

    #[test]
    fn age_is_the_larger_of_the_date_and_the_age_field_with_the_delay() {
        // RFC 9111, section 4.2.3.
        assert_eq!(freshness("Age: 5\r\n", 9).age(at(2)).as_secs(), 7);
        assert_eq!(freshness("Age: 5\r\n", 9).age(at(12)).as_secs(), 17);
        let date = "Date: Sun, 06 Nov 1994 08:49:07 GMT\r\nAge: 5\r\n";
        assert_eq!(freshness(date, 9).age(at(2)).as_secs(), 32);
        let future = "Date: Sun, 06 Nov 2033 08:49:07 GMT\r\n";
        assert_eq!(freshness(future, 9).age(at(2)).as_secs(), 2);
    }

    #[test]
    fn a_malformed_age_is_ignored_and_of_a_list_the_first_counts() {
        for (age, seconds) in
            [("-7", 2), ("7.5", 2), ("x", 2), ("7, 9", 9), ("99999999999999999999", 2 + (1 << 31))]
        {
            assert_eq!(freshness(&format!("Age: {age}\r\n"), 9).age(at(2)).as_secs(), seconds, "{age}");
        }
    }

    #[test]
    fn a_response_is_fresh_until_its_age_reaches_its_lifetime() {
        let ten = freshness("", 10);
        assert_eq!(usability(&ten, "", 9), Usability::Fresh);
        assert_eq!(usability(&ten, "", 10), Usability::MustValidate);
        assert_eq!(ten.seconds_left(at(4)), 6);
        assert_eq!(ten.seconds_left(at(14)), -4);
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_response_younger() {
        assert_eq!(freshness("Age: 5\r\n", 9).age(SystemTime::UNIX_EPOCH).as_secs(), 7);
    }

    #[test]
    fn the_directives_of_a_request_narrow_the_use() {
        // RFC 9111, section 5.2.1.
        let hundred = freshness("", 100);
        assert_eq!(usability(&hundred, "max-age=10", 10), Usability::Fresh);
        assert_eq!(usability(&hundred, "max-age=10", 11), Usability::MustValidate);
        assert_eq!(usability(&hundred, "min-fresh=50", 50), Usability::Fresh);
        assert_eq!(usability(&hundred, "min-fresh=50", 51), Usability::MustValidate);
        assert_eq!(usability(&hundred, "no-cache", 1), Usability::MustValidate);
    }

    #[test]
    fn max_stale_permits_a_stale_response_unless_the_origin_forbids_it() {
        let ten = freshness("", 10);
        assert_eq!(usability(&ten, "max-stale=5", 15), Usability::StaleAccepted);
        assert_eq!(usability(&ten, "max-stale=5", 16), Usability::MustValidate);
        assert_eq!(usability(&ten, "max-stale", 9999), Usability::StaleAccepted);
        for forbids in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=10"] {
            let strict = freshness(&format!("Cache-Control: {forbids}\r\n"), 10);
            assert_eq!(usability(&strict, "max-stale", 11), Usability::MustValidate, "{forbids}");
        }
    }

    #[test]
    fn stale_while_revalidate_has_its_window_and_must_revalidate_closes_it() {
        // RFC 5861, section 3.
        let open = freshness("Cache-Control: stale-while-revalidate=5\r\n", 10);
        assert_eq!(usability(&open, "", 14), Usability::StaleWhileRevalidate);
        assert_eq!(usability(&open, "", 15), Usability::MustValidate);
        let closed = freshness("Cache-Control: stale-while-revalidate=5, must-revalidate\r\n", 10);
        assert_eq!(usability(&closed, "", 14), Usability::MustValidate);
    }

    #[test]
    fn stale_if_error_has_its_window_in_the_response_or_the_request() {
        // RFC 5861, section 4.
        let none = RequestDirectives::default();
        let wide = freshness("Cache-Control: stale-if-error=5\r\n", 10);
        assert!(wide.is_usable_on_error(&none, at(14)));
        assert!(!wide.is_usable_on_error(&none, at(15)));
        let asked = RequestDirectives { stale_if_error: Some(Duration::from_secs(9)), ..none };
        assert!(freshness("", 10).is_usable_on_error(&asked, at(18)));
        assert!(!freshness("Cache-Control: must-revalidate\r\n", 10).is_usable_on_error(&asked, at(18)));
        assert!(!wide.is_usable_on_error(&RequestDirectives { no_cache: true, ..none }, at(14)));
    }
}
