//! The figures of open-loop trials at a share of the maximum throughput.
//!
//! They are on no curve: their rates follow from it. Invariant: only measured repetitions after the
//! discarded ones are in a figure.

use super::in_order;
use super::points::{LoadPoint, point};
use crate::experiment::plan::case;
use crate::experiment::template::Values;
use crate::results::{FinishedTrial, Results};

/// The figures of a contender at a share of its maximum throughput.
#[derive(Clone, Debug)]
pub struct OpenLoopPoint {
    /// The name of the contender.
    pub contender: String,
    /// The values of its variables, without the number of users.
    pub case: Values,
    /// The rate in percent of the maximum throughput of the closed loops.
    pub percent: u32,
    /// The rate in requests a second; none if no trial had one.
    pub rate: Option<f64>,
    /// The figures; its level is the percent.
    pub load: LoadPoint,
    /// Responses in all repetitions that count.
    pub requests: u64,
}

/// Returns the points of all open loops, in the order of the contenders and of the trials.
pub fn open_loop_points(results: &Results) -> Vec<OpenLoopPoint> {
    let mut groups: Vec<(&str, u32, Vec<&FinishedTrial>)> = Vec::new();
    for trial in &results.open_loops {
        let Some(percent) = trial.open_loop.map(|one| one.percent) else { continue };
        let is_same = |group: &&mut (&str, u32, Vec<&FinishedTrial>)| {
            group.0 == trial.contender && group.1 == percent && group.2[0].point == trial.point
        };
        match groups.iter_mut().find(is_same) {
            Some((_, _, group)) => group.push(trial),
            None => groups.push((&trial.contender, percent, vec![trial])),
        }
    }
    in_order(results, &mut groups, |group| group.0);
    groups
        .into_iter()
        .map(|(contender, percent, group)| of_group(results, contender, percent, &group))
        .collect()
}

fn of_group(results: &Results, contender: &str, percent: u32, group: &[&FinishedTrial]) -> OpenLoopPoint {
    let load = point(results, "percent", &group[0].point, group);
    let kept = group.iter().filter_map(|trial| super::kept(results, trial));
    OpenLoopPoint {
        contender: contender.to_owned(),
        case: case(&group[0].point),
        percent,
        rate: group.iter().find_map(|trial| trial.open_loop?.rate),
        load: LoadPoint { level: f64::from(percent), ..load },
        requests: kept.map(|one| one.load.requests).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::maximum_throughput;
    use super::*;
    use crate::results::TrialResult;
    use crate::results::synthetic::{SyntheticPlan, System};

    #[test]
    fn open_loops_have_their_own_points_and_are_on_no_curve() {
        let plan = SyntheticPlan { open_percent: vec![50, 90], discarded: 1, ..SyntheticPlan::default() };
        let mut results = plan.results(&[System::simple("a", 0.001, 0.0)]).unwrap();
        results.open_loops[1].result = TrialResult::Failed("it hung".to_owned());
        let curves = super::super::curves(&results);
        assert_eq!((curves.len(), curves[0].points.len()), (1, plan.users.len()));
        let points = open_loop_points(&results);
        let found: Vec<(u32, Option<f64>, usize)> =
            points.iter().map(|one| (one.percent, one.rate, one.load.failed)).collect();
        assert_eq!(found, [(50, Some(500.0), 1), (90, Some(900.0), 0)]);
        let figures = points[1].load.figures.as_ref().unwrap();
        // One queue: R = D / (1 - U).
        assert!(figures.is_open && (figures.response.mean - 0.010).abs() < 1e-9, "{figures:?}");
        assert_eq!((figures.p95.unwrap().count, points[1].requests), (4, 4 * 9000));
        assert_eq!(points[0].load.figures.as_ref().unwrap().throughput.count, 3);
    }

    #[test]
    fn the_maximum_of_a_case_is_that_of_its_curve() {
        let plan = SyntheticPlan { noise: 0.02, ..SyntheticPlan::default() };
        let results =
            plan.results(&[System::simple("a", 0.001, 0.0), System::simple("b", 0.002, 0.0)]).unwrap();
        let curves = super::super::curves(&results);
        let expected = curves[1].saturation.map(|one| one.throughput_max);
        assert_eq!(maximum_throughput(&results, "b", &Values::new()), expected);
        assert_eq!(maximum_throughput(&results, "none", &Values::new()), None);
    }
}
