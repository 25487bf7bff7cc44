//! The state machine of one certificate: when it is ordered, and what follows each step.
//!
//! It makes no request, writes no file, and reads no clock. A `-` marks an event that is invalid in a state:
//! [`Machine::advance`] refuses it. A test of this module makes every transition of the table, and tries all
//! others.
//!
//! | event | Idle | Ordering | Challenged | Finalising | Storing |
//! | --- | --- | --- | --- | --- | --- |
//! | due | Ordering | - | - | - | - |
//! | challenged | - | Challenged | - | - | - |
//! | validated | - | Finalising | Finalising | - | - |
//! | issued | - | - | - | Storing | - |
//! | stored | - | - | - | - | Idle |
//! | failed | - | Idle | Idle | Idle | Idle |
//! | found | Idle | Idle | Idle | Idle | Idle |
//! | lost | Idle | - | - | - | - |
//! | informed | Idle | - | - | - | - |
//!
//! *Found* is a certificate in the state folder: at the start, or from another front. *Lost* is one that was
//! removed from it. *Informed* is a server's renewal information. Invariants: after a failure nothing is
//! tried before the backoff and the server's Retry-After are over, also in another process. At most
//! [`FAILED_VALIDATIONS_MAX`] validations fail in an hour. Storing a certificate ends the backoff. A
//! certificate that is due at once is renewed after a pause, whatever the clock and the server say.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::limits::{
    BACKOFF_TIME_MAX, BACKOFF_TIME_MIN, FAILED_VALIDATIONS_MAX, ORDER_PAUSE_TIME_MAX, RETRY_AFTER_TIME_MAX,
    VALIDATIONS_TIME,
};
use crate::schedule::{Position, Validity, Window};

/// The state of a certificate's renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is done before the next attempt.
    Idle,
    /// An order is created.
    Ordering,
    /// The server validates the names.
    Challenged,
    /// The server issues the certificate.
    Finalising,
    /// The certificate is written to the state folder.
    Storing,
}

/// An event in a certificate's renewal.
#[derive(Clone, Debug)]
pub enum Event {
    /// The next attempt is due.
    Due,
    /// The order exists, and needs validations.
    Challenged,
    /// All names are validated, or were before.
    Validated,
    /// The certificate was received.
    Issued,
    /// The certificate is durable.
    Stored(Validity),
    /// A step failed.
    Failed(Failure),
    /// The state folder has a certificate that this process did not store.
    Found(Validity),
    /// The state folder has no usable certificate any more.
    Lost,
    /// The server has this renewal information, or none.
    Informed(Option<Window>),
}

/// The failure of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason, for an operator.
    pub reason: String,
    /// Whether the server failed to validate a name, which servers count.
    pub is_validation: bool,
    /// The wait that the server requests.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// Returns the failure of an attempt that no server counts.
    pub fn new(reason: impl Into<String>) -> Failure {
        Failure { reason: reason.into(), is_validation: false, retry_after: None }
    }
}

/// An event that is no part of the present state: a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of another state than {0:?}")]
pub struct Unexpected(pub State);

/// The last certificate and the failed attempts since, as the state folder has them for all fronts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// Failures in a row.
    pub failures: u32,
    /// The time before which nothing is tried.
    pub not_before: Option<SystemTime>,
    /// The times of the last failed validations.
    pub failed_validations: VecDeque<SystemTime>,
    /// The time of the last certificate.
    #[serde(default)]
    pub last_order: Option<SystemTime>,
}

/// The renewal of one certificate.
#[derive(Clone, Debug)]
pub struct Machine {
    state: State,
    certificate: Option<Validity>,
    window: Option<Window>,
    position: Position,
    attempts: Attempts,
}

