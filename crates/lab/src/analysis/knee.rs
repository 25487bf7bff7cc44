//! The number of users at which a measured system saturates, and its maximum throughput.
//!
//! Two numbers are given, because they answer different questions. N* = (R(1) + Z) Xmax is where the
//! asymptotes meet; N95 is the least number of users with 95 % of the maximum. Invariant: both come from
//! measured points alone, and no point beyond them is assumed. Xmax is the largest of several noisy
//! means, and so biased upwards.

use crate::stats::MeanInterval;

/// The share of the maximum throughput that N95 has.
const NEARLY_ALL: f64 = 0.95;

/// A measured point: users, requests a second, and the mean response time in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The number of users.
    pub users: u32,
    /// Requests a second.
    pub throughput: f64,
    /// The mean response time in seconds.
    pub response: f64,
}

/// Where a system saturates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// The maximum throughput of all points, in requests a second.
    pub throughput_max: f64,
    /// The number of users that has it.
    pub users_at_max: u32,
    /// N* = (R(1) + Z) Xmax; none without a point of one user.
    pub asymptotic: Option<f64>,
    /// The least number of users with 95 % of the maximum throughput.
    pub nearly_all: u32,
    /// Whether the largest number of users has the maximum, and more than 5 % more than the next smaller
    /// one: then the maximum may lie beyond.
    pub is_open: bool,
}

impl Saturation {
    /// Returns where a system saturates whose users think for `think` seconds. None without points.
    pub fn of(points: &[Point], think: f64) -> Option<Saturation> {
        let mut points = points.to_vec();
        points.sort_by_key(|point| point.users);
        let best = points.iter().max_by(|one, other| one.throughput.total_cmp(&other.throughput))?;
        let enough = NEARLY_ALL * best.throughput;
        let nearly_all = points.iter().find(|point| point.throughput >= enough)?.users;
        let single = points.iter().find(|point| point.users == 1);
        let is_open = match points.as_slice() {
            [.., before, last] => last.users == best.users && before.throughput < enough,
            _ => true,
        };
        Some(Saturation {
            throughput_max: best.throughput,
            users_at_max: best.users,
            asymptotic: single.map(|single| (single.response + think) * best.throughput),
            nearly_all,
            is_open,
        })
    }
}

/// How far N* and N95 of the repetitions are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SaturationRange {
    /// The mean and the interval of N*.
    pub asymptotic: Option<MeanInterval>,
    /// The smallest and the largest N95; none of a single repetition.
    pub nearly_all: Option<[u32; 2]>,
}

impl SaturationRange {
    /// Returns the range over repetitions, each with its points. All have the maximum at the number of users
    /// that has it in the mean: the maximum of each alone would be biased more.
    pub fn of(saturation: &Saturation, repetitions: &[Vec<Point>], think: f64) -> SaturationRange {
        let at = |points: &[Point], users: u32| points.iter().find(|point| point.users == users).copied();
        let max = |points: &[Point]| at(points, saturation.users_at_max).map(|point| point.throughput);
        let asymptotic = repetitions.iter().filter_map(|points| {
            let single = at(points, 1)?;
            Some((single.response + think) * max(points)?)
        });
        let nearly_all = repetitions.iter().filter_map(|points| {
            let enough = NEARLY_ALL * max(points)?;
            points.iter().filter(|point| point.throughput >= enough).map(|point| point.users).min()
        });
        let nearly_all: Vec<u32> = nearly_all.collect();
        let ends = nearly_all.iter().min().zip(nearly_all.iter().max());
        SaturationRange {
            asymptotic: MeanInterval::of_positive(&asymptotic.collect::<Vec<f64>>()),
            nearly_all: ends.filter(|_| nearly_all.len() > 1).map(|(low, high)| [*low, *high]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Centre, solve};
    use super::*;

    fn points(centres: &[Centre], think: f64, users: &[u32]) -> Vec<Point> {
        let solved = solve(centres, think, 300);
        let state = |users: &u32| solved.iter().find(|state| state.users == *users).unwrap();
        let point = |users| {
            let state = state(users);
            Point { users: state.users, throughput: state.throughput, response: state.response }
        };
        users.iter().map(point).collect()
    }

    #[test]
    fn the_asymptotes_meet_where_the_demands_say() {
        let centres = [Centre::Queue(0.010), Centre::Queue(0.004)];
        let measured = points(&centres, 0.1, &[1, 2, 4, 8, 12, 16, 32, 300]);
        let saturation = Saturation::of(&measured, 0.1).unwrap();
        // (14 ms + 100 ms) / 10 ms.
        assert!((saturation.asymptotic.unwrap() - 11.4).abs() < 0.05, "{saturation:?}");
        assert_eq!((saturation.users_at_max, saturation.is_open), (300, false));
        assert_eq!(saturation.nearly_all, 16);
    }

    #[test]
    fn a_maximum_at_the_last_point_is_open_until_the_curve_is_flat() {
        let rising = points(&[Centre::Queue(0.010)], 1.0, &[1, 10, 50]);
        assert!(Saturation::of(&rising, 1.0).unwrap().is_open);
        let flat = points(&[Centre::Queue(0.010)], 1.0, &[1, 150, 200, 300]);
        assert!(!Saturation::of(&flat, 1.0).unwrap().is_open);
        assert_eq!(Saturation::of(&[], 0.0), None);
        assert!(Saturation::of(&rising[..1], 1.0).unwrap().is_open);
    }

    #[test]
    fn n_star_and_n95_of_repetitions_have_an_interval_and_a_range() {
        let of = |factor: f64| {
            let point = |users, throughput: f64, response| Point { users, throughput, response };
            vec![point(1, 10.0, 0.1), point(8, 60.0 * factor, 0.13), point(16, 62.0, 0.26)]
        };
        let saturation = Saturation::of(&of(1.0), 0.0).unwrap();
        let range = SaturationRange::of(&saturation, &[of(1.0), of(0.9), of(1.01)], 0.0);
        assert_eq!(range.nearly_all, Some([8, 16]));
        let asymptotic = range.asymptotic.unwrap();
        assert!((asymptotic.mean - 6.2).abs() < 1e-9 && asymptotic.count == 3, "{asymptotic:?}");
        let single = SaturationRange::of(&saturation, &[of(1.0)], 0.0);
        assert_eq!((single.nearly_all, single.asymptotic.unwrap().interval), (None, None));
    }

    #[test]
    fn points_of_any_order_give_the_same_result() {
        let mut measured = points(&[Centre::Queue(0.010)], 0.1, &[1, 2, 4, 8, 16]);
        let before = Saturation::of(&measured, 0.1);
        measured.reverse();
        assert_eq!(Saturation::of(&measured, 0.1), before);
        assert_eq!(Saturation::of(&measured[..2], 0.1).unwrap().asymptotic, None, "no point of one user");
    }
}
