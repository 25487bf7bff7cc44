//! Medians and means, their confidence intervals, and tests of differences.
//!
//! It measures nothing and knows no contender. Invariants: an interval depends on the samples alone, and
//! the same samples give the same interval.

mod interval;
pub mod student;

pub use interval::MeanInterval;
pub use plimsoll_io::sim::Chance;

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
}
