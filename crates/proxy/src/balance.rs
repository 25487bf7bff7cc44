//! Chooses among the origins of a proxy: the one with the fewest requests in progress.
//!
//! It does not connect. Invariants: an origin that accepts no connections gets requests only when no other
//! does, or when it is time to try it again. A proxy has at least one origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_client::http::Url;
use plimsoll_io::Instant;

use crate::limits::ORIGINS_MAX;
use crate::origin::Origin;

/// The origins of a proxy.
#[derive(Debug)]
pub struct Balance {
    origins: Vec<Arc<Origin>>,
    /// The number of choices so far, by which equally loaded origins take turns.
    choices: AtomicUsize,
}

/// The number of origins is zero, or above [`ORIGINS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOrigins;

impl Balance {
    /// Creates a balance of `urls`. Origins of `before` with the same URLs keep their state.
    ///
    /// # Errors
    /// [`BadOrigins`]
    pub fn new(urls: Vec<Url>, before: Option<&Balance>) -> Result<Balance, BadOrigins> {
        if urls.is_empty() || urls.len() > ORIGINS_MAX {
            return Err(BadOrigins);
        }
        let known = before.map_or(&[][..], |before| &before.origins);
        let origin_of = |url: Url| {
            let kept = known.iter().find(|origin| *origin.url() == url);
            kept.map_or_else(|| Origin::new(url), Arc::clone)
        };
        Ok(Balance { origins: urls.into_iter().map(origin_of).collect(), choices: AtomicUsize::new(0) })
    }

    /// Returns the origins.
    #[must_use]
    pub fn origins(&self) -> &[Arc<Origin>] {
        &self.origins
    }

    /// Returns the healthy origin with the fewest requests in progress, except those in `tried`. If none is
    /// healthy, returns any other; `None` if all were tried.
    pub(crate) fn choose(&self, now: Instant, tried: &[Arc<Origin>]) -> Option<&Arc<Origin>> {
        let first = self.choices.fetch_add(1, Ordering::Relaxed) % self.origins.len().max(1);
        let (before, from) = self.origins.split_at(first);
        let is_left = |origin: &&Arc<Origin>| !tried.iter().any(|other| Arc::ptr_eq(other, origin));
        let load =
            |origin: &&Arc<Origin>| (!origin.is_healthy(now), origin.counts.active.load(Ordering::Relaxed));
        // Of equal ones, the first is chosen.
        from.iter().chain(before).filter(is_left).min_by_key(load)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_client::http::Error;

    use super::*;
    use crate::limits::{FAILURES_MAX, UNHEALTHY_TIME};

    fn balance(count: u16) -> Balance {
        let urls = (0..count).map(|number| format!("http://127.0.0.1:{}", 8000 + number).parse().unwrap());
        Balance::new(urls.collect(), None).unwrap()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_start(Duration::from_secs(seconds))
    }

    fn fail(origin: &Origin, now: Instant) {
        for _ in 0..FAILURES_MAX {
            origin.failed(now, &Error::Unexpected);
        }
    }

    #[test]
    fn the_origin_with_the_fewest_requests_is_chosen_and_equal_ones_take_turns() {
        let balance = balance(3);
        let begin = || {
            let origin = balance.choose(at(0), &[]).unwrap();
            origin.begin(origin.admission.permit_for_tests())
        };
        let mut active: Vec<_> = (0..6).map(|_| begin()).collect();
        let counts = || balance.origins().iter().map(|origin| origin.counts.active.load(Ordering::Relaxed));
        assert!(counts().all(|active| active == 2), "{:?}", counts().collect::<Vec<_>>());
        active.swap_remove(4);
        let free = counts().position(|active| active == 1).unwrap();
        for _ in 0..5 {
            let chosen = balance.choose(at(0), &[]).unwrap();
            assert!(Arc::ptr_eq(chosen, &balance.origins()[free]));
        }
    }

    #[test]
    fn a_failing_origin_is_avoided_until_it_is_time_to_try_again() {
        let balance = balance(2);
        fail(&balance.origins()[0], at(0));
        for _ in 0..4 {
            assert!(Arc::ptr_eq(balance.choose(at(1), &[]).unwrap(), &balance.origins()[1]));
        }
        let later = at(0) + UNHEALTHY_TIME;
        let tried = [Arc::clone(&balance.origins()[1])];
        assert!(Arc::ptr_eq(balance.choose(at(1), &tried).unwrap(), &balance.origins()[0]));
        let chosen: Vec<_> = (0..2).map(|_| Arc::clone(balance.choose(later, &[]).unwrap())).collect();
        assert!(!Arc::ptr_eq(&chosen[0], &chosen[1]), "both get requests again");
        let tried = balance.origins().to_vec();
        assert!(balance.choose(later, &tried).is_none());
    }

    #[test]
    fn a_reload_keeps_the_state_of_the_origins_that_stay() {
        let before = balance(2);
        let urls = vec![before.origins()[1].url().clone(), "http://127.0.0.1:9000".parse().unwrap()];
        let after = Balance::new(urls, Some(&before)).unwrap();
        assert!(Arc::ptr_eq(&after.origins()[0], &before.origins()[1]));
        assert_eq!(Balance::new(Vec::new(), None).err(), Some(BadOrigins));
    }
}
