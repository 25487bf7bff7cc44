//! The conclusion of a report: which contender carried most, and what may have limited it.
//!
//! It computes nothing. Invariants: contenders whose intervals overlap are not ranked; the hint is called
//! one.

use super::cells::values_text;
use super::charts::groups;
use crate::analysis::{Curve, PointFigures};
use crate::experiment::template::Values;
use crate::format::figures::small_rate as rate;
use crate::results::BEGAN_BUSY;
use crate::stats::MeanInterval;

/// The number of combinations of fixed variables that the sentences name.
const NAMED: usize = 3;

/// Returns two sentences, and a third if they are in doubt; empty without figures.
pub(super) fn text(curves: &[Curve], axis: Option<&str>) -> String {
    let bests: Vec<Best<'_>> = groups(curves).into_iter().filter_map(best).collect();
    if bests.is_empty() {
        return String::new();
    }
    let maxima = joined(&bests, |best| best.maximum(axis));
    format!("{maxima} {}{}", limit(&bests), doubt(&bests))
}

/// Returns the sentence about maxima of trials that all began on a busy machine.
fn doubt(bests: &[Best<'_>]) -> &'static str {
    let is_busy = |best: &Best<'_>| {
        let trials = best.figures.throughput.count;
        best.figures.marks.iter().any(|(mark, count)| mark == BEGAN_BUSY && *count == trials)
    };
    if bests.iter().any(is_busy) {
        " Other work used the machine when the trials began: the figures may be too low."
    } else {
        ""
    }
}

/// The contender with the largest throughput of those that can be compared.
struct Best<'a> {
    values: &'a Values,
    curve: &'a Curve,
    figures: &'a PointFigures,
    users: u32,
    level: f64,
    /// The number of contenders.
    count: usize,
    /// Other contenders whose interval overlaps.
    equals: Vec<&'a str>,
}

fn best<'a>((values, group): (&'a Values, Vec<&'a Curve>)) -> Option<Best<'a>> {
    let figured = |curve: &&'a Curve| {
        let point = curve.best_point()?;
        Some((*curve, point, point.figures.as_ref()?))
    };
    let mut all: Vec<_> = group.iter().filter_map(figured).collect();
    all.sort_by(|(.., one), (.., other)| other.throughput.mean.total_cmp(&one.throughput.mean));
    let ((curve, point, figures), others) = all.split_first()?;
    let equals = others.iter().filter(|(.., other)| overlap(&figures.throughput, &other.throughput));
    let equals = equals.map(|(curve, ..)| curve.contender.as_str()).collect();
    let (users, level, count) = (point.users, point.level, all.len());
    Some(Best { values, curve, figures, users, level, count, equals })
}

/// Returns whether samples leave open which of two means is larger. A single sample leaves everything open.
fn overlap(one: &MeanInterval, other: &MeanInterval) -> bool {
    match (one.interval, other.interval) {
        (Some([low, _]), Some([_, high])) => high >= low,
        _ => true,
    }
}

impl Best<'_> {
    /// Returns `at VALUES, CONTENDER carried most: RATE with N users`.
    fn maximum(&self, axis: Option<&str>) -> String {
        let at = values_text(self.values);
        let at = if at.is_empty() { at } else { format!("at {at}, ") };
        let rate = rate(self.figures.throughput.mean);
        let load = match axis {
            Some("users") => format!(" with {} users", self.users),
            Some(_) => format!(" of {} planned", self.level),
            None => String::new(),
        };
        let name = &self.curve.contender;
        let verb = if self.count == 1 { "carried at most" } else { "carried most," };
        let equals = match self.equals.as_slice() {
            [] => String::new(),
            equals => format!(" (not clearly more than {})", equals.join(", ")),
        };
        format!("{at}{name} {verb} {rate} requests/s{load}{equals}")
    }
}

/// Returns the sentence about what limited the best contenders.
fn limit(bests: &[Best<'_>]) -> String {
    let hint =
        |best: &Best<'_>| best.curve.hint.as_ref().map_or_else(|| "unknown".to_owned(), |hint| hint.text());
    let first = bests.first().map(hint).unwrap_or_default();
    let limits = if bests.iter().all(|best| hint(best) == first) {
        first
    } else {
        let one = |best: &Best<'_>| format!("at {}: {}", values_text(best.values), hint(best));
        bests.iter().take(NAMED).map(one).collect::<Vec<String>>().join("; ")
    };
    format!("Busiest there, as a hint and not a measured verdict: {limits}.")
}

/// Joins the clauses of a sentence.
fn joined(bests: &[Best<'_>], clause: impl Fn(&Best<'_>) -> String) -> String {
    let mut text = bests.iter().take(NAMED).map(clause).collect::<Vec<String>>().join("; ");
    if bests.len() > NAMED {
        text += &format!("; {} more combinations are in the overview", bests.len() - NAMED);
    }
    let mut characters = text.chars();
    let first: String = characters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    // The name of a contender keeps its case.
    let is_name = bests.first().is_some_and(|best| best.values.is_empty());
    if is_name { format!("{text}.") } else { format!("{first}{}.", characters.as_str()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{curves, sweep_axis};
    use crate::results::synthetic::{SyntheticPlan, System};
    use crate::results::{Results, TrialResult};

    fn conclusion(systems: &[System], plan: &SyntheticPlan) -> String {
        let results = plan.results(systems).unwrap();
        text(&curves(&results), sweep_axis(&results))
    }

    #[test]
    fn the_fastest_contender_is_named_with_its_maximum_and_the_hint() {
        let plan = SyntheticPlan { noise: 0.01, ..SyntheticPlan::default() };
        let systems = [System::simple("base", 0.001, 0.003), System::simple("fast", 0.0006, 0.002)];
        let text = conclusion(&systems, &plan);
        assert!(text.starts_with("fast carried most, "), "{text}");
        assert!(text.contains(" users. Busiest there") && text.contains("CPU of server at"), "{text}");
    }

    #[test]
    fn contenders_whose_intervals_overlap_are_not_ranked() {
        let plan = SyntheticPlan { noise: 0.05, ..SyntheticPlan::default() };
        let systems = [System::simple("one", 0.001, 0.003), System::simple("other", 0.001, 0.003)];
        let text = conclusion(&systems, &plan);
        assert!(text.contains("(not clearly more than "), "{text}");
    }

    #[test]
    fn maxima_of_trials_on_a_busy_machine_are_in_doubt() {
        let system = System::simple("only", 0.001, 0.003);
        let mut results = SyntheticPlan::default().results(&[system]).unwrap();
        let says = |results: &Results| text(&curves(results), sweep_axis(results)).contains("may be too low");
        assert!(!says(&results));
        for trial in &mut results.trials {
            if let TrialResult::Measured(measured) = &mut trial.result {
                measured.marks.push(BEGAN_BUSY.to_owned());
            }
        }
        assert!(says(&results));
    }

    #[test]
    fn a_contender_alone_is_compared_with_none() {
        let text = conclusion(&[System::simple("only", 0.001, 0.003)], &SyntheticPlan::default());
        assert!(text.starts_with("only carried at most "), "{text}");
        assert_eq!(super::text(&[], None), "");
    }
}
