//! The house rules: properties that every file has.
//!
//! One rule is one file with one `check` and a test that shows it can fail. A finding contains advice,
//! not only the violation. A line that must break a rule is excused on itself or on the line above, in a
//! plain comment: `tidy-allow(rule): reason`. Rules read text, not types: checks that the compiler or
//! clippy can do are left to them.

mod arrows;
mod engines;
mod escapes;
mod glossary;
mod heads;
mod lexer;
mod names;
mod paths;
mod places;
mod purity;
mod sizes;
mod source;
mod threads;
mod unsafety;
mod words;

use anyhow::{Result, ensure};

use crate::house;
use source::{Finding, Source};

/// A rule that checks one file at a time.
type Rule = fn(&Source) -> Vec<Finding>;

const RUST_RULES: [Rule; 9] = [
    heads::check,
    sizes::check,
    engines::check,
    threads::check,
    unsafety::check,
    names::check,
    words::check,
    purity::check,
    places::check,
];

/// The names of the rules, for escapes.
const RULE_NAMES: [&str; 11] = [
    heads::RULE,
    sizes::RULE,
    engines::RULE,
    threads::RULE,
    unsafety::RULE,
    names::RULE,
    words::RULE,
    purity::RULE,
    places::RULE,
    arrows::RULE,
    glossary::RULE,
];

/// Prints every finding, and fails if there is one.
pub(crate) fn run() -> Result<()> {
    let sources: Vec<Source> =
        house::files()?.into_iter().map(|(path, text)| Source::new(path, &text)).collect();
    let packages = house::own_packages()?;
    let mut findings: Vec<Finding> = sources.iter().flat_map(judge).collect();
    findings.extend(arrows::check(&packages, &sources));
    findings.extend(glossary::check(&sources));
    let mut findings = escapes::apply(&sources, findings, &RULE_NAMES);
    findings.sort();
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", sources.len(), findings.len());
    ensure!(findings.is_empty(), "a house rule is broken");
    Ok(())
}

fn judge(source: &Source) -> Vec<Finding> {
    let rules: &[Rule] = if source.is_rust() { &RUST_RULES } else { &[places::check] };
    rules.iter().flat_map(|rule| rule(source)).collect()
}
