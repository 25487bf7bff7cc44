//! The order of the trials of an experiment.
//!
//! It runs none. Invariant: the contenders of a point are measured directly one after another, in
//! alternating order (A B, B A), so that a drift of the machine affects all of them alike.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::limits::{GAP_MAX, REPETITIONS_MAX};
use super::value::{Scalar, time};

/// How trials follow each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Order {
    /// The number of trials of each contender at each point.
    pub repetitions: u32,
    /// How many of these, from the first, count for nothing.
    pub discarded: u32,
    /// The time between two trials.
    pub gap: Scalar,
    /// The part of a trial that changes from each to the next.
    pub innermost: Innermost,
    /// When a contender is started again.
    pub restart: Restart,
    /// How long the laboratory waits for idle cores before a trial.
    pub settle: Scalar,
}

/// The names of the fields of [`Order`].
pub(crate) const KEYS: [&str; 6] = ["repetitions", "discarded", "gap", "innermost", "restart", "settle"];

/// Returns whether the order has a key of this name.
pub fn is_key(name: &str) -> bool {
    KEYS.contains(&name)
}

/// The part of a trial that changes from each to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Innermost {
    /// All repetitions of a point follow each other: constant load.
    #[default]
    Repetition,
    /// All points follow each other, and then again: changing load.
    Point,
}

/// When a contender is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Restart {
    /// When its texts have other values.
    #[default]
    Change,
    /// Before each point.
    Point,
    /// Before each trial.
    Trial,
}

impl Default for Order {
    fn default() -> Order {
        Order {
            repetitions: 3,
            discarded: 0,
            gap: Scalar("0s".to_owned()),
            innermost: Innermost::default(),
            restart: Restart::default(),
            settle: Scalar("2s".to_owned()),
        }
    }
}

impl Order {
    /// Returns the time between two trials.
    ///
    /// # Errors
    /// The value is no time.
    pub fn gap(&self) -> Result<Duration> {
        time(&self.gap.0).context("`gap`")
    }

    /// Returns how long idle cores are waited for.
    ///
    /// # Errors
    /// The value is no time.
    pub fn settle(&self) -> Result<Duration> {
        time(&self.settle.0).context("`settle`")
    }

    pub(super) fn check(&self) -> Result<()> {
        let allowed = 1..=REPETITIONS_MAX;
        ensure!(allowed.contains(&self.repetitions), "`repetitions` must be from 1 to {REPETITIONS_MAX}");
        ensure!(
            self.discarded < self.repetitions,
            "`discarded` must be less than `repetitions`, else nothing is left"
        );
        ensure!(
            self.gap()? <= GAP_MAX && self.settle()? <= GAP_MAX,
            "`gap` and `settle` may be an hour at most"
        );
        Ok(())
    }

    /// Returns the sequence of (point, repetition), with repetitions from 1.
    pub(super) fn sequence(&self, points: usize) -> Vec<(usize, u32)> {
        let repetitions = 1..=self.repetitions;
        match self.innermost {
            Innermost::Repetition => {
                (0..points).flat_map(|point| repetitions.clone().map(move |number| (point, number))).collect()
            }
            Innermost::Point => {
                repetitions.flat_map(|number| (0..points).map(move |point| (point, number))).collect()
            }
        }
    }
}

/// Returns the order of so many contenders in a repetition: each second one is reversed.
pub(super) fn contender_order(contenders: usize, repetition: u32) -> Vec<usize> {
    let mut contender_order: Vec<usize> = (0..contenders).collect();
    if repetition.is_multiple_of(2) {
        contender_order.reverse();
    }
    contender_order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_or_points_follow_each_other() {
        let order = |text: &str| toml::from_str::<Order>(text).unwrap();
        let constant = order("repetitions = 2").sequence(2);
        assert_eq!(constant, [(0, 1), (0, 2), (1, 1), (1, 2)]);
        let changing = order("repetitions = 2\ninnermost = \"point\"").sequence(2);
        assert_eq!(changing, [(0, 1), (1, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn contenders_take_turns_in_alternating_order() {
        assert_eq!(
            (contender_order(3, 1), contender_order(3, 2), contender_order(3, 3)),
            (vec![0, 1, 2], vec![2, 1, 0], vec![0, 1, 2])
        );
    }

    #[test]
    fn an_impossible_order_is_refused() {
        for (text, why) in [
            ("repetitions = 0", "from 1"),
            ("discarded = 3", "nothing is left"),
            ("gap = \"1\"", "`gap`"),
            ("gap = \"2h\"", "an hour"),
        ] {
            let refused = format!("{:#}", toml::from_str::<Order>(text).unwrap().check().unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
    }
}
