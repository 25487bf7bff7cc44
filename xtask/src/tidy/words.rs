//! Rule `words`: unfinished code and reminders are not committed.
//!
//! It reads the product's code and comments, not its tests. Future work belongs in the issue tracker,
//! where it is visible, and not in the text.

use super::source::{Finding, Source, SourceLine};

pub(super) const RULE: &str = "words";

const MACROS: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];
const REMINDERS: [&str; 2] = ["FIXME", "XXX"];

/// Finds unfinished code and reminders.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let found = source.product_lines().filter_map(|line| Some((line.number, left_over(line)?)));
    found
        .map(|(line, word)| source.finding(line, RULE, format!("`{word}`: finish it, or write an issue")))
        .collect()
}

fn left_over(line: &SourceLine) -> Option<&'static str> {
    let of_code = MACROS.into_iter().find(|name| is_called(&line.code, name));
    of_code.or_else(|| REMINDERS.into_iter().find(|word| holds_word(&line.comment, word)))
}

fn is_called(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

fn holds_word(comment: &str, word: &str) -> bool {
    comment.split(|c: char| !c.is_alphanumeric()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(&Source::new("crates/io/src/lib.rs".to_owned(), text)).len()
    }

    #[test]
    fn finds_what_is_left_over() {
        for text in ["todo!()", "std::todo!()", "a(dbg!(b))", "// FIXME: later", "/* XXX */"] {
            assert_eq!(findings(text), 1, "{text}");
        }
    }

    #[test]
    fn reads_neither_literals_nor_tests_nor_namesakes() {
        for text in ["\"todo!\"", "my_todo!()", "// XXXL", "#[cfg(test)]\nmod tests {\n    // FIXME\n}\n"] {
            assert_eq!(findings(text), 0, "{text}");
        }
    }
}
