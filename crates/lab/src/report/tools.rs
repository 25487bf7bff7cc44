//! The section with the rates of load tools, and of the file servers beside them.
//!
//! It computes nothing. Invariant: all rates are from one run. The section does not verify their direction
//! and their length: the command of each tool decides them.

use super::cells::{mean, variables};
use super::content::{Block, Cell, DataTable, Section};
use crate::analysis::{BitRate, bit_rates};
use crate::format::figures::{percent, three_digits};
use crate::results::Results;

const TEXT: &str = "A load tool carries bytes and serves no file: its rate is that of the path under the \
                    same conditions, for the time that its command says. Rates are those of bodies, \
                    without headers, and so are their shares of the link.";

/// Returns the section; none without a measured load tool.
pub(super) fn section(results: &Results) -> Option<Section> {
    let table = table(results)?;
    Some(Section::new("The path by other tools", vec![Block::Text(TEXT.to_owned()), Block::Table(table)]))
}

/// Returns the table of all rates; none without a measured load tool.
pub(super) fn table(results: &Results) -> Option<DataTable> {
    let rates = bit_rates(results);
    if !rates.iter().any(|rate| results.experiment.is_tool(&rate.contender)) {
        return None;
    }
    let has_link = rates.iter().any(|rate| rate.share.is_some());
    let names = results.experiment.variables();
    let mut columns = vec!["contender"];
    columns.extend(&names);
    columns.push("Mbit/s");
    columns.extend(has_link.then_some("share of the link"));
    let row = |rate: &BitRate| {
        let mut cells = vec![Cell::words(&rate.contender)];
        cells.extend(variables(&names, &rate.point));
        cells.push(mean(Some(rate.megabits), three_digits));
        cells.extend(has_link.then(|| Cell::figure(rate.share, percent)));
        cells
    };
    let columns = columns.into_iter().map(str::to_owned).collect();
    Some(DataTable { columns, rows: rates.iter().map(row).collect(), point_columns: names.len() })
}

#[cfg(test)]
mod tests {
    use super::super::{html, markdown, trials};
    use super::*;
    use crate::analysis::{curves, reference};
    use crate::compare::compare;
    use crate::experiment::Experiment;
    use crate::results::synthetic::{SyntheticPlan, System};
    use crate::results::{FinishedTrial, LoadFigures, TrialResult};

    /// A file server, and a tool that carries 100 MB/s over a link of 1 Gbit/s.
    fn results() -> Results {
        let plan = SyntheticPlan { has_reference: true, ..SyntheticPlan::default() };
        let systems = [System::simple("server", 0.001, 0.003), System::simple("tool", 0.001, 0.003)];
        let mut results = plan.results(&systems).unwrap();
        let tool = "load_tool = { command = [\"true\", \"{users}\"], bytes = \"/b\", seconds = \"/s\" }\n";
        let text = results.text.replace("reference = false\n", &format!("reference = false\n{tool}"));
        results.text = text + "\n[conditions]\nlink = \"1Gbit/s\"\n";
        results.experiment = Experiment::parse(&results.text).unwrap();
        for trial in results.trials.iter_mut().filter(|trial| trial.contender == "tool") {
            let TrialResult::Measured(measured) = &mut trial.result else { panic!("it is measured") };
            let rates = LoadFigures { seconds: 2.0, bytes_per_second: 1e8, ..LoadFigures::of_tool() };
            measured.load = LoadFigures { bytes: 200_000_000, ..rates };
        }
        results
    }

    #[test]
    fn a_tool_stands_beside_the_server_with_its_share_of_the_link_and_is_in_no_curve() {
        let results = results();
        let table = table(&results).unwrap();
        let own: Vec<&Vec<Cell>> = table.rows.iter().filter(|row| row[0].text == "tool").collect();
        assert!(!own.is_empty() && table.rows.len() == 2 * own.len());
        for row in own {
            assert_eq!((row[2].text.as_str(), row[3].text.as_str()), ("800", "80 %"));
        }
        assert!(curves(&results).iter().all(|curve| curve.contender == "server"));
        assert_eq!(reference(&results), Some("server"));
        let report = super::super::contents(&results);
        for text in [html::page(&report), markdown::markdown(&report)] {
            assert!(text.contains("The path by other tools") && text.contains("share of the link"));
        }
        assert!(super::super::summary(&results).contains("80 %"));
    }

    #[test]
    fn a_tool_has_no_requests_in_the_csv_and_is_not_compared() {
        let results = results();
        let text = trials::csv(&results);
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<&str>>());
        let head = lines.next().unwrap();
        let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
        for line in lines.filter(|line| line[0] == "tool") {
            let of = |name: &str| line[at(name)];
            assert_eq!((of("loop"), of("bytes_per_second")), ("none", "100000000.000"));
            assert_eq!([of("requests"), of("requests_per_second"), of("latency_mean_us")], [""; 3]);
        }
        let compared = compare(&results, &results);
        assert!(compared.changes.iter().all(|change| change.contender == "server"));
        assert!(compared.missing.is_empty());
    }

    #[test]
    fn results_of_a_tool_alone_have_a_report_without_curves() {
        let mut results = results();
        results.trials.retain(|trial: &FinishedTrial| trial.contender == "tool");
        let page = html::page(&super::super::contents(&results));
        assert!(page.contains("The path by other tools") && !page.contains("No trial has finished."));
    }
}
