//! The number of users at which a measured system saturates, and its maximum throughput.
//!
//! Two numbers are given, because they answer different questions. N* = (R(1) + Z) Xmax is where the
//! asymptotes meet; N95 is the least number of users with 95 % of the maximum. Invariant: both come from
//! measured points alone, and no point beyond them is assumed.

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
    fn points_of_any_order_give_the_same_result() {
        let mut measured = points(&[Centre::Queue(0.010)], 0.1, &[1, 2, 4, 8, 16]);
        let before = Saturation::of(&measured, 0.1);
        measured.reverse();
        assert_eq!(Saturation::of(&measured, 0.1), before);
        assert_eq!(Saturation::of(&measured[..2], 0.1).unwrap().asymptotic, None, "no point of one user");
    }
}
