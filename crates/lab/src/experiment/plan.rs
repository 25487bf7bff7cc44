//! The trials of an experiment in their order: closed loops, and the open loops after them.
//!
//! It runs none. Invariants: no trial is planned twice. The open loops of a case follow the last of its
//! closed loops directly, because they are at a share of its maximum. A case is a point without the number
//! of users.

use std::collections::{BTreeMap, BTreeSet};

use super::load::USERS;
use super::open_loop::OpenLoop;
use super::template::Values;
use super::{Experiment, order};

/// A planned trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The index of the contender.
    pub contender: usize,
    /// The values of the variables that concern it.
    pub point: Values,
    /// Its rate if it is an open loop at a share of the maximum throughput.
    pub open_loop: Option<OpenLoop>,
    /// The repetition, from 1.
    pub repetition: u32,
}

/// The closed loops of a contender in one case.
struct CaseTrials {
    /// The index of the last of them.
    last: usize,
    /// The point with the largest number of users.
    point: Values,
}

impl Experiment {
    /// Returns the planned trials in their order.
    ///
    /// A contender is not measured twice at points that differ only in variables that do not concern it.
    pub fn trials(&self) -> Vec<Trial> {
        let used: Vec<BTreeSet<String>> = self.contenders.iter().map(|one| self.used_by(one)).collect();
        let closed = self.closed_loops(&used);
        let mut after: BTreeMap<usize, Vec<Trial>> = BTreeMap::new();
        for (last, trials) in self.open_loops(&used, &closed) {
            after.entry(last).or_default().extend(trials);
        }
        let mut trials = Vec::new();
        for (at, trial) in closed.into_iter().enumerate() {
            trials.push(trial);
            trials.extend(after.remove(&at).unwrap_or_default());
        }
        trials
    }

    /// Returns a trial for the profile of each contender and case, with the largest number of users. A
    /// contender that runs already has none, nor has one with a load tool.
    pub fn profiled(&self) -> Vec<Trial> {
        let used: Vec<BTreeSet<String>> = self.contenders.iter().map(|one| self.used_by(one)).collect();
        let mut cases: Vec<(usize, CaseTrials)> = cases(&self.closed_loops(&used))
            .into_iter()
            .map(|((contender, _), case)| (contender, case))
            .filter(|(contender, _)| !self.contenders[*contender].processes.is_empty())
            .filter(|(contender, _)| !self.has_load_tool(*contender))
            .collect();
        cases.sort_by_key(|(_, case)| case.last);
        let trial = |(contender, case): (usize, CaseTrials)| Trial {
            contender,
            point: case.point,
            open_loop: None,
            repetition: 1,
        };
        cases.into_iter().map(trial).collect()
    }

    fn closed_loops(&self, used: &[BTreeSet<String>]) -> Vec<Trial> {
        let mut planned = BTreeSet::new();
        let mut trials = Vec::new();
        for (point, repetition) in self.order.sequence(self.points.len()) {
            for contender in order::contender_order(self.contenders.len(), repetition) {
                let point = projected(&self.points[point], &used[contender]);
                if planned.insert((contender, point.clone(), repetition)) {
                    trials.push(Trial { contender, point, open_loop: None, repetition });
                }
            }
        }
        trials
    }

    /// Returns the open loops of each case, with the index of the closed loop that they follow.
    fn open_loops(&self, used: &[BTreeSet<String>], closed: &[Trial]) -> Vec<(usize, Vec<Trial>)> {
        let percents = &self.open_loop.percent;
        if percents.is_empty() {
            return Vec::new();
        }
        let mut measured = cases(closed);
        measured.retain(|(contender, _), _| !self.has_load_tool(*contender));
        let mut blocks = Vec::new();
        for point in &self.points {
            // Each case of a contender is taken out by the first point that has it.
            let own: BTreeMap<usize, CaseTrials> = (0..self.contenders.len())
                .filter_map(|contender| {
                    let case = case(&projected(point, &used[contender]));
                    Some((contender, measured.remove(&(contender, case))?))
                })
                .collect();
            let Some(last) = own.values().map(|case| case.last).max() else { continue };
            let mut trials = Vec::new();
            for (percent, repetition) in self.order.sequence(percents.len()) {
                let ordered = order::contender_order(self.contenders.len(), repetition).into_iter();
                trials.extend(ordered.filter_map(|contender| {
                    let point = own.get(&contender)?.point.clone();
                    let open_loop = Some(OpenLoop { percent: percents[percent], rate: None });
                    Some(Trial { contender, point, open_loop, repetition })
                }));
            }
            blocks.push((last, trials));
        }
        blocks
    }
}

/// Returns the values of a point without the number of users.
pub(crate) fn case(point: &Values) -> Values {
    let mut case = point.clone();
    case.remove(USERS);
    case
}

fn cases(closed: &[Trial]) -> BTreeMap<(usize, Values), CaseTrials> {
    let users = |point: &Values| point.get(USERS).and_then(|users| users.parse::<u64>().ok());
    let mut cases: BTreeMap<(usize, Values), CaseTrials> = BTreeMap::new();
    for (at, trial) in closed.iter().enumerate() {
        let new = || CaseTrials { last: at, point: trial.point.clone() };
        let case = cases.entry((trial.contender, case(&trial.point))).or_insert_with(new);
        case.last = at;
        if users(&trial.point) > users(&case.point) {
            case.point = trial.point.clone();
        }
    }
    cases
}

/// Returns the part of a point with the used variables.
fn projected(point: &Values, used: &BTreeSet<String>) -> Values {
    let used = point.iter().filter(|(name, _)| used.contains(*name));
    used.map(|(name, value)| (name.clone(), value.clone())).collect()
}
