//! Rule `limits`: each limit of a crate is in a `limits.rs`, and the documentation names its test.
//!
//! A limit is a constant whose name ends in `_MAX`. Tests may define their own. The page lists the limits of
//! every crate of the server; those of the laboratory's experiments and of the simulator bound no client.

use std::collections::BTreeSet;

use super::source::{Finding, Source};

pub(super) const RULE: &str = "limits";

/// The page that names the test of each limit, or the reason why it has none.
const PAGE: &str = "docs/design/limits.md";

/// Folders whose limits the page does not list.
const UNLISTED: [&str; 6] = [
    "crates/io/src/sim",
    "crates/lab/src/agent",
    "crates/lab/src/conditions",
    "crates/lab/src/experiment",
    "crates/lab/src/profile",
    "crates/lab/src/run",
];

/// Finds limits outside a `limits.rs`.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_under(&["crates"]) || source.path.ends_with("limits.rs") {
        return Vec::new();
    }
    let finding =
        |(line, _)| source.finding(line, RULE, "move the limit to the `limits.rs` of its crate or module");
    limits_of(source).map(finding).collect()
}

/// Finds limits that the page does not list.
pub(super) fn check_page(sources: &[Source]) -> Vec<Finding> {
    let lines = sources.iter().filter(|source| source.path == PAGE).flat_map(|page| &page.lines);
    let listed: BTreeSet<&str> =
        lines.flat_map(|line| line.raw.split(|at: char| !at.is_ascii_alphanumeric() && at != '_')).collect();
    let files = sources.iter().filter(|source| {
        source.is_under(&["crates"]) && source.path.ends_with("limits.rs") && !source.is_under(&UNLISTED)
    });
    let limits = files.flat_map(|source| limits_of(source).map(move |limit| (source, limit)));
    let finding = |(source, (line, name)): (&Source, (usize, &str))| {
        let advice = format!("add `{name}` to {PAGE}, with its test or the reason why it has none");
        source.finding(line, RULE, advice)
    };
    limits.filter(|(_, (_, name))| !listed.contains(name)).map(finding).collect()
}

/// Returns the line and the name of each limit.
fn limits_of(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    source.product_lines().filter_map(|line| {
        let (before, rest) = line.code.split_once("const ")?;
        let is_item = before.trim().is_empty() || before.trim_start().starts_with("pub");
        let name = rest.split(':').next()?;
        (is_item && name.ends_with("_MAX")).then_some((line.number, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::new(path.to_owned(), text)
    }

    #[test]
    fn finds_a_limit_outside_its_file() {
        let tests = "#[cfg(test)]\nmod tests {\n    const A_MAX: u8 = 1;\n}\n";
        let text = &["pub(crate) const NAMES_MAX: usize = 3;\n", tests].concat();
        assert_eq!(check(&source("crates/store/src/owner.rs", text)).len(), 1);
        assert_eq!(check(&source("crates/store/src/limits.rs", text)).len(), 0);
        assert_eq!(check(&source("crates/store/tests/owner.rs", text)).len(), 0);
        assert_eq!(check(&source("crates/store/src/owner.rs", "// const NAMES_MAX: usize\n")).len(), 0);
    }

    #[test]
    fn finds_a_limit_that_the_page_does_not_list() {
        let limits = || source("crates/store/src/limits.rs", "pub const NAMES_MAX: usize = 3;\n");
        let page = |text| check_page(&[limits(), source(PAGE, text)]).len();
        assert_eq!(page("| `LONG_NAMES_MAX` | none |\n"), 1);
        assert_eq!(page("| `NAMES_MAX` | none |\n"), 0);
    }
}
