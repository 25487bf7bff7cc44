//! Quantiles of measured times.
//!
//! It is not the lab's statistics. A quantile must be one of the measured times.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Measured times in ascending order.
pub struct Figures(Vec<Duration>);

impl Figures {
    pub fn of(mut times: Vec<Duration>) -> Figures {
        assert!(!times.is_empty(), "nothing was measured");
        times.sort_unstable();
        Figures(times)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the quantile at `thousandths` per mille.
    pub fn within(&self, thousandths: usize) -> Duration {
        let rank = (self.0.len() * thousandths).div_ceil(1000).max(1);
        self.0[rank - 1]
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (half, most, all) = (self.within(500), self.within(990), self.within(1000));
        write!(f, "{} times, p50 {half:.2?}, p99 {most:.2?}, longest {all:.2?}", self.count())
    }
}

/// The sleep between two measurements of [`WakeupDelays`].
const SLEEP: Duration = Duration::from_millis(1);

/// Measures how late the kernel wakes a thread that sleeps, while a test measures something else. A bound
/// that includes it is narrow on a quiet machine, and holds on a busy one.
pub struct WakeupDelays {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl WakeupDelays {
    pub fn measure() -> WakeupDelays {
        let is_over = Arc::<AtomicBool>::default();
        let has_ended = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut delays = Vec::new();
            while !has_ended.load(Ordering::Relaxed) {
                let start = Instant::now();
                std::thread::sleep(SLEEP);
                delays.push(start.elapsed().saturating_sub(SLEEP));
            }
            delays
        });
        WakeupDelays { is_over, thread }
    }

    /// Ends the measurement, and returns the delays.
    pub fn end(self) -> Figures {
        self.is_over.store(true, Ordering::Relaxed);
        Figures::of(self.thread.join().expect("the thread only sleeps"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_time_that_was_measured() {
        let figures = Figures::of((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!(figures.within(500), Duration::from_millis(100));
        assert_eq!(figures.within(990), Duration::from_millis(198));
        assert_eq!(figures.within(1000), Duration::from_millis(200));
        assert_eq!(Figures::of(vec![Duration::ZERO]).within(500), Duration::ZERO);
    }
}
