//! Rule `engines`: only the engines, the binary, the load generator, the lab and tests name an engine.
//!
//! Other code and comments must not: a protocol that depended on its engine would have to be written
//! twice. Names that are also plain words (process, thread, pool) are not checked.

use super::source::{Finding, Source};

pub(super) const RULE: &str = "engines";

const PLACES: [&str; 7] =
    ["crates/engine", "crates/plimsoll", "crates/load", "crates/lab", "tests", "fuzz", "xtask"];

/// Other files that may name an engine, each with its reason.
const EXCEPTIONS: [(&str, &str); 1] =
    [("crates/io/src/lib.rs", "the overview of the contract says who fulfils it")];

/// Finds an engine's name in the wrong place.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    if source.is_under(&PLACES) || EXCEPTIONS.iter().any(|(path, _)| source.is_under(&[path])) {
        return Vec::new();
    }
    let named = source.lines.iter().filter(|line| names_an_engine(&line.raw));
    named
        .map(|line| {
            source.finding(line.number, RULE, "say what the contract (crates/io) says, not who does it")
        })
        .collect()
}

fn names_an_engine(line: &str) -> bool {
    let identifiers = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    identifiers
        .flat_map(words)
        .any(|word| word.starts_with("epoll") || ["uring", "iouring"].contains(&word.as_str()))
}

/// Returns the words of an identifier, in lower case: `IoUring_fd` has `io`, `uring`, `fd`.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in identifier.chars() {
        if character == '_' || (was_lower && character.is_uppercase()) {
            words.push(String::new());
        }
        was_lower = character.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| character != '_') {
            word.extend(character.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Source::new(path.to_owned(), text)).len()
    }

    #[test]
    fn finds_a_name_in_code_and_comment() {
        for text in
            ["// as epoll does", "fn io_uring() {}", "struct IoUring;", "EPOLLIN", "EpollLoop", "uring_fd"]
        {
            assert_eq!(findings("crates/proto/src/http/session.rs", text), 1, "{text}");
        }
    }

    #[test]
    fn knows_a_name_from_a_word_that_holds_it() {
        for text in ["during", "// measuring a thread pool's process", "configuring"] {
            assert_eq!(findings("crates/proto/src/http/session.rs", text), 0, "{text}");
        }
    }

    #[test]
    fn some_places_may() {
        assert_eq!(findings("crates/engine/src/serve/epoll.rs", "//! epoll"), 0);
        assert_eq!(findings("crates/io/src/lib.rs", "//! epoll"), 0);
        assert_eq!(findings("crates/io/src/stream.rs", "//! epoll"), 1);
    }
}
