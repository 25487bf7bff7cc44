//! Trials as comma-separated values (RFC 4180), one per line, for further analysis.
//!
//! Invariant: a missing figure is empty, never 0.

use crate::bench::{Measured, Trial};
use crate::format::csv::quoted;

const HEAD: &str = "case,congestion,round,contender,seconds,requests,requests_per_second,bytes_per_second,\
                    cpu_us_per_request,server_share,generator_share,generator_is_the_limit,p50_us,p99_us,\
                    errors,verified,settled,cores_busy,fault";

/// Formats all trials, in the order in which they ran.
pub fn csv(trials: &[Trial]) -> String {
    let lines = trials.iter().map(line);
    std::iter::once(HEAD.to_owned()).chain(lines).map(|line| line + "\r\n").collect()
}

fn line(trial: &Trial) -> String {
    let what =
        [&trial.case, &trial.congestion, &trial.round.to_string(), &trial.contender].map(|of| quoted(of));
    let fault = quoted(trial.fault.as_deref().unwrap_or_default());
    let figures = trial.measured.as_ref().map_or_else(none, figures);
    [&what[..], &figures, &[fault]].concat().join(",")
}

fn figures(of: &Measured) -> Vec<String> {
    let cores: Vec<String> = of.cores_busy.iter().map(|busy| format!("{busy:.2}")).collect();
    vec![
        format!("{:.3}", of.seconds),
        of.requests.to_string(),
        format!("{:.1}", of.requests_per_second),
        format!("{:.0}", of.bytes_per_second),
        of.cpu_us_per_request.map_or_else(String::new, |cpu| format!("{cpu:.3}")),
        of.server_share.map_or_else(String::new, |share| format!("{share:.3}")),
        format!("{:.3}", of.generator_share),
        of.generator_is_the_limit.to_string(),
        format!("{:.0}", of.p50_us),
        format!("{:.0}", of.p99_us),
        of.errors.values().sum::<u64>().to_string(),
        of.verified.to_string(),
        of.settled.to_string(),
        cores.join(" "),
    ]
}

/// Returns one empty cell per figure.
fn none() -> Vec<String> {
    vec![String::new(); HEAD.split(',').count() - 5]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_failed_has_no_figures_and_as_many_columns() {
        let trial = Trial {
            case: "1K-kept".to_owned(),
            congestion: "bbr".to_owned(),
            contender: "a".to_owned(),
            round: 2,
            measured: None,
            fault: Some("said \"no\", and ended".to_owned()),
        };
        let text = csv(&[trial]);
        let columns = text.lines().next().unwrap().split(',').count();
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with("1K-kept,bbr,2,a,,,"), "{line}");
        assert!(line.ends_with(",\"said \"\"no\"\", and ended\""), "{line}");
        assert_eq!(line.replace("no\"\", and", "").split(',').count(), columns);
        assert!(text.lines().all(|line| !line.contains('\r')) && text.matches("\r\n").count() == 2);
    }
}
