//! Rule `test-names`: the list of tests reads as a specification.
//!
//! The name of a test is a sentence about a behaviour: it names its subject, and has no house word. The
//! rule reads the functions under `#[test]`, and the names that a macro of the test suites turns into
//! tests.

use super::lexer::{length_in_brackets, line_of, words};
use super::prose::{self, Phrase};
use super::source::{Finding, Source};

pub(super) const RULE: &str = "test-names";

/// Macros whose arguments are names of tests.
const MACROS: [&str; 4] = ["behaviours!", "on_each_engine!", "cases!", "refusals!"];
/// First words that stand for a subject.
const PRONOUNS: [&str; 3] = ["who", "what", "it"];

/// Finds names of tests that hide their subject or have a house word.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let phrases = prose::house_words();
    let rust = sources.iter().filter(|source| source.is_rust());
    rust.flat_map(|source| check_one(source, &phrases)).collect()
}

fn check_one(source: &Source, phrases: &[Phrase]) -> Vec<Finding> {
    let code = source.code();
    let names = test_names(&code);
    names.iter().filter_map(|(line, name)| fault(source, *line, name, phrases)).collect()
}

/// Returns the first fault of a name.
fn fault(source: &Source, line: usize, name: &str, phrases: &[Phrase]) -> Option<Finding> {
    let first = name.split('_').next().unwrap_or_default();
    if PRONOUNS.contains(&first) {
        let advice = format!("`{name}` hides its subject: name it, as in `a_client_that_…`, `a_file_…`");
        return Some(source.finding(line, RULE, advice));
    }
    let found = prose::faults_of_text(source, (line, &name.replace('_', " ")), phrases);
    found.first().map(|fault| source.finding(line, RULE, format!("`{name}`: {}", fault.advice)))
}

/// Returns the names of tests in code, with their lines.
fn test_names(code: &str) -> Vec<(usize, &str)> {
    let of_functions = code.match_indices("#[test]").filter_map(|(at, _)| function(code, at));
    let of_macros = MACROS.into_iter().flat_map(|name| code.match_indices(name)).flat_map(|(at, name)| {
        let list = arguments(&code[at + name.len()..]);
        words(list).map(|(_, word)| (word.as_ptr().addr() - code.as_ptr().addr(), word))
    });
    of_functions.chain(of_macros).map(|(at, name)| (line_of(code, at), name)).collect()
}

/// Returns the name of the function that follows an attribute.
fn function(code: &str, at: usize) -> Option<(usize, &str)> {
    let mut after = words(&code[at..]).skip_while(|(_, word)| *word != "fn").skip(1);
    after.next().map(|(offset, name)| (at + offset, name))
}

/// Returns the arguments of a macro, without their brackets. Code without brackets has none.
fn arguments(code: &str) -> &str {
    let within = code.trim_start().strip_prefix(['(', '{', '[']).unwrap_or_default();
    &within[..length_in_brackets(within)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<usize> {
        let source = Source::new("tests/tests/behaviours/uploads.rs".to_owned(), text);
        check(&[source]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_name_that_hides_its_subject_is_found() {
        for name in ["who_asks_waits", "what_is_sent_arrives", "it_ends", "whoever_asks_waits"] {
            let behaviours = format!("behaviours!(scenario;\n    a_b,\n    {name},\n);\n");
            assert_eq!(findings(&behaviours), [3], "{name}");
            assert_eq!(findings(&format!("#[test]\nfn {name}() {{}}\n")), [2], "{name}");
            assert_eq!(findings(&format!("on_each_engine!(forks: {name});\n")), [1], "{name}");
        }
    }

    #[test]
    fn a_name_with_a_house_word_is_found() {
        assert_eq!(findings("#[test]\nfn nobody_waits() {}\n"), [2]);
        assert_eq!(findings("#[test]\n#[ignore = \"slow\"]\nfn a_client_is_told_why() {}\n"), [3]);
        assert_eq!(findings("cases! {\n    contents:\n        an_upload_is_broken_off;\n}\n"), [3]);
    }

    #[test]
    fn other_names_and_other_functions_are_left_alone() {
        for text in [
            "#[test]\nfn a_client_that_waits_is_served() {}\nfn who_am_i() {}\n",
            "behaviours!(scenario; a_file_is_sent);\nfn what_is_wrong() {}\n",
            "#[test]\nfn items_are_sorted() { /* who_waits */ }\n",
            "macro_rules! behaviours { () => {} }\nfn who_asks() {}\n",
        ] {
            assert_eq!(findings(text), [0; 0], "{text}");
        }
    }
}
