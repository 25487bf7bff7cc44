//! Mistakes of an experiment file in one line: where they are, and what to write.
//!
//! It parses nothing. Invariant: a message of the TOML parser that is not known here is kept as it is.

use plimsoll_wire::nearest::suggestion;

/// A mistake of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", position(*.line))]
pub struct FileMistake {
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// What is wrong, and what to write.
    pub what: String,
}

impl FileMistake {
    /// Returns the mistake of a text that is no TOML.
    pub(crate) fn of_syntax(text: &str, error: &toml::de::Error) -> FileMistake {
        let line = error.span().map(|span| line_at(text, span.start));
        FileMistake { line, what: format!("it is no TOML: {}", one_line(error.message())) }
    }

    /// Returns the mistake of a value in a text.
    pub(super) fn of_value(text: &str, error: &toml::de::Error) -> FileMistake {
        let span = error.span();
        let key = span.as_ref().and_then(|span| key_before(text, span.start));
        let line = span.map(|span| line_at(text, span.start));
        FileMistake { line, what: explained(error.message(), key) }
    }

    /// Returns the mistake of a contender. `at` is its position in the text.
    pub(super) fn of_contender(text: &str, at: usize, error: &anyhow::Error) -> FileMistake {
        let mut headers =
            text.lines().enumerate().filter(|(_, line)| line.trim().starts_with("[[contenders]]"));
        FileMistake { line: headers.nth(at).map(|(line, _)| line + 1), what: format!("{error:#}") }
    }
}

/// Returns the message of an error without a position in a text.
pub(super) fn without_position(error: &toml::de::Error) -> String {
    let shown = error.to_string();
    let path = shown.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    explained(error.message(), path)
}

fn position(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// Returns the number of the line at an offset.
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the key on the line of a value at an offset.
fn key_before(text: &str, offset: usize) -> Option<&str> {
    let line = text.get(..offset)?.rsplit('\n').next()?;
    let key = line.split_once('=')?.0.trim();
    key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')).then_some(key)
}

/// Returns a message of the parser in the words of the manual.
fn explained(message: &str, key: Option<&str>) -> String {
    let quoted =
        |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let value = key.map_or_else(|| "the value".to_owned(), |key| format!("`{key}`"));
    let words = quoted(message);
    let known = || words.iter().skip(1).map(String::as_str);
    if let (true, Some(word)) = (message.starts_with("unknown field"), words.first()) {
        return format!("there is no key {word:?}; {}", suggestion(word, known()));
    }
    if let (true, Some(word)) = (message.starts_with("unknown variant"), words.first()) {
        return format!("{value} is {word:?}: write one of {}", known().collect::<Vec<_>>().join(", "));
    }
    if let (true, Some(word)) = (message.starts_with("missing field"), words.first()) {
        return format!("the key `{word}` is missing");
    }
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
        return format!("{value} is {}: write {}", found_value(found), expectation(expected));
    }
    if message.contains("untagged enum") {
        return format!("{value} is of another type: write a text in quotes, a number, true or false");
    }
    one_line(message)
}

/// Returns a value that the parser found, without its type.
fn found_value(found: &str) -> String {
    match found {
        "sequence" => "a list".to_owned(),
        "map" => "a table".to_owned(),
        _ => found.split_once(' ').map_or(found, |(_, value)| value.trim_matches('`')).to_owned(),
    }
}

/// Returns a type that the parser expects, as the manual calls it.
fn expectation(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number",
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        "a sequence" => "a list",
        "a map" => "a table",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
