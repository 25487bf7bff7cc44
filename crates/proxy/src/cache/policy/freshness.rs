//! Freshness, age, and the use of stale responses (RFC 9111, section 4.2; RFC 5861).
//!
//! Not here: the choice of the lifetime ([`super::storable`]). Invariants: a response is fresh while its
//! age is below its lifetime; in one process, steps of the time of day change no age; after a restart, a
//! response from a time that lies ahead is validated at each use.

use std::time::{Duration, SystemTime};

use plimsoll_io::{Instant, Io};
use plimsoll_wire::http::date::{parse_date, usable_modification};

use super::directives::{RequestDirectives, ResponseDirectives, delta_seconds};
use super::fields::{FieldLines, list_members};

/// A point in time, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// The time of day, which a person or a program may set.
    pub wall: SystemTime,
    /// The time of the engine, which never goes back.
    pub steady: Instant,
}

impl Timestamp {
    /// Returns the present.
    #[must_use]
    pub fn now(io: &Io) -> Timestamp {
        Timestamp { wall: io.wall(), steady: io.now() }
    }
}

/// When a request was sent to the origin, and when the head of its response was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// When the request was sent.
    pub sent: Timestamp,
    /// When the head of the response was received.
    pub received: Timestamp,
}

/// How long a stored response may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    pub(super) received: Timestamp,
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
        let at = |freshness: &Freshness| (freshness.received.steady, freshness.received.wall);
        at(self) > at(other)
    }

    /// Resumes the age of a response that another process has received. `latest` is the latest time at which
    /// a stored response was received. If it lies ahead, the clock was set back: the present is later than it
    /// shows.
    pub fn resume(&mut self, now: Timestamp, latest: SystemTime) {
        self.always_validates |= self.received.wall > now.wall;
        let stored = latest.max(now.wall).duration_since(self.received.wall).unwrap_or_default();
        self.initial_age = self.initial_age.saturating_add(stored);
        self.received.steady = now.steady;
    }

    /// Returns the time of day at which the response was received.
    #[must_use]
    pub fn received_at(&self) -> SystemTime {
        self.received.wall
    }

    /// Returns the age at a time (section 4.2.3).
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        self.initial_age.saturating_add(now - self.received.steady)
    }

    /// Returns the seconds for which the response is still fresh; negative once it is stale.
    #[must_use]
    pub fn seconds_left(&self, now: Instant) -> i64 {
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        seconds(self.lifetime).saturating_sub(seconds(self.age(now)))
    }

    /// Decides whether the response may be used for a request with these directives.
    #[must_use]
    pub fn usability(&self, request: &RequestDirectives, now: Instant) -> Usability {
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
    pub fn is_usable_now(&self, request: &RequestDirectives, now: Instant) -> bool {
        matches!(self.usability(request, now), Usability::Fresh | Usability::StaleAccepted)
    }

    /// Whether the response may be used because the origin failed (RFC 5861, section 4).
    #[must_use]
    pub fn is_usable_on_error(&self, request: &RequestDirectives, now: Instant) -> bool {
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

/// Returns the Last-Modified of a response, if it distinguishes versions. It must not be later than Date, or
/// than the time at which the response was received if it has none.
pub(super) fn modified(fields: FieldLines<'_>, received: SystemTime) -> Option<SystemTime> {
    let date = fields.first("date").and_then(parse_date).unwrap_or(received);
    usable_modification(parse_date(fields.first("last-modified")?)?, date)
}

/// Computes the corrected initial age (section 4.2.3).
fn initial_age(fields: FieldLines<'_>, times: ExchangeTimes) -> Duration {
    let received = times.received.wall;
    let date = fields.first("date").and_then(parse_date).unwrap_or(received);
    let apparent = received.duration_since(date).unwrap_or_default();
    // "a recipient [of a list of values] ought to use the first value" (section 5.1).
    let age = fields.first("age").and_then(|value| list_members(value).next());
    let age = age.and_then(delta_seconds).unwrap_or_default();
    let delay = times.received.steady - times.sent.steady;
    apparent.max(age.saturating_add(delay))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 784_111_777;

    fn at(seconds: u64) -> Instant {
        Instant::from_start(Duration::from_secs(seconds))
    }

    fn moment(seconds: u64) -> Timestamp {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(START + seconds);
        Timestamp { wall, steady: at(seconds) }
    }

    fn freshness(lines: &str, lifetime: u64) -> Freshness {
        let fields = FieldLines::new(lines.as_bytes());
        let times = ExchangeTimes { sent: moment(0), received: moment(2) };
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
    fn a_clock_that_is_set_while_the_proxy_runs_changes_no_age() {
        let set = Timestamp { wall: SystemTime::UNIX_EPOCH, ..moment(12) };
        let times = ExchangeTimes { sent: moment(10), received: set };
        let fields = FieldLines::new(b"Age: 5\r\n");
        let directives = ResponseDirectives::default();
        let response = Freshness::new(&directives, fields, times, Duration::from_secs(9));
        assert_eq!(response.age(at(12)).as_secs(), 7);
        assert_eq!(response.age(at(22)).as_secs(), 17);
    }

    #[test]
    fn after_a_restart_the_age_goes_on_and_a_response_from_a_time_ahead_is_validated() {
        let none = RequestDirectives::default();
        let resumed = |now: u64, latest: u64| {
            let mut response = freshness("", 100);
            let now = Timestamp { steady: at(0), ..moment(now) };
            response.resume(now, moment(latest).wall);
            response
        };
        let response = resumed(32, 2);
        assert_eq!((response.age(at(0)).as_secs(), response.age(at(9)).as_secs()), (32, 41));
        assert_eq!(response.usability(&none, at(9)), Usability::Fresh);
        // Another response was received at 80, so that the clock, at 32, was set back.
        assert_eq!(resumed(32, 80).age(at(0)).as_secs(), 80);
        let ahead = resumed(1, 2);
        assert_eq!(ahead.usability(&none, at(0)), Usability::MustValidate);
        assert!(!ahead.is_usable_on_error(&none, at(0)));
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
