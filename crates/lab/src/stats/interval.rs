//! Means of repeated trials and their confidence intervals of 95 %, by Student's t distribution.
//!
//! It is not for many samples of unknown scatter: that is the bootstrap. Of three to nine repetitions, the
//! bootstrap covers too little, while the t interval is exact for normal scatter. Invariant: a single
//! value has a mean and no interval.

use serde::Serialize;

use super::student::{critical, moments, two_sided};

/// The probability that the mean lies outside its interval.
const TAIL: f64 = 0.05;

/// A mean, its interval and the number of samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanInterval {
    /// The mean: arithmetic, or geometric for ratios.
    pub mean: f64,
    /// The ends of its interval; none for a single sample.
    pub interval: Option<[f64; 2]>,
    /// The number of samples.
    pub count: usize,
}

impl MeanInterval {
    /// Returns the mean of samples. None without samples.
    pub fn of(values: &[f64]) -> Option<MeanInterval> {
        let count = values.len();
        match moments(values) {
            Some((mean, square, freedom)) => {
                let width = if square > 0.0 { critical(TAIL, freedom) * square.sqrt() } else { 0.0 };
                Some(MeanInterval { mean, interval: Some([mean - width, mean + width]), count })
            }
            None => values.first().map(|mean| MeanInterval { mean: *mean, interval: None, count }),
        }
    }

    /// Returns the mean of samples that cannot be below 0, such as times. Their scatter is skewed to large
    /// values, so that the interval is that of their logarithms: it is not symmetric, and ends above 0.
    pub fn of_positive(values: &[f64]) -> Option<MeanInterval> {
        let plain = MeanInterval::of(values)?;
        if values.iter().any(|value| *value <= 0.0) {
            return Some(plain);
        }
        let geometric = MeanInterval::of_ratios(values)?;
        // The arithmetic mean, which is shown, is the larger one.
        let interval = geometric.interval.map(|[low, high]| [low.min(plain.mean), high.max(plain.mean)]);
        Some(MeanInterval { interval, ..plain })
    }

    /// Returns the geometric mean of ratios, all above 0, with the interval of their logarithms.
    pub fn of_ratios(ratios: &[f64]) -> Option<MeanInterval> {
        let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let MeanInterval { mean, interval, count } = MeanInterval::of(&logarithms)?;
        Some(MeanInterval { mean: mean.exp(), interval: interval.map(|ends| ends.map(f64::exp)), count })
    }

    /// Returns the probability of ratios that are this far from 1 if there were no difference, for a mean of
    /// [`of_ratios`](Self::of_ratios). None without an interval.
    pub fn probability_of_equality(&self) -> Option<f64> {
        let [low, high] = self.interval?.map(f64::ln);
        #[allow(clippy::cast_precision_loss, reason = "a number of repetitions")]
        let freedom = self.count.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
        let error = (high - low) / 2.0 / critical(TAIL, freedom);
        let distance = self.mean.ln().abs();
        Some(match error > 0.0 {
            true => two_sided(distance / error, freedom),
            false => f64::from(u8::from(distance <= f64::EPSILON)),
        })
    }

    /// Returns the figure in another unit.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> MeanInterval {
        let interval = self.interval.map(|ends| ends.map(|end| end * factor));
        MeanInterval { mean: self.mean * factor, interval, count: self.count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_textbooks() {
        // Mean 3, standard deviation sqrt(2.5), t(0.05, 4) = 2.776.
        let found = MeanInterval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let [low, high] = found.interval.unwrap();
        assert!((low - 1.0367).abs() < 1e-3 && (high - 4.9633).abs() < 1e-3, "{found:?}");
        assert_eq!((found.mean, found.count), (3.0, 5));
    }

    #[test]
    fn a_single_sample_has_no_interval_and_no_sample_has_no_mean() {
        assert_eq!(MeanInterval::of(&[2.0]), Some(MeanInterval { mean: 2.0, interval: None, count: 1 }));
        assert_eq!(MeanInterval::of(&[]), None);
    }

    #[test]
    fn a_ratio_whose_interval_ends_at_1_has_the_probability_of_its_tail() {
        let ratios = MeanInterval::of_ratios(&[1.1, 1.2, 1.3, 1.25, 1.15]).unwrap();
        assert!(ratios.probability_of_equality().unwrap() < 0.01);
        let end = ratios.interval.unwrap()[0];
        let shifted = MeanInterval::of_ratios(&[1.1, 1.2, 1.3, 1.25, 1.15].map(|ratio: f64| ratio / end));
        assert!((shifted.unwrap().probability_of_equality().unwrap() - 0.05).abs() < 1e-6);
        assert_eq!(MeanInterval::of_ratios(&[1.1]).unwrap().probability_of_equality(), None);
        assert_eq!(MeanInterval::of_ratios(&[1.0, 1.0]).unwrap().probability_of_equality(), Some(1.0));
        assert_eq!(MeanInterval::of_ratios(&[2.0, 2.0]).unwrap().probability_of_equality(), Some(0.0));
    }

    #[test]
    fn the_interval_of_times_is_above_0_and_contains_their_mean() {
        // By Student's t alone, it would begin at -35 ms.
        let found = MeanInterval::of_positive(&[0.062, 0.012, 0.020]).unwrap();
        let [low, high] = found.interval.unwrap();
        assert!(low > 0.0 && low < found.mean && found.mean < high, "{found:?}");
        assert!((found.mean - 0.031_333).abs() < 1e-5 && high - found.mean > found.mean - low);
        let narrow = MeanInterval::of_positive(&[1.00, 1.01, 0.99, 1.00]).unwrap().interval.unwrap();
        let plain = MeanInterval::of(&[1.00, 1.01, 0.99, 1.00]).unwrap().interval.unwrap();
        assert!((narrow[0] - plain[0]).abs() < 1e-3 && (narrow[1] - plain[1]).abs() < 1e-3);
        assert_eq!(MeanInterval::of_positive(&[0.0, 1.0]), MeanInterval::of(&[0.0, 1.0]));
        assert_eq!(MeanInterval::of_positive(&[2.0]), MeanInterval::of(&[2.0]));
    }

    #[test]
    fn ratios_have_a_geometric_mean() {
        let found = MeanInterval::of_ratios(&[0.5, 2.0]).unwrap();
        assert!((found.mean - 1.0).abs() < 1e-12);
        let same = MeanInterval::of_ratios(&[1.5, 1.5, 1.5]).unwrap();
        assert!((same.interval.unwrap()[0] - 1.5).abs() < 1e-12);
    }
}
