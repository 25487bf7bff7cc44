//! Rule `texts`: messages and help follow the same rules as the prose.
//!
//! It reads the literals of the product that are sentences. A literal of fewer than three words is a name
//! or a format; a placeholder stands for a noun.

use super::prose::{self, Phrase};
use super::source::{Finding, Source};

pub(super) const RULE: &str = "texts";

/// Literals of fewer words are no sentences.
const WORDS_MIN: usize = 3;

/// Finds house words and hidden subjects in literals.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let phrases = prose::house_words();
    let rust = sources.iter().filter(|source| source.is_rust());
    rust.flat_map(|source| check_one(source, &phrases)).collect()
}

fn check_one(source: &Source, phrases: &[Phrase]) -> Vec<Finding> {
    let of_product = source.literals.iter().filter(|literal| !source.is_test_line(literal.line));
    of_product.flat_map(|literal| faults(source, (literal.line, &literal.text), phrases)).collect()
}

fn faults(source: &Source, (line, text): (usize, &str), phrases: &[Phrase]) -> Vec<Finding> {
    let plain = plain(text);
    let sentences = plain.lines().filter(|line| line.split_whitespace().count() >= WORDS_MIN);
    let found = sentences.flat_map(|text| prose::faults_of_text(source, (line, text), phrases));
    found.map(|found| Finding { rule: RULE, ..found }).collect()
}

/// Returns the text that a literal prints, with code in backticks for each placeholder.
fn plain(literal: &str) -> String {
    let mut rest = literal.chars().peekable();
    let mut text = String::new();
    while let Some(next) = rest.next() {
        match next {
            '\\' => match rest.next() {
                Some('n') => text.push('\n'),
                // A line that is continued, without the indentation of the next one.
                Some('\n') => while rest.next_if(|c| c.is_whitespace()).is_some() {},
                _ => text.push(' '),
            },
            '{' => {
                while rest.next_if(|c| *c != '}').is_some() {}
                rest.next();
                text.push_str("`_`");
            }
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<usize> {
        let source = Source::new("crates/io/src/lib.rs".to_owned(), text);
        check(&[source]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_sentence_for_users_is_read() {
        assert_eq!(findings("fn a() {\n    b(\"Nobody answers at {to}.\");\n}\n"), [2]);
        assert_eq!(findings("#[error(\"{0}: what came is no answer\")]\nstruct A;\n"), [1]);
        assert_eq!(findings("const A: &str = \"one\\n\\\n    who asks waits\\n\";\n"), [1]);
        assert_eq!(findings("let a = \"uploads are under \\\n    way here\";\n"), [1]);
    }

    #[test]
    fn names_placeholders_and_tests_are_left_alone() {
        for text in [
            "let a = \"nobody\";",
            "let a = format!(\"the {told} of {nobody}\");",
            "let a = \"call `told` of the client\";",
            "let a = b'\\'';",
            "#[cfg(test)]\nmod tests {\n    const A: &str = \"who asks is told\";\n}\n",
        ] {
            assert_eq!(findings(text), [0; 0], "{text}");
        }
    }
}
