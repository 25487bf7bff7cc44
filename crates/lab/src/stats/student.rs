//! Student's t distribution: tail probabilities and critical values, and Yuen's test with Holm's correction.
//!
//! It is exact to about ten digits, for any real number of degrees of freedom above 0. Invariants:
//! probabilities are between 0 and 1, and decrease with the size of t.
//!
//! Sources: the NIST Digital Library of Mathematical Functions, 8.17, for the incomplete beta function. Press
//! et al., "Numerical Recipes", 3rd edition, 6.4, for its continued fraction by Lentz's method. Welch,
//! Biometrika 34, 1947. Yuen, Biometrika 61, 1974. Holm, Scandinavian Journal of Statistics 6, 1979.

/// The coefficients of Lanczos' approximation of the gamma function for g = 7.
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];
const STEPS: u32 = 300;
const TINY: f64 = 1e-300;
/// Samples of fewer values are not trimmed: too few would be left.
const TRIMMED_MIN: usize = 10;
/// One value in this many is left out at each end.
const TRIMMED_PART: usize = 5;

/// Returns the probability that |T| exceeds |t| with `freedom` degrees of freedom.
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// Returns the t that |T| exceeds with probability `tail`, by bisection.
pub fn critical(tail: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > tail && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, freedom) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The difference of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean of the second samples minus that of the first.
    pub mean: f64,
    /// The standard error of the difference.
    pub error: f64,
    /// The degrees of freedom, by Welch and Satterthwaite.
    pub freedom: f64,
}

impl Difference {
    /// Compares two samples without the assumption that they scatter alike: the means without the fifth of
    /// the values at each end, by Yuen's test. Small samples are not trimmed, which is Welch's test. None
    /// with less than two values on a side.
    ///
    /// A neighbour of a virtual machine slows down a trial in ten by a quarter or a half. In a mean of all
    /// values, such a trial hides a change of 5 %.
    pub fn of(one: &[f64], other: &[f64]) -> Option<Difference> {
        Difference::of_moments(trimmed_moments(one), trimmed_moments(other))
    }

    /// Returns the difference of two samples with these moments.
    fn of_moments(one: Option<Moments>, other: Option<Moments>) -> Option<Difference> {
        let ((mean_one, square_one, free_one), (mean_other, square_other, free_other)) = (one?, other?);
        let total = square_one + square_other;
        let freedom = total.powi(2) / (square_one.powi(2) / free_one + square_other.powi(2) / free_other);
        let freedom = if freedom.is_finite() { freedom } else { free_one + free_other };
        Some(Difference { mean: mean_other - mean_one, error: total.sqrt(), freedom })
    }

    /// Returns the mean of several independent differences. None without one.
    pub fn mean_of(all: &[Difference]) -> Option<Difference> {
        let count = f64::from(u32::try_from(all.len()).ok().filter(|count| *count > 0)?);
        let squares = all.iter().map(|one| (one.error / count).powi(2));
        let total: f64 = squares.clone().sum();
        let parts: f64 = squares.zip(all).map(|(square, one)| square.powi(2) / one.freedom).sum();
        let freedom = total.powi(2) / parts;
        let freedom =
            if freedom.is_finite() { freedom } else { all.iter().map(|one| one.freedom).sum::<f64>() };
        let mean = all.iter().map(|one| one.mean).sum::<f64>() / count;
        Some(Difference { mean, error: total.sqrt(), freedom })
    }

    /// Returns the probability of a difference at least as large where there is none.
    pub fn probability(&self) -> f64 {
        // Samples that do not scatter at all: rounding is no difference.
        if self.error < 1e-12 {
            return if self.mean.abs() < 1e-9 { 1.0 } else { 0.0 };
        }
        two_sided(self.mean / self.error, self.freedom)
    }

    /// Returns the ends of the interval that has the difference with probability 1 - `tail`.
    pub fn interval(&self, tail: f64) -> [f64; 2] {
        let width = critical(tail, self.freedom) * self.error;
        [self.mean - width, self.mean + width]
    }
}

