//! Rule `heads`: every file begins with what it is, what it is not and which invariants must hold.
//!
//! A program cannot check the meaning. The rule requires a `//!` block of two lines with three
//! sentences, or with a word that states a limit. A file of tests, or one that only lists modules, needs
//! no more than one line.

use super::source::{Finding, Source};

pub(super) const RULE: &str = "heads";

/// Words by which a head states what its module is not, or what must hold.
const BORDERS: [&str; 10] =
    ["not", "never", "no", "nothing", "none", "neither", "nor", "only", "must", "always"];

/// Finds a file without a head, or with one that states no limit.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let head = head(source);
    let advice = if head.is_empty() {
        "open with `//!`: the purpose, the limits and the invariants of the file"
    } else if is_exempt(source) || draws_a_border(&head) {
        return Vec::new();
    } else {
        "say in the `//!` head also what this is not, or what must hold"
    };
    vec![source.finding(1, RULE, advice)]
}

/// Returns the lines of the opening block; attributes may precede it.
fn head(source: &Source) -> Vec<&str> {
    let lines = source.lines.iter().map(|line| line.raw.trim());
    lines
        .skip_while(|line| line.is_empty() || line.starts_with("#!["))
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect()
}

fn is_exempt(source: &Source) -> bool {
    source.is_test_file() || source.lines.iter().all(|line| only_lists(line.code.trim()))
}

fn only_lists(code: &str) -> bool {
    let starts = ["#", "mod ", "pub mod ", "pub(crate) mod ", "pub(super) mod ", "use ", "pub use "];
    code.is_empty() || (starts.iter().any(|start| code.starts_with(start)) && !code.contains('{'))
}

fn draws_a_border(head: &[&str]) -> bool {
    let text = head.join(" ").to_lowercase();
    let sentences = text.matches(". ").count() + usize::from(text.ends_with('.'));
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    head.len() >= 2 && (sentences >= 3 || words.any(|word| BORDERS.contains(&word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Source::new(path.to_owned(), text)).len()
    }

    #[test]
    fn asks_for_a_head_that_draws_a_border() {
        let path = "crates/io/src/stream.rs";
        assert_eq!(findings(path, "fn a() {}\n"), 1);
        assert_eq!(findings(path, "// a comment\n//! A head.\n"), 1);
        assert_eq!(findings(path, "//! Streams.\n//! Of bytes.\nfn a() {}\n"), 1);
        assert_eq!(findings(path, "//! Streams of bytes.\n//!\n//! They do not parse.\nfn a() {}\n"), 0);
        assert_eq!(findings(path, "#![no_main]\n\n//! One. Two.\n//! Three.\nfn a() {}\n"), 0);
    }

    #[test]
    fn asks_one_line_of_a_test_and_of_a_list() {
        assert_eq!(findings("tests/range.rs", "//! Ranges.\nfn a() {}\n"), 0);
        assert_eq!(findings("tests/range.rs", "fn a() {}\n"), 1);
        assert_eq!(
            findings("crates/wire/src/http/mod.rs", "//! HTTP.\n\nmod head;\npub use head::Head;\n"),
            0
        );
    }
}
