//! The outline of an experiment: the trials and points of each contender.
//!
//! It plans no trial. Invariant: the numbers of trials add up to those of [`Experiment::trials`].

use serde::Serialize;

use super::limits::OUTLINE_CHARACTERS_MAX;
use super::{Experiment, Trial};
use crate::format::table::Table;

/// The trials of a contender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outline {
    /// The name of the contender.
    pub contender: String,
    /// The number of its trials, with those of open loops.
    pub trials: usize,
    /// The variables that concern it and their values, in the order of the file.
    pub sweep: Vec<(String, Vec<String>)>,
}

impl Experiment {
    /// Returns the outline of each contender.
    pub fn outline(&self) -> Vec<Outline> {
        let all = self.trials();
        let of = |(at, contender): (usize, &super::contender::Contender)| {
            let own: Vec<&Trial> = all.iter().filter(|trial| trial.contender == at).collect();
            let values = |name: &str| {
                let mut values: Vec<String> = Vec::new();
                for value in own.iter().filter_map(|trial| trial.point.get(name)) {
                    if !values.contains(value) {
                        values.push(value.clone());
                    }
                }
                (name.to_owned(), values)
            };
            let sweep = self.variables().into_iter().map(values).filter(|(_, values)| !values.is_empty());
            Outline { contender: contender.name.clone(), trials: own.len(), sweep: sweep.collect() }
        };
        self.contenders.iter().enumerate().map(of).collect()
    }

    /// Returns the outline as a table.
    pub fn outline_table(&self) -> String {
        let mut table = Table::new(["contender", "trials", "sweep"]);
        for outline in self.outline() {
            let variable = |(name, values): &(String, Vec<String>)| {
                let values: Vec<String> = values.iter().map(|value| shortened(value)).collect();
                format!("{name} = {}", values.join(", "))
            };
            let sweep: Vec<String> = outline.sweep.iter().map(variable).collect();
            table.row([outline.contender.clone(), outline.trials.to_string(), sweep.join("; ")]);
        }
        table.text()
    }
}

/// Returns a value in a few characters on one line.
fn shortened(value: &str) -> String {
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= OUTLINE_CHARACTERS_MAX {
        return line;
    }
    line.chars().take(OUTLINE_CHARACTERS_MAX).chain(['…']).collect()
}
