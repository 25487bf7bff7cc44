//! The time of the next renewal.
//!
//! It reads no clock and draws no random numbers. Invariants: a certificate is renewed before it ends, if
//! the server allows it. The same certificate, window and position have the same time, so that a repeated
//! look at the renewal information does not postpone the renewal.

use std::time::{Duration, SystemTime};

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its first moment.
    pub begins: SystemTime,
    /// Its last moment.
    pub ends: SystemTime,
}

/// The time in which a server suggests to renew a certificate (RFC 9773).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first moment.
    pub begins: SystemTime,
    /// Its last moment.
    pub ends: SystemTime,
}

/// A random position in a span of time, which spreads the renewals of many servers: thousandths of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(u32);

/// Thousandths of a span.
const WHOLE: u32 = 1000;
/// The share of its lifetime after which a certificate is renewed, at the latest.
const RENEWED_AT: (u32, u32) = (2, 3);
/// The part of its lifetime before whose end a certificate is renewed, whatever the server suggests.
const LAST_TENTH: u32 = 10;
/// The share of its lifetime by which that is earlier, at the most.
const JITTER: (u32, u32) = (1, 20);

impl Position {
    /// Returns a position for random bytes.
    pub fn new(random: [u8; 4]) -> Position {
        Position(u32::from_le_bytes(random) % (WHOLE + 1))
    }

    fn of(self, span: Duration) -> Duration {
        share(span, (self.0, WHOLE))
    }
}

impl Validity {
    /// Its length.
    pub fn lifetime(self) -> Duration {
        span(self.begins, self.ends)
    }

    /// Returns when the certificate is to be renewed: at a random moment of the server's window, or, without
    /// a valid one, after two thirds of its lifetime, at most a twentieth of it earlier. Never in the last
    /// tenth of the lifetime.
    pub fn renewal(self, window: Option<Window>, position: Position) -> SystemTime {
        match window {
            // A server that revokes certificates has a window in the past. "Clients MUST treat" a window
            // that ends before it begins as none (RFC 9773, section 4.2).
            Some(Window { begins, ends }) if begins < ends => {
                let last = self.ends - self.lifetime() / LAST_TENTH;
                (begins + position.of(span(begins, ends))).min(last)
            }
            _ => {
                let lifetime = self.lifetime();
                self.begins + share(lifetime, RENEWED_AT) - position.of(share(lifetime, JITTER))
            }
        }
    }
}

fn span(begins: SystemTime, ends: SystemTime) -> Duration {
    ends.duration_since(begins).unwrap_or_default()
}

fn share(whole: Duration, (numerator, denominator): (u32, u32)) -> Duration {
    whole / denominator * numerator
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_of_its_lifetime() {
        let validity = Validity { begins: at(1000), ends: at(1000 + 90 * 86400) };
        assert_eq!(validity.renewal(None, Position(0)), at(1000 + 60 * 86400));
        assert_eq!(validity.renewal(None, Position(WHOLE)), at(1000 + 60 * 86400 - 90 * 4320));
    }

    #[test]
    fn a_window_in_the_past_is_due_at_once() {
        let validity = Validity { begins: at(1000), ends: at(100_000) };
        let window = Window { begins: at(10), ends: at(20) };
        assert!(validity.renewal(Some(window), Position(WHOLE)) <= at(20));
    }

    proptest! {
        #[test]
        fn a_renewal_is_within_the_window_or_the_lifetime(
            begins in 0_u64..4_000_000_000,
            lifetime in 0_u64..400_000_000,
            window in proptest::option::of((0_u64..4_000_000_000, 0_u64..10_000_000)),
            random in any::<[u8; 4]>(),
        ) {
            let validity = Validity { begins: at(begins), ends: at(begins + lifetime) };
            let window = window.map(|(from, length)| Window { begins: at(from), ends: at(from + length) });
            let renewal = validity.renewal(window, Position::new(random));
            let window = window.filter(|window| window.begins < window.ends);
            let (first, last) = window.map_or((validity.begins, validity.ends), |w| (w.begins, w.ends));
            prop_assert!(first.min(validity.ends - validity.lifetime() / 10) <= renewal);
            prop_assert!(renewal <= last.min(validity.ends));
        }

        #[test]
        fn a_window_that_ends_before_it_begins_is_none(from in 1_u64..1_000_000) {
            let validity = Validity { begins: at(0), ends: at(300) };
            let window = Window { begins: at(from), ends: at(from - 1) };
            prop_assert_eq!(validity.renewal(Some(window), Position(0)), at(200));
        }

        #[test]
        fn a_window_after_the_end_does_not_postpone_the_renewal_beyond_it(late in 0_u64..1_000_000) {
            let validity = Validity { begins: at(0), ends: at(1000) };
            let window = Window { begins: at(900 + late), ends: at(1901 + late) };
            prop_assert_eq!(validity.renewal(Some(window), Position(0)), at(900));
        }
    }
}
