//! The exceptions of the rules `prose` and `names` that are still in the tree: `xtask/words/allowed.txt`.
//!
//! The list only shrinks. A name that is not in it is a finding, and an entry without a use is one too.
//! `cargo xtask tidy --update-allowed` removes such entries; it never adds one.

use std::collections::BTreeSet;

use super::source::{Finding, Source};

pub(super) const RULE: &str = "allowed";
/// The list, from the root of the workspace.
pub(super) const PATH: &str = "xtask/words/allowed.txt";

/// The exceptions, and those that a finding needed.
pub(super) struct Allowed {
    entries: Vec<(usize, String)>,
    used: BTreeSet<String>,
}

impl Allowed {
    /// Reads the list. Without the file, nothing is permitted.
    pub(super) fn new(sources: &[Source]) -> Self {
        let lines = sources.iter().filter(|source| source.path == PATH).flat_map(|source| &source.lines);
        let entries = lines.filter(|line| is_entry(&line.raw)).map(|line| (line.number, line.raw.clone()));
        Self { entries: entries.collect(), used: BTreeSet::new() }
    }

    /// Whether a crate may still have a name. `kind` is `type`, `module`, `function` or `local`.
    pub(super) fn permits_name(&mut self, path: &str, kind: &str, name: &str) -> bool {
        self.permits(format!("{} {kind} {name}", package(path)))
    }

    /// Whether a crate's prose is not rewritten yet.
    pub(super) fn permits_prose(&mut self, path: &str) -> bool {
        self.permits(format!("{} prose", package(path)))
    }

    fn permits(&mut self, entry: String) -> bool {
        let is_listed = self.entries.iter().any(|(_, listed)| *listed == entry);
        if is_listed {
            self.used.insert(entry);
        }
        is_listed
    }

    /// Returns a finding for each entry without a use.
    pub(super) fn unused(&self) -> Vec<Finding> {
        let unused = self.entries.iter().filter(|(_, entry)| !self.used.contains(entry));
        let advice = "the tree does not need this any more: run `cargo xtask tidy --update-allowed`";
        unused
            .map(|(line, entry)| Finding {
                path: PATH.to_owned(),
                line: *line,
                rule: RULE,
                advice: format!("`{entry}`: {advice}"),
            })
            .collect()
    }

    /// Returns the text of the file without the unused entries.
    pub(super) fn updated(&self, text: &str) -> String {
        let kept = text.lines().filter(|line| !is_entry(line) || self.used.contains(*line));
        kept.flat_map(|line| [line, "\n"]).collect()
    }
}

fn is_entry(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

/// Returns the folder of the package that has the file, such as `crates/io` or `tests`.
fn package(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let length = if parts[0] == "crates" { 2 } else { 1 };
    parts[..length.min(parts.len())].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# A comment.\ncrates/io type Told\ncrates/io prose\n";

    fn list() -> Allowed {
        Allowed::new(&[Source::new(PATH.to_owned(), LIST)])
    }

    #[test]
    fn only_a_listed_name_is_permitted() {
        let mut allowed = list();
        assert!(allowed.permits_name("crates/io/src/lib.rs", "type", "Told"));
        assert!(!allowed.permits_name("crates/io/src/lib.rs", "module", "Told"));
        assert!(!allowed.permits_name("crates/web/src/lib.rs", "type", "Told"));
        assert!(allowed.permits_prose("crates/io/src/lib.rs"));
        assert!(!allowed.permits_prose("README.md"));
    }

    #[test]
    fn an_entry_without_a_use_is_found_and_removed() {
        let mut allowed = list();
        assert!(allowed.permits_prose("crates/io/src/lib.rs"));
        let unused: Vec<usize> = allowed.unused().iter().map(|finding| finding.line).collect();
        assert_eq!(unused, [2]);
        assert_eq!(allowed.updated(LIST), "# A comment.\ncrates/io prose\n");
    }
}
