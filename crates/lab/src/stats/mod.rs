//! Medians and means, their confidence intervals, and tests of differences.
//!
//! It measures nothing and knows no contender. Invariants: an interval depends on the samples alone, and
//! the same samples give the same interval.

mod interval;
pub mod student;

pub use interval::MeanInterval;
pub use plimsoll_io::sim::Chance;

use serde::{Deserialize, Serialize};

/// Number of bootstrap resamples for an interval.
const RESAMPLES: usize = 10_000;
/// Probability left out at each end of an interval: together 5 %.
const TAIL: f64 = 0.025;
/// Seed of every bootstrap, so that a report can be reproduced.
const SEED: u64 = 0x506c_696d_736f_6c6c;

/// A median and its confidence interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median of the samples.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Returns the quantile `part` (0 to 1) of `values`, interpolated linearly. Returns None for no values.
pub fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    of_sorted(&sorted, part)
}

/// Returns the median.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Returns the median of `values` and its percentile bootstrap interval. Returns None for no values.
///
/// With five values the interval spans from the minimum to the maximum: five samples allow no narrower one.
pub fn bootstrap(values: &[f64]) -> Option<Estimate> {
    let median = median(values)?;
    let mut chance = Chance::new(SEED);
    let mut medians: Vec<f64> = (0..RESAMPLES).filter_map(|_| resampled(values, &mut chance)).collect();
    medians.sort_by(f64::total_cmp);
    Some(Estimate { median, low: of_sorted(&medians, TAIL)?, high: of_sorted(&medians, 1.0 - TAIL)? })
}

/// Returns the ratios of paired samples, each pair being (ours, theirs). A pair with 0 is dropped.
pub fn paired_ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    let told = pairs.iter().filter(|(ours, theirs)| *ours > 0.0 && *theirs > 0.0);
    told.map(|(ours, theirs)| ours / theirs).collect()
}

/// Returns the geometric mean, or None for no values.
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let count = u32::try_from(ratios.len()).ok().filter(|count| *count > 0)?;
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    Some((sum / f64::from(count)).exp())
}

fn resampled(values: &[f64], chance: &mut Chance) -> Option<f64> {
    let drawn: Vec<f64> =
        values.iter().filter_map(|_| values.get(chance.index(values.len())).copied()).collect();
    median(&drawn)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a place in a list, which is neither negative nor beyond 2^52"
)]
fn of_sorted(sorted: &[f64], part: f64) -> Option<f64> {
    let place = part.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (below, share) = (place.floor() as usize, place.fract());
    let first = *sorted.get(below)?;
    let next = sorted.get(below + 1).copied().unwrap_or(first);
    Some(first + (next - first) * share)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn medians_and_quantiles_are_those_of_the_textbook() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0], 1.0), Some(2.0));
    }

    #[test]
    fn five_values_give_an_interval_from_the_least_to_the_greatest() {
        // One value is the median of five draws with a probability of 5.8 %: more than the tail of 2.5 %.
        let estimate = bootstrap(&[1.2, 1.0, 1.3, 1.1, 1.4]).unwrap();
        assert_eq!(estimate, Estimate { median: 1.2, low: 1.0, high: 1.4 });
    }

    #[test]
    fn many_values_give_an_interval_near_the_one_of_the_normal_law() {
        // 0, 1, ... 100: the standard deviation of the median of 101 uniform draws is about 100 / (2
        // sqrt(101)) = 5.0.
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        let estimate = bootstrap(&values).unwrap();
        assert_eq!(estimate.median, 50.0);
        assert!((38.0..42.5).contains(&estimate.low), "{estimate:?}");
        assert!((57.5..62.0).contains(&estimate.high), "{estimate:?}");
    }

    #[test]
    fn values_without_scatter_have_an_interval_without_width() {
        assert_eq!(bootstrap(&[2.0; 5]), Some(Estimate { median: 2.0, low: 2.0, high: 2.0 }));
        assert_eq!(bootstrap(&[]), None);
    }

    #[test]
    fn ratios_are_taken_pair_by_pair_so_that_drift_cancels() {
        // The machine halves its speed; the ratio stays 1.5.
        let ratios = paired_ratios(&[(150.0, 100.0), (75.0, 50.0), (0.0, 50.0), (75.0, 0.0)]);
        assert_eq!(ratios, [1.5, 1.5]);
        assert_eq!(bootstrap(&ratios).unwrap().low, 1.5);
        let mean = geometric_mean(&[0.5, 2.0, 1.0]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

        #[test]
        fn an_interval_holds_its_median_and_lies_within_the_values(
            values in prop::collection::vec(0.001f64..1e9, 1..12)
        ) {
            let estimate = bootstrap(&values).unwrap();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = values.iter().copied().fold(0.0, f64::max);
            prop_assert!(least <= estimate.low && estimate.low <= estimate.median);
            prop_assert!(estimate.median <= estimate.high && estimate.high <= greatest);
        }

        #[test]
        fn a_scale_changes_no_ratio(pairs in prop::collection::vec((1.0f64..1e6, 1.0f64..1e6), 1..12)) {
            let doubled = pairs.iter().map(|(ours, theirs)| (ours * 2.0, theirs * 2.0));
            let doubled: Vec<(f64, f64)> = doubled.collect();
            prop_assert_eq!(paired_ratios(&pairs), paired_ratios(&doubled));
        }
    }
}
