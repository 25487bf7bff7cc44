//! The house rules: properties that every file has.
//!
//! One rule is one file with one `check` and a test that shows it can fail. A finding contains advice,
//! not only the violation. A line that must break a rule is excused on itself or on the line above, in a
//! plain comment: `tidy-allow(rule): reason`. Rules read text, not types: checks that the compiler or
//! clippy can do are left to them.

mod allowed;
mod arrows;
mod engines;
mod escapes;
mod heads;
mod lexer;
mod limits;
mod links;
mod locals;
mod names;
mod paths;
mod places;
mod prose;
mod purity;
mod sizes;
mod source;
mod test_names;
mod texts;
mod threads;
mod unsafety;
mod words;

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use crate::house;
use allowed::Allowed;
use source::{Finding, Source};

/// A rule that checks one file at a time.
type Rule = fn(&Source) -> Vec<Finding>;

const RUST_RULES: [Rule; 9] = [
    heads::check,
    sizes::check,
    engines::check,
    threads::check,
    unsafety::check,
    words::check,
    purity::check,
    places::check,
    limits::check,
];

/// The names of the rules, for escapes.
const RULE_NAMES: [&str; 15] = [
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
    prose::RULE,
    test_names::RULE,
    texts::RULE,
    links::RULE,
    limits::RULE,
];

/// Prints every finding, and fails if there is one. `--update-allowed` first removes the exceptions that
/// the tree does not need any more.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => check(),
        ["--update-allowed"] => update_allowed().and_then(|()| check()),
        _ => bail!("the only flag is --update-allowed"),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Prints every finding, and fails if there is one.
pub(crate) fn check() -> Result<()> {
    let sources = sources()?;
    let packages = house::own_packages()?;
    let mut findings: Vec<Finding> = sources.iter().flat_map(judge).collect();
    findings.extend(arrows::check(&packages, &sources));
    findings.extend(links::check(&sources));
    findings.extend(limits::check_page(&sources));
    findings.extend(test_names::check(&sources));
    findings.extend(texts::check(&sources));
    let mut allowed = Allowed::new(&sources);
    findings.extend(prose::check(&sources, &mut allowed));
    findings.extend(names::check(&sources, &mut allowed));
    findings.extend(allowed.unused());
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

/// Removes the exceptions that the tree does not need any more.
fn update_allowed() -> Result<()> {
    let sources = sources()?;
    let mut allowed = Allowed::new(&sources);
    prose::check(&sources, &mut allowed);
    names::check(&sources, &mut allowed);
    let path = house::root().join(allowed::PATH);
    let text = std::fs::read_to_string(&path)?;
    Ok(std::fs::write(&path, allowed.updated(&text))?)
}

fn sources() -> Result<Vec<Source>> {
    Ok(house::files()?.into_iter().map(|(path, text)| Source::new(path, &text)).collect())
}

fn judge(source: &Source) -> Vec<Finding> {
    let rules: &[Rule] = if source.is_rust() { &RUST_RULES } else { &[places::check] };
    rules.iter().flat_map(|rule| rule(source)).collect()
}
