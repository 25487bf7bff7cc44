//! Every path that code names, with braces of `use` expanded: `use std::{fs, io}` names `std::fs` and
//! `std::io`.
//!
//! It reads code without comments and literals. It does not resolve names: a renamed import is known
//! only by the path at its `use`, where a rule should catch it.

/// A path and its line. `is_import` distinguishes a `use` from a mention.
#[derive(Debug, PartialEq)]
pub(super) struct PathUse {
    pub(super) line: usize,
    pub(super) path: String,
    pub(super) is_import: bool,
}

impl PathUse {
    /// Whether this is the path itself or a path below it.
    pub(super) fn is_below(&self, place: &str) -> bool {
        self.path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    }
}

/// Returns the paths in the order of the text.
pub(super) fn named(code: &str) -> Vec<PathUse> {
    let tokens = tokens(code);
    let mut reader = Reader { tokens: &tokens, named: Vec::new() };
    while let Some((line, token)) = reader.next() {
        match token {
            "use" => reader.tree(""),
            word if is_word(word) => reader.mention(line, word),
            _ => {}
        }
    }
    reader.named
}

struct Reader<'a> {
    tokens: &'a [(usize, &'a str)],
    named: Vec<PathUse>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<(usize, &'a str)> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    fn takes(&mut self, token: &str) -> bool {
        let found = self.tokens.first().is_some_and(|(_, first)| *first == token);
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn mention(&mut self, line: usize, first: &str) {
        let mut path = first.to_owned();
        while let [(_, "::"), (_, word), ..] = self.tokens
            && is_word(word)
        {
            path = format!("{path}::{word}");
            self.tokens = &self.tokens[2..];
        }
        self.named.push(PathUse { line, path, is_import: false });
    }

    /// Parses one branch of a `use`, up to its end.
    fn tree(&mut self, prefix: &str) {
        let mut path = prefix.to_owned();
        let mut line = 0;
        while let Some((here, token)) = self.tokens.first().copied() {
            match token {
                "{" => return self.branches(&path),
                "," | "}" | ";" => break,
                "as" => self.tokens = self.tokens.get(2..).unwrap_or_default(),
                _ => self.tokens = &self.tokens[1..],
            }
            if (is_word(token) && token != "as" && token != "self") || token == "*" {
                path = if path.is_empty() { token.to_owned() } else { format!("{path}::{token}") };
            }
            line = here;
        }
        if line > 0 {
            self.named.push(PathUse { line, path, is_import: true });
        }
    }

    fn branches(&mut self, prefix: &str) {
        self.takes("{");
        while !self.tokens.is_empty() && !self.takes("}") {
            self.tree(prefix);
            if self.tokens.first().is_some_and(|(_, token)| *token == ";") {
                return;
            }
            self.takes(",");
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn tokens(code: &str) -> Vec<(usize, &str)> {
    (1..)
        .zip(code.lines())
        .flat_map(|(number, line)| line_tokens(line).into_iter().map(move |t| (number, t)))
        .collect()
}

fn line_tokens(line: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), line.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            ':' if rest.starts_with("::") => 2,
            c if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(code: &str) -> Vec<String> {
        named(code).into_iter().map(|named| named.path).collect()
    }

    #[test]
    fn writes_out_the_braces_of_a_use() {
        assert_eq!(
            all("use std::{fs, io::{self, Read as _}, net::*};"),
            ["std::fs", "std::io", "std::io::Read", "std::net::*"]
        );
    }

    #[test]
    fn reads_a_mention_up_to_its_end() {
        assert_eq!(all("std::fs::read(a)"), ["std::fs::read", "a"]);
        assert_eq!(all("Instant::now()"), ["Instant::now"]);
    }

    #[test]
    fn knows_a_path_from_its_namesake() {
        let found = named("use std::fsx;");
        assert!(
            found.iter().all(|named| named.is_import && !named.is_below("std::fs") && named.is_below("std"))
        );
    }

    #[test]
    fn ends_on_text_that_is_no_rust() {
        for code in ["use", "use {", "use a::{b; c", "use a as", "a::", "use ::::}"] {
            named(code);
        }
    }
}