/// Returns the probabilities corrected for their number by Holm's method, in the same order. A test is
/// significant at the family level if its corrected probability is below that level.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|one, other| probabilities[*one].total_cmp(&probabilities[*other]));
    let mut corrected = vec![1.0; probabilities.len()];
    let mut least = 0.0_f64;
    for (left, at) in (1..=u32::try_from(order.len()).unwrap_or(u32::MAX)).rev().zip(order) {
        least = least.max((probabilities[at] * f64::from(left)).min(1.0));
        corrected[at] = least;
    }
    corrected
}

/// A mean, its squared standard error, and the degrees of freedom.
type Moments = (f64, f64, f64);

/// Returns the moments of a sample.
pub(super) fn moments(values: &[f64]) -> Option<Moments> {
    let count = f64::from(u32::try_from(values.len()).ok().filter(|count| *count > 1)?);
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some((mean, variance / count, count - 1.0))
}

/// As [`moments`], of the trimmed mean. Its standard error is that of the winsorised values, which have the
/// next ones in place of those that were left out.
fn trimmed_moments(values: &[f64]) -> Option<Moments> {
    let trimmed = if values.len() < TRIMMED_MIN { 0 } else { values.len() / TRIMMED_PART };
    if trimmed == 0 {
        return moments(values);
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let inner = sorted.get(trimmed..sorted.len() - trimmed)?;
    let (low, high) = (*inner.first()?, *inner.last()?);
    let left = f64::from(u32::try_from(inner.len()).ok().filter(|count| *count > 1)?);
    let mean = inner.iter().sum::<f64>() / left;
    let winsorised: Vec<f64> = sorted.iter().map(|value| value.clamp(low, high)).collect();
    let (_, square, freedom) = moments(&winsorised)?;
    // `square` is the variance through the number of values, which is `freedom` + 1.
    let squares = square * (freedom + 1.0) * freedom;
    Some((mean, squares / (left * (left - 1.0)), left - 1.0))
}

/// The regularised incomplete beta function I_x(a, b).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    // The fraction converges quickly below the mean; above it, I_x(a, b) = 1 - I_(1-x)(b, a).
    if x < (a + 1.0) / (a + b + 2.0) {
        front.exp() * fraction(a, b, x) / a
    } else {
        1.0 - front.exp() * fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of DLMF 8.17.22, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in (1..=STEPS).map(f64::from) {
        let even = step * (b - step) * x / ((a + 2.0 * step - 1.0) * (a + 2.0 * step));
        let odd = -(a + step) * (a + b + step) * x / ((a + 2.0 * step) * (a + 2.0 * step + 1.0));
        let mut last = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            last = c * d;
            result *= last;
        }
        if (last - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function for arguments of at least 0.5.
fn ln_gamma(argument: f64) -> f64 {
    let x = argument - 1.0;
    let base = x + 7.5;
    let terms = (1..).zip(&LANCZOS[1..]);
    let series = LANCZOS[0] + terms.map(|(at, term)| term / (x + f64::from(at))).sum::<f64>();
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * base.ln() - base + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_the_printed_tables() {
        // Two-sided: (tail, degrees of freedom, t).
        for (tail, freedom, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 4.0, 2.776),
            (0.05, 10.0, 2.228),
            (0.01, 5.0, 4.032),
            (0.01, 8.0, 3.355),
            (0.01, 30.0, 2.750),
            (0.001, 20.0, 3.850),
            (0.05, 1e7, 1.960),
        ] {
            let found = critical(tail, freedom);
            assert!((found - expected).abs() < 6e-4, "{tail} {freedom}: {found}, not {expected}");
            assert!((two_sided(found, freedom) - tail).abs() < 1e-9);
        }
    }

    #[test]
    fn one_and_two_degrees_of_freedom_have_their_closed_forms() {
        for t in [0.1, 0.5, 1.0, 3.0, 50.0] {
            let cauchy = 1.0 - 2.0 / std::f64::consts::PI * f64::atan(t);
            assert!((two_sided(t, 1.0) - cauchy).abs() < 1e-12, "{t}");
            let two = 1.0 - t / f64::sqrt(2.0 + t * t);
            assert!((two_sided(-t, 2.0) - two).abs() < 1e-12, "{t}");
        }
        assert_eq!(two_sided(0.0, 3.0), 1.0);
    }

    #[test]
    fn welchs_test_is_that_of_a_worked_example() {
        let one = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let other =
            [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.0];
        // Computed directly: mean difference 2.8067, standard error, Satterthwaite's freedom.
        let found = Difference::of_moments(moments(&one), moments(&other)).unwrap();
        assert!((found.mean / found.error - 2.829).abs() < 0.001, "{found:?}");
        assert!((found.freedom - 27.88).abs() < 0.05, "{found:?}");
        assert!((found.probability() - 0.0086).abs() < 3e-4, "{}", found.probability());
        let [low, high] = found.interval(0.05);
        assert!(low > 0.0 && low < found.mean && found.mean < high);
        assert_eq!(Difference::of(&one[..1], &other), None);
    }

    #[test]
    fn yuens_test_is_that_of_a_worked_example() {
        // Computed directly: n = 15, 3 left out at each end, 9 left.
        let one: Vec<f64> = (1..=15).map(f64::from).collect();
        let other: Vec<f64> = one.iter().map(|value| value + 4.0).collect();
        let found = Difference::of(&one, &other).unwrap();
        // The winsorised values are 4, 4, 4, 4, 5 to 11, 12, 12, 12, 12: their squares sum to 156.
        let error = (2.0 * 156.0_f64 / (9.0 * 8.0)).sqrt();
        assert!((found.mean - 4.0).abs() < 1e-12 && (found.error - error).abs() < 1e-12, "{found:?}");
        assert!((found.freedom - 16.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_few_far_values_do_not_hide_a_difference() {
        let noise = [0.3, -0.8, 0.5, 0.9, -0.2, -0.6, 0.1, 0.7, -0.9, 0.4, -0.5, 0.2];
        let mut one: Vec<f64> = noise.iter().map(|value| value / 100.0).collect();
        let mut other: Vec<f64> = noise.iter().rev().map(|value| value / 100.0 - 0.05).collect();
        (one[3], one[8], other[5], other[7]) = (-0.7, -0.3, -0.6, -0.4);
        assert!(Difference::of(&one, &other).unwrap().probability() < 1e-4);
        let untrimmed = Difference::of_moments(moments(&one), moments(&other)).unwrap();
        assert!(untrimmed.probability() > 0.5);
    }

    #[test]
    fn samples_without_scatter_differ_only_if_their_means_do() {
        let same = Difference::of(&[1.0; 3], &[1.0; 3]).unwrap();
        let moved = Difference::of(&[1.0; 3], &[1.1; 3]).unwrap();
        assert_eq!((same.probability(), moved.probability()), (1.0, 0.0));
        let mean = Difference::mean_of(&[same, moved]).unwrap();
        assert!((mean.mean - 0.05).abs() < 1e-12 && mean.probability() < 1e-9);
        assert_eq!(Difference::mean_of(&[]), None);
    }

    #[test]
    fn the_mean_of_equal_differences_is_more_certain_than_each() {
        let each = Difference { mean: 0.05, error: 0.02, freedom: 8.0 };
        let mean = Difference::mean_of(&[each; 4]).unwrap();
        assert!((mean.error - 0.01).abs() < 1e-12 && (mean.freedom - 32.0).abs() < 1e-9, "{mean:?}");
    }

    #[test]
    fn holms_correction_is_that_of_the_textbook() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(corrected.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12));
        assert!(holm(&[]).is_empty());
    }
}