impl Machine {
    /// Starts without a certificate. `position` spreads the renewals of servers.
    pub fn new(attempts: Attempts, position: Position) -> Machine {
        Machine { state: State::Idle, certificate: None, window: None, position, attempts }
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The failed attempts since the last certificate.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Takes over the failed attempts of other fronts.
    pub fn set_attempts(&mut self, attempts: Attempts) {
        self.attempts = attempts;
    }

    /// Forgets times that a wrong clock has recorded: those later than any wait can be.
    pub fn forget_later_than_possible(&mut self, now: SystemTime) {
        let Attempts { not_before, failed_validations, last_order, .. } = &mut self.attempts;
        *last_order = last_order.filter(|at| *at <= now);
        *not_before = not_before.filter(|until| *until <= now + RETRY_AFTER_TIME_MAX);
        failed_validations.retain(|at| *at <= now);
    }

    /// The time of the next attempt.
    pub fn next_attempt(&self) -> SystemTime {
        let renewal = match (self.certificate, self.attempts.last_order) {
            (Some(certificate), Some(last)) => {
                let pause = (certificate.lifetime() / 3).min(ORDER_PAUSE_TIME_MAX);
                certificate.renewal(self.window, self.position).max(last + pause)
            }
            (Some(certificate), None) => certificate.renewal(self.window, self.position),
            (None, _) => SystemTime::UNIX_EPOCH,
        };
        renewal.max(self.attempts.not_before.unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Whether the next attempt is due.
    pub fn is_due(&self, now: SystemTime) -> bool {
        self.state == State::Idle && self.next_attempt() <= now
    }

    /// Makes a transition.
    ///
    /// # Errors
    /// The event is no part of the state, which stays.
    pub fn advance(&mut self, event: Event, now: SystemTime) -> Result<(), Unexpected> {
        use State::{Challenged, Finalising, Idle, Ordering, Storing};
        self.state = match (self.state, event) {
            (Idle, Event::Due) => {
                // An attempt that ends with its process has failed, too.
                self.attempts.not_before = Some(now + BACKOFF_TIME_MIN);
                Ordering
            }
            (Ordering, Event::Challenged) => Challenged,
            (Ordering | Challenged, Event::Validated) => Finalising,
            (Finalising, Event::Issued) => Storing,
            (Storing, Event::Stored(certificate)) => {
                (self.attempts.failures, self.attempts.not_before) = (0, None);
                self.attempts.last_order = Some(now);
                self.has(certificate)
            }
            (Ordering | Challenged | Finalising | Storing, Event::Failed(failure)) => {
                self.fail(&failure, now)
            }
            (_, Event::Found(certificate)) => self.has(certificate),
            (Idle, Event::Lost) => {
                (self.certificate, self.window) = (None, None);
                Idle
            }
            (Idle, Event::Informed(window)) => {
                self.window = window;
                Idle
            }
            (state, _) => return Err(Unexpected(state)),
        };
        Ok(())
    }

    fn has(&mut self, certificate: Validity) -> State {
        if self.certificate.replace(certificate) != Some(certificate) {
            self.window = None;
        }
        State::Idle
    }

    fn fail(&mut self, failure: &Failure, now: SystemTime) -> State {
        let Attempts { failures, not_before, failed_validations, .. } = &mut self.attempts;
        let doubled = BACKOFF_TIME_MIN.saturating_mul(1 << (*failures).min(16));
        *failures = failures.saturating_add(1);
        let requested = failure.retry_after.unwrap_or_default().min(RETRY_AFTER_TIME_MAX);
        let mut next = now + doubled.min(BACKOFF_TIME_MAX).max(requested);
        if failure.is_validation {
            failed_validations.push_back(now);
            if failed_validations.len() > FAILED_VALIDATIONS_MAX {
                failed_validations.pop_front();
            }
            if let Some(first) = failed_validations.front()
                && failed_validations.len() == FAILED_VALIDATIONS_MAX
            {
                next = next.max(*first + VALIDATIONS_TIME);
            }
        }
        *not_before = Some(next);
        State::Idle
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: u64 = 1_800_000_000;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn validity(begins: u64, seconds: u64) -> Validity {
        Validity { begins: at(begins), ends: at(begins + seconds) }
    }

    fn failure(is_validation: bool, retry_after: Option<u64>) -> Event {
        let retry_after = retry_after.map(Duration::from_secs);
        Event::Failed(Failure { reason: "a test".to_owned(), is_validation, retry_after })
    }

    fn machine() -> Machine {
        Machine::new(Attempts::default(), Position::new([0; 4]))
    }

    /// Brings a machine into a state.
    fn in_state(state: State) -> Machine {
        let mut machine = machine();
        let path = [Event::Due, Event::Challenged, Event::Validated, Event::Issued];
        for event in path {
            if machine.state() == state {
                break;
            }
            machine.advance(event, at(START)).unwrap();
        }
        assert_eq!(machine.state(), state);
        machine
    }

    #[test]
    fn every_transition_is_that_of_the_table_and_no_other_is_made() {
        let table: Vec<Vec<String>> = include_str!("machine.rs")
            .lines()
            .take_while(|line| !line.starts_with("use"))
            .filter_map(|line| line.strip_prefix("//! | "))
            .map(|row| row.trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
            .collect();
        let states = [State::Idle, State::Ordering, State::Challenged, State::Finalising, State::Storing];
        let names: Vec<String> = states.iter().map(|state| format!("{state:?}")).collect();
        assert_eq!(table[0][1..], names);
        let events = [
            ("due", Event::Due),
            ("challenged", Event::Challenged),
            ("validated", Event::Validated),
            ("issued", Event::Issued),
            ("stored", Event::Stored(validity(START, 100))),
            ("failed", failure(false, None)),
            ("found", Event::Found(validity(START, 100))),
            ("lost", Event::Lost),
            ("informed", Event::Informed(None)),
        ];
        assert_eq!(table.len(), events.len() + 2);
        for (row, (name, event)) in table[2..].iter().zip(events) {
            assert_eq!(row[0], name);
            for (state, expected) in states.into_iter().zip(&row[1..]) {
                let mut machine = in_state(state);
                let next = match machine.advance(event.clone(), at(START)) {
                    Ok(()) => format!("{:?}", machine.state()),
                    Err(Unexpected(of)) => {
                        assert_eq!((of, machine.state()), (state, state));
                        "-".to_owned()
                    }
                };
                assert_eq!(next, *expected, "{name} in {state:?}");
            }
        }
    }

    #[test]
    fn without_a_certificate_the_first_attempt_is_due_at_once() {
        assert!(machine().is_due(at(START)));
    }

    #[test]
    fn a_stored_certificate_is_renewed_after_two_thirds_of_its_lifetime() {
        let mut machine = in_state(State::Storing);
        machine.advance(Event::Stored(validity(START, 90)), at(START)).unwrap();
        assert!(!machine.is_due(at(START + 59)) && machine.is_due(at(START + 60)));
    }

    #[test]
    fn a_window_of_the_server_replaces_two_thirds_until_the_next_certificate() {
        let mut machine = in_state(State::Storing);
        machine.advance(Event::Stored(validity(START, 90)), at(START)).unwrap();
        let window = Window { begins: at(START + 40), ends: at(START + 41) };
        machine.advance(Event::Informed(Some(window)), at(START)).unwrap();
        assert!(!machine.is_due(at(START + 39)) && machine.is_due(at(START + 41)));
        machine.advance(Event::Found(validity(START, 90)), at(START)).unwrap();
        assert!(machine.is_due(at(START + 41)), "the same certificate has the same window");
        machine.advance(Event::Found(validity(START + 1, 90)), at(START)).unwrap();
        assert!(!machine.is_due(at(START + 41)));
    }

    #[test]
    fn the_wait_doubles_from_a_minute_to_half_a_day() {
        let mut machine = machine();
        let mut now = at(START);
        for minutes in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 720, 720, 720] {
            machine.advance(Event::Due, now).unwrap();
            machine.advance(failure(false, None), now).unwrap();
            assert_eq!(machine.next_attempt(), now + Duration::from_secs(minutes * 60));
            now = machine.next_attempt();
        }
    }

    #[test]
    fn a_restart_does_not_end_the_backoff_and_a_stored_certificate_does() {
        let mut before = in_state(State::Ordering);
        before.advance(failure(false, Some(500)), at(START)).unwrap();
        let mut machine = Machine::new(before.attempts().clone(), Position::new([0; 4]));
        machine.advance(Event::Found(validity(START - 90, 90)), at(START)).unwrap();
        assert_eq!(machine.next_attempt(), at(START + 500));
        let stored = Event::Stored(validity(START + 500, 90));
        for event in [Event::Due, Event::Validated, Event::Issued, stored] {
            machine.advance(event, at(START + 500)).unwrap();
        }
        assert_eq!((machine.attempts().failures, machine.attempts().not_before), (0, None));
        assert_eq!(machine.next_attempt(), at(START + 560));
    }

    #[test]
    fn a_certificate_that_is_due_at_once_is_not_ordered_in_a_loop() {
        // The clock is ahead, or the server's window is in the past.
        for (lifetime, pause) in [(90, 30), (90 * 86400, 86400)] {
            let mut machine = in_state(State::Storing);
            let now = START + 2 * lifetime;
            machine.advance(Event::Stored(validity(START, lifetime)), at(now)).unwrap();
            let window = Window { begins: at(START), ends: at(START + 1) };
            machine.advance(Event::Informed(Some(window)), at(now)).unwrap();
            assert_eq!(machine.next_attempt(), at(now + pause));
        }
    }

    #[test]
    fn a_removed_certificate_is_ordered_again() {
        let mut machine = machine();
        machine.advance(Event::Found(validity(START, 90)), at(START)).unwrap();
        assert!(!machine.is_due(at(START)));
        machine.advance(Event::Lost, at(START)).unwrap();
        assert!(machine.is_due(at(START)));
    }

    #[test]
    fn times_recorded_by_a_clock_that_was_ahead_are_forgotten() {
        let mut machine = in_state(State::Ordering);
        machine.advance(failure(true, None), at(2 * START)).unwrap();
        machine.forget_later_than_possible(at(2 * START));
        assert!(!machine.is_due(at(2 * START)), "the clock is right");
        machine.forget_later_than_possible(at(START));
        assert!(machine.is_due(at(START)));
        assert!(machine.attempts().failed_validations.is_empty());
    }

    #[test]
    fn attempts_are_written_and_read_unchanged() {
        let mut machine = in_state(State::Challenged);
        machine.advance(failure(true, Some(7)), at(START)).unwrap();
        let json = serde_json::to_vec(machine.attempts()).unwrap();
        assert_eq!(serde_json::from_slice::<Attempts>(&json).unwrap(), *machine.attempts());
    }

    proptest! {
        /// Attempts fail for days, each as soon as it is due; some servers request waits.
        #[test]
        fn a_failing_server_is_spared(
            failures in proptest::collection::vec(
                (any::<bool>(), proptest::option::of(0_u64..2_000_000)),
                1..60,
            ),
        ) {
            let mut machine = machine();
            let (mut now, mut validations) = (at(START), Vec::<SystemTime>::new());
            for (is_validation, retry_after) in failures {
                prop_assert!(machine.is_due(now));
                machine.advance(Event::Due, now).unwrap();
                machine.advance(failure(is_validation, retry_after), now).unwrap();
                let next = machine.next_attempt();
                let waits = next.duration_since(now).unwrap();
                let requested = Duration::from_secs(retry_after.unwrap_or(0)).min(RETRY_AFTER_TIME_MAX);
                prop_assert!(waits >= BACKOFF_TIME_MIN && waits >= requested);
                prop_assert!(waits <= BACKOFF_TIME_MAX.max(requested));
                prop_assert!(!machine.is_due(next - Duration::from_secs(1)));
                validations.extend(is_validation.then_some(now));
                now = next;
            }
            for five in validations.windows(FAILED_VALIDATIONS_MAX + 1) {
                let first_to_last = five[FAILED_VALIDATIONS_MAX].duration_since(five[0]).unwrap();
                prop_assert!(first_to_last >= VALIDATIONS_TIME);
            }
        }
    }
}
