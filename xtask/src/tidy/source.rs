//! A file in the views that the rules need: its lines as written, its code alone, its comments alone,
//! and which lines are tests.
//!
//! Line numbers start at one here and in every finding. All four views have the same number of lines. In
//! a file that is not Rust, code and comments are both the whole text, and no line is a test unless the
//! file is.

use std::fmt;

use super::lexer::{self, Literal};

/// A violation of a rule, printed as `path:line: rule: advice`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) rule: &'static str,
    pub(super) advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.advice)
    }
}

/// A line in its views.
pub(super) struct SourceLine {
    pub(super) number: usize,
    pub(super) raw: String,
    /// The line without comments and without the contents of literals.
    pub(super) code: String,
    pub(super) comment: String,
    pub(super) is_test: bool,
}

/// A file.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) lines: Vec<SourceLine>,
    /// The literals of text, if the file is Rust.
    pub(super) literals: Vec<Literal>,
}

impl Source {
    pub(super) fn new(path: String, text: &str) -> Self {
        let (code, comments) =
            if path.ends_with(".rs") { lexer::split(text) } else { (text.to_owned(), text.to_owned()) };
        let whole = is_test_file(&path);
        let tests = test_lines(&code);
        let lines = (1..)
            .zip(text.lines().zip(code.lines().zip(comments.lines())))
            .map(|(number, (raw, (code, comment)))| SourceLine {
                number,
                raw: raw.to_owned(),
                code: code.to_owned(),
                comment: comment.to_owned(),
                is_test: whole || tests.contains(&number),
            })
            .collect();
        let literals = if path.ends_with(".rs") { lexer::literals(text) } else { Vec::new() };
        Self { path, lines, literals }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(super) fn is_test_file(&self) -> bool {
        is_test_file(&self.path)
    }

    /// Whether the file is in one of these folders (or is one of these files).
    pub(super) fn is_under(&self, places: &[&str]) -> bool {
        places.iter().any(|place| {
            self.path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns the code alone, as one text.
    pub(super) fn code(&self) -> String {
        self.lines.iter().flat_map(|line| [line.code.as_str(), "\n"]).collect()
    }

    /// Returns the lines that are not tests.
    pub(super) fn product_lines(&self) -> impl Iterator<Item = &SourceLine> {
        self.lines.iter().filter(|line| !line.is_test)
    }

    pub(super) fn is_test_line(&self, number: usize) -> bool {
        self.lines.iter().any(|line| line.number == number && line.is_test)
    }

    pub(super) fn finding(&self, line: usize, rule: &'static str, advice: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, rule, advice: advice.into() }
    }
}

fn is_test_file(path: &str) -> bool {
    let mut folders = path.split('/');
    path.ends_with("/tests.rs") || folders.any(|folder| ["tests", "fuzz", "benches"].contains(&folder))
}

/// Returns the numbers of the lines that belong to an item under `#[cfg(test)]`.
fn test_lines(code: &str) -> Vec<usize> {
    let mut numbers = Vec::new();
    for (start, _) in code.match_indices("#[cfg(").filter(|(at, _)| names_test(&code[*at..])) {
        let end = start + item_length(&code[start..]);
        let first = code[..start].matches('\n').count() + 1;
        numbers.extend(first..=first + code[start..end].matches('\n').count());
    }
    numbers
}

fn names_test(attribute: &str) -> bool {
    ["#[cfg(test)", "#[cfg(all(test", "#[cfg(any(test"].iter().any(|start| attribute.starts_with(start))
}

/// Returns the length of an item: to its closing brace, or to its semicolon if it has no braces.
fn item_length(code: &str) -> usize {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (at, character) in code.char_indices() {
        match character {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            '{' => braces += 1,
            '}' if braces <= 1 => return at + 1,
            '}' => braces -= 1,
            ';' if braces == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested(text: &str) -> Vec<usize> {
        let source = Source::new("crates/io/src/lib.rs".to_owned(), text);
        source.lines.iter().filter(|line| line.is_test).map(|line| line.number).collect()
    }

    #[test]
    fn a_test_item_ends_where_its_braces_do() {
        assert_eq!(
            tested("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n"),
            [2, 3, 4, 5]
        );
        assert_eq!(tested("#[cfg(test)]\nmod tests;\nfn c() {}\n"), [1, 2]);
        assert_eq!(tested("#[cfg(test)]\nconst A: [u8; 2] = [1; 2];\nfn c() {}\n"), [1, 2]);
    }

    #[test]
    fn a_folder_of_tests_holds_nothing_else() {
        assert!(is_test_file("tests/src/lib.rs"));
        assert!(is_test_file("crates/wire/src/http/tests.rs"));
        assert!(!is_test_file("xtask/src/test/mod.rs"));
    }

    #[test]
    fn a_place_is_a_whole_folder_name() {
        let source = Source::new("crates/iox/src/lib.rs".to_owned(), "");
        assert!(source.is_under(&["crates/iox"]));
        assert!(!source.is_under(&["crates/io"]));
    }
}
