//! The maximum throughput of each contender and case, of which open-loop trials get a share.
//!
//! It measures nothing. Invariant: a maximum is computed once in a run, and is in the results folder before
//! the first trial that uses it. A resumed run has the same rates.

use anyhow::Result;

use crate::analysis::maximum_throughput;
use crate::experiment::open_loop::OpenLoop;
use crate::experiment::plan::case;
use crate::experiment::{Experiment, Trial};
use crate::results::{FinishedTrial, Maximum, Results, ResultsFolder, Run};

/// The maxima of a run, and the closed loops from which they come.
pub(super) struct Maxima {
    /// The results of the closed loops so far.
    closed: Results,
}

impl Maxima {
    pub(super) fn new(experiment: &Experiment, run: Run, finished: &[FinishedTrial]) -> Maxima {
        let (experiment, text, open_loops) = (experiment.clone(), String::new(), Vec::new());
        let trials = finished.iter().filter(|done| done.open_loop.is_none()).cloned().collect();
        Maxima { closed: Results { experiment, text, run, trials, open_loops, profiles: Vec::new() } }
    }

    pub(super) fn note(&mut self, done: &FinishedTrial) {
        if done.open_loop.is_none() {
            self.closed.trials.push(done.clone());
        }
    }

    /// Returns a trial with its rate if it is an open loop. Without a measured closed loop, it has none.
    pub(super) fn with_rate(&mut self, trial: &Trial, folder: &ResultsFolder) -> Result<Trial> {
        let Some(OpenLoop { percent, .. }) = trial.open_loop else { return Ok(trial.clone()) };
        let rate = self.maximum(trial, folder)?.map(|maximum| share(maximum, percent));
        Ok(Trial { open_loop: Some(OpenLoop { percent, rate }), ..trial.clone() })
    }

    fn maximum(&mut self, trial: &Trial, folder: &ResultsFolder) -> Result<Option<f64>> {
        let contender = &self.closed.experiment.contenders[trial.contender].name;
        let case = case(&trial.point);
        let is_its = |one: &&Maximum| one.contender == *contender && one.case == case;
        if let Some(known) = self.closed.run.maxima.iter().find(is_its) {
            return Ok(Some(known.requests_per_second));
        }
        let Some(found) = maximum_throughput(&self.closed, contender, &case) else { return Ok(None) };
        let maximum = Maximum { contender: contender.clone(), case, requests_per_second: found };
        self.closed.run.maxima.push(maximum);
        folder.write_run(&self.closed.run)?;
        Ok(Some(found))
    }
}

/// Returns a share of a rate, rounded to a thousandth.
fn share(maximum: f64, percent: u32) -> f64 {
    (maximum * f64::from(percent) * 10.0).round().max(1.0) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::TrialResult;
    use crate::results::synthetic::{SyntheticPlan, System};

    fn results() -> Results {
        let plan = SyntheticPlan { open_percent: vec![50], ..SyntheticPlan::default() };
        plan.results(&[System::simple("a", 0.001, 0.0), System::simple("b", 0.002, 0.0)]).unwrap()
    }

    fn rates(maxima: &mut Maxima, folder: &ResultsFolder) -> Vec<Option<f64>> {
        let planned = maxima.closed.experiment.trials();
        let open = planned.iter().filter(|trial| trial.open_loop.is_some() && trial.repetition == 1);
        open.map(|trial| maxima.with_rate(trial, folder).unwrap().open_loop.unwrap().rate).collect()
    }

    #[test]
    fn a_rate_is_a_share_of_the_contenders_own_maximum_and_stays_when_the_run_resumes() {
        let mut results = results();
        let path = tempfile::tempdir().unwrap();
        let (folder, _) = ResultsFolder::open(path.path(), &results.text).unwrap();
        let mut maxima = Maxima::new(&results.experiment, results.run.clone(), &results.trials);
        assert_eq!(rates(&mut maxima, &folder), [Some(500.0), Some(250.0)]);
        let run = folder.run().unwrap().unwrap();
        assert_eq!(run.maxima.len(), 2);
        // Later measurements do not change it.
        results.trials.truncate(2);
        let mut resumed = Maxima::new(&results.experiment, run, &results.trials);
        assert_eq!(rates(&mut resumed, &folder), [Some(500.0), Some(250.0)]);
    }

    #[test]
    fn without_a_measured_closed_loop_there_is_no_rate() {
        let mut results = results();
        for trial in results.trials.iter_mut().filter(|trial| trial.contender == "b") {
            trial.result = TrialResult::Failed("it hung".to_owned());
        }
        let path = tempfile::tempdir().unwrap();
        let (folder, _) = ResultsFolder::open(path.path(), &results.text).unwrap();
        let mut maxima = Maxima::new(&results.experiment, results.run.clone(), &results.trials);
        assert_eq!(rates(&mut maxima, &folder), [Some(500.0), None]);
    }
}
