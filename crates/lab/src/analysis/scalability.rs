//! The universal scalability law: X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1)).
//!
//! λ is the throughput of one user, σ the part that is serial (contention), κ the cost of coherence: with κ
//! above 0, more users lower the throughput. It is fitted to measured points by least squares of N / X, which
//! is linear in them, with σ and κ at least 0. Invariant: without three different numbers of users there is
//! no fit.

use super::knee::Point;

/// The coefficients of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalability {
    /// λ: requests a second of one user.
    pub single: f64,
    /// σ.
    pub contention: f64,
    /// κ.
    pub coherence: f64,
}

impl Scalability {
    /// Fits the law to points; each counts by its relative error. None if they do not determine it.
    pub fn fit(points: &[Point]) -> Option<Scalability> {
        let mut numbers: Vec<u32> = points.iter().map(|point| point.users).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() < 3 || points.iter().any(|point| point.throughput <= 0.0) {
            return None;
        }
        // N / X = a + b (N - 1) + c N (N - 1), with a = 1/λ, b = σ/λ, c = κ/λ: the best of the fits in which
        // none is negative, over all choices of coefficients that are 0.
        let choices = [[true, true], [true, false], [false, true], [false, false]];
        let fits = choices.into_iter().filter_map(|choice| of_choice(points, choice));
        let best = fits.min_by(|one, other| one.1.total_cmp(&other.1))?;
        let [single, contention, coherence] = best.0;
        (single > 0.0).then(|| Scalability {
            single: 1.0 / single,
            contention: contention / single,
            coherence: coherence / single,
        })
    }

    /// Returns the throughput of `users`.
    pub fn throughput(&self, users: f64) -> f64 {
        self.single * users / (1.0 + self.contention * (users - 1.0) + self.coherence * users * (users - 1.0))
    }

    /// Returns the number of users with the largest throughput; none if it never falls.
    pub fn best_users(&self) -> Option<f64> {
        (self.coherence > 0.0).then(|| ((1.0 - self.contention).max(0.0) / self.coherence).sqrt())
    }
}

/// Fits with the chosen of b and c, the other being 0. Returns the coefficients, and the sum of squares.
fn of_choice(points: &[Point], [has_b, has_c]: [bool; 2]) -> Option<([f64; 3], f64)> {
    let terms = |point: &Point| {
        let users = f64::from(point.users);
        let weight = point.throughput / users;
        let own = |has: bool, value: f64| if has { value * weight } else { 0.0 };
        [weight, own(has_b, users - 1.0), own(has_c, users * (users - 1.0))]
    };
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for row in points.iter().map(terms) {
        for (at, term) in row.iter().enumerate() {
            right[at] += term;
            row.iter().zip(&mut matrix[at]).for_each(|(other, cell)| *cell += term * other);
        }
    }
    for (at, has) in [(1, has_b), (2, has_c)] {
        if !has {
            matrix[at][at] = 1.0;
        }
    }
    let solved = solve(matrix, right)?;
    if solved.iter().any(|coefficient| *coefficient < -1e-12) {
        return None;
    }
    let error = |point: &Point| {
        let found: f64 = terms(point).iter().zip(&solved).map(|(term, coefficient)| term * coefficient).sum();
        (found - 1.0).powi(2)
    };
    Some((solved.map(|coefficient| coefficient.max(0.0)), points.iter().map(error).sum()))
}

/// Solves three linear equations by elimination with pivots; none if they are not independent.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3)
            .max_by(|one, other| matrix[*one][column].abs().total_cmp(&matrix[*other][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let (own, own_right) = (matrix[column], right[column]);
        if own[column].abs() < 1e-300 {
            return None;
        }
        for row in (0..3).filter(|row| *row != column) {
            let factor = matrix[row][column] / own[column];
            matrix[row].iter_mut().zip(own).for_each(|(cell, pivot)| *cell -= factor * pivot);
            right[row] -= factor * own_right;
        }
    }
    Some([0, 1, 2].map(|at| right[at] / matrix[at][at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(law: Scalability, users: &[u32]) -> Vec<Point> {
        let point = |users: &u32| {
            let throughput = law.throughput(f64::from(*users));
            Point { users: *users, throughput, response: f64::from(*users) / throughput }
        };
        users.iter().map(point).collect()
    }

    #[test]
    fn the_coefficients_of_exact_points_are_found() {
        for (single, contention, coherence) in
            [(1000.0, 0.05, 0.0002), (250.0, 0.0, 0.001), (80_000.0, 0.9, 0.0), (10.0, 0.0, 0.0)]
        {
            let law = Scalability { single, contention, coherence };
            let found = Scalability::fit(&points(law, &[1, 2, 4, 8, 16, 32, 64])).unwrap();
            assert!((found.single / single - 1.0).abs() < 1e-6, "{found:?}");
            assert!((found.contention - contention).abs() < 1e-6, "{found:?}");
            assert!((found.coherence - coherence).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn a_system_that_gains_from_more_users_has_no_negative_contention() {
        let better = [1_u32, 2, 4, 8].map(|users| {
            let throughput = 100.0 * f64::from(users).powf(1.2);
            Point { users, throughput, response: 1.0 }
        });
        let found = Scalability::fit(&better).unwrap();
        assert_eq!((found.contention, found.coherence), (0.0, 0.0));
    }

    #[test]
    fn the_best_number_of_users_is_where_the_curve_turns() {
        let law = Scalability { single: 100.0, contention: 0.1, coherence: 0.001 };
        let best = law.best_users().unwrap();
        assert!((best - 30.0).abs() < 1e-9);
        assert!(law.throughput(best) > law.throughput(best - 1.0));
        assert!(law.throughput(best) > law.throughput(best + 1.0));
        assert_eq!(Scalability { coherence: 0.0, ..law }.best_users(), None);
    }

    #[test]
    fn two_numbers_of_users_determine_nothing() {
        let law = Scalability { single: 100.0, contention: 0.1, coherence: 0.001 };
        assert_eq!(Scalability::fit(&points(law, &[1, 1, 8, 8])), None);
        assert_eq!(Scalability::fit(&[]), None);
    }
}
