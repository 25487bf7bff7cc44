//! Formats the doctor's findings: lines for a person, or JSON for a program.
//!
//! It judges nothing. Invariant: both formats contain the same findings.

use std::fmt::Write as _;

use super::{Finding, Verdict};

/// Formats a line for each finding, with its remedy below.
pub(crate) fn as_text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { check, verdict, seen, now, lasting } in findings {
        let verdict = match verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "fail",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{verdict:<5} {check:<width$}  {seen}");
        for (when, command) in [("now", now), ("lasting", lasting)] {
            if let Some(command) = command {
                let _ = writeln!(text, "{:width$}  {when:>14}: {command}", "");
            }
        }
    }
    text
}

/// Formats an array with an object for each finding.
///
/// # Errors
/// None in practice: every finding can be serialised.
pub(crate) fn as_json(findings: &[Finding]) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(findings)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_finding_and_its_fix() {
        let findings = [
            Finding::ok("clock", "2026"),
            Finding::warn("open files", "few").with_fix("ulimit -n 65536", "LimitNOFILE=65536"),
        ];
        let text = as_text(&findings);
        assert!(text.starts_with("ok    clock       2026\nwarn  open files  few\n"), "{text}");
        assert!(text.contains("    now: ulimit -n 65536\n") && text.contains("lasting: LimitNOFILE=65536\n"));
        let json: serde_json::Value = serde_json::from_str(&as_json(&findings).unwrap()).unwrap();
        assert_eq!((&json[0]["verdict"], &json[1]["now"]), (&"ok".into(), &"ulimit -n 65536".into()));
        assert!(json[0].get("now").is_none());
    }
}
