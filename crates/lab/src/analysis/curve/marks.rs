//! Signs of a distorted measurement, collected from the trials of a point.
//!
//! It judges nothing. Invariant: marks that differ in their numbers alone are one mark, with the range of
//! each number.

use super::points::grouped;
use crate::results::Measured;

/// Returns the marks of all trials, with the number of trials that have each.
pub(super) fn collected(trials: &[&Measured]) -> Vec<(String, usize)> {
    let marks: Vec<(String, &str)> =
        trials.iter().flat_map(|one| &one.marks).map(|mark| (template(mark), mark.as_str())).collect();
    let items = marks.iter().map(|(template, mark)| (template.as_str(), *mark));
    grouped(items).into_iter().map(|(_, marks)| (merged(&marks), marks.len())).collect()
}

/// Returns a mark with a placeholder for each number.
fn template(mark: &str) -> String {
    parts(mark).map(|part| if is_number(part) { "#" } else { part }).collect()
}

fn is_number(part: &str) -> bool {
    part.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Splits a text before and after each number.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_number = rest.starts_with(is_digit);
        let end = rest.find(|c| is_digit(c) != is_number).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Joins marks of one template: each number becomes its range.
fn merged(marks: &[&str]) -> String {
    let split: Vec<Vec<&str>> = marks.iter().map(|mark| parts(mark).collect()).collect();
    let Some(first) = split.first() else { return String::new() };
    let range = |at: usize| {
        let mut values: Vec<&str> = split.iter().filter_map(|parts| parts.get(at).copied()).collect();
        let value = |text: &&str| text.parse::<f64>().unwrap_or(0.0);
        values.sort_by(|one, other| value(one).total_cmp(&value(other)));
        match (values.first(), values.last()) {
            (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
            (low, _) => low.copied().unwrap_or_default().to_owned(),
        }
    };
    first
        .iter()
        .enumerate()
        .map(|(at, part)| if is_number(part) { range(at) } else { (*part).to_owned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_differ_in_numbers_alone_are_one_with_a_range() {
        let marks = ["spread over 0.6 ms", "spread over 0.1 ms", "spread over 12.0 ms"];
        assert_eq!(merged(&marks), "spread over 0.1 to 12.0 ms");
        assert_eq!(template(marks[0]), template(marks[2]));
        assert_ne!(template("the clock jumped"), template("the clock stopped"));
        assert_eq!(
            merged(&["more than 2 % of a core.", "more than 2 % of a core."]),
            "more than 2 % of a core."
        );
    }
}
