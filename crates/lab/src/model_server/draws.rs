//! Random times of a distribution, whose mean over few draws is already the configured one.
//!
//! Independent draws would need 10,000 requests for a mean within 1 %. These draws are stratified: each block
//! has one from every equally probable part of the distribution, in random order. Invariant: the sum of a
//! block is its length times the mean.

use std::time::Duration;

use super::demands::Distribution;
use crate::stats::Chance;

/// The number of draws in a block.
const BLOCK: u32 = 64;

/// A sequence of random times.
pub(super) struct Draws {
    mean: Duration,
    distribution: Distribution,
    chance: Chance,
    block: Vec<Duration>,
}

impl Draws {
    pub(super) fn new(mean: Duration, distribution: Distribution, seed: u64) -> Draws {
        Draws { mean, distribution, chance: Chance::new(seed), block: Vec::new() }
    }

    /// Returns the next time.
    pub(super) fn next(&mut self) -> Duration {
        if self.distribution == Distribution::Constant {
            return self.mean;
        }
        loop {
            if let Some(time) = self.block.pop() {
                return time;
            }
            self.refill();
        }
    }

    fn refill(&mut self) {
        let strata = (0..BLOCK).map(|stratum| exponential_mean(stratum, BLOCK));
        self.block = strata.map(|factor| self.mean.mul_f64(factor)).collect();
        for last in (1..self.block.len()).rev() {
            let other = self.chance.draw() % (last as u64 + 1);
            self.block.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}

/// Returns the mean of an exponential distribution of mean 1 within one of `count` equally probable parts.
///
/// With q(p) = -ln(1 - p), the integral of q is (1 - p) ln(1 - p) + p.
fn exponential_mean(part: u32, count: u32) -> f64 {
    let integral = |place: u32| {
        let above = f64::from(count - place) / f64::from(count);
        let product = if above > 0.0 { above * above.ln() } else { 0.0 };
        product + 1.0 - above
    };
    (integral(part + 1) - integral(part)) * f64::from(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(draws: &mut Draws, count: u32) -> Vec<f64> {
        (0..count).map(|_| draws.next().as_secs_f64()).collect()
    }

    #[test]
    fn blocks_have_the_mean_and_nearly_the_variance_of_an_exponential_distribution() {
        let mut draws = Draws::new(Duration::from_millis(10), Distribution::Exponential, 7);
        let times = seconds(&mut draws, BLOCK * 20);
        let count = f64::from(BLOCK * 20);
        let mean = times.iter().sum::<f64>() / count;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count;
        assert!((mean / 0.010 - 1.0).abs() < 1e-6, "{mean}");
        let of_squares = variance / mean.powi(2);
        assert!((0.94..1.0).contains(&of_squares), "an exponential distribution has 1: {of_squares}");
        let block = BLOCK as usize;
        assert_ne!(times[..block], times[block..2 * block], "the order is random");
    }

    #[test]
    fn constant_times_are_all_the_mean() {
        let mut draws = Draws::new(Duration::from_millis(10), Distribution::Constant, 7);
        assert!(seconds(&mut draws, 100).iter().all(|time| (time - 0.010).abs() < 1e-12));
    }
}
