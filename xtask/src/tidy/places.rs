//! Rule `places`: no file names a path of the machine that it was written on.
//!
//! Sources, docs and scripts must not contain a folder that exists only on some machines: they take it
//! as an argument, or mark it as an example. Tests are not checked; they create their own folders.

use super::source::{Finding, Source, SourceLine};

pub(super) const RULE: &str = "places";

/// Folders at the root of a machine that a checkout cannot count on.
const FOLDERS: [&str; 3] = ["work", "root", "tmp"];

/// Finds an absolute path below such a folder.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let advice = "name no folder of this machine: take it from an argument, or from mktemp";
    let found = source.product_lines().filter(|line| FOLDERS.iter().any(|folder| names(line, folder)));
    found.map(|line| source.finding(line.number, RULE, advice)).collect()
}

fn names(line: &SourceLine, folder: &str) -> bool {
    let path = format!("/{folder}/");
    line.raw.match_indices(&path).any(|(at, _)| !line.raw[..at].ends_with(continues_a_path))
}

/// Whether a slash after this character continues a path that began before.
fn continues_a_path(character: char) -> bool {
    character.is_alphanumeric() || "_-.~*})]/".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Source::new(path.to_owned(), text)).len()
    }

    #[test]
    fn finds_a_folder_of_some_machine() {
        for folder in FOLDERS {
            assert_eq!(findings("README.md", &format!("see /{folder}/notes")), 1);
            assert_eq!(findings("crates/io/src/lib.rs", &format!("let a = \"/{folder}/a\";")), 1);
        }
    }

    #[test]
    fn a_longer_path_and_a_test_are_fine() {
        assert_eq!(findings("README.md", "target/tmp/a, {dir}/tmp/, /tmpfs/, https://a.example/tmp/"), 0);
        assert_eq!(findings("tests/upload.rs", "let a = \"/tmp/a\";"), 0);
    }
}
