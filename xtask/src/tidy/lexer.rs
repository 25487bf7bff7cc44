//! Separates Rust's code from its comments and its literals. This is not a parser, and it never fails.
//!
//! Both results have the line breaks of the text, with blanks in place of the other kind, so that a
//! position in one is the same position in the other. The contents of literals are in neither.

enum TokenKind {
    Code,
    Comment,
    Literal,
}

/// Returns the code alone and the comments alone.
pub(super) fn split(text: &str) -> (String, String) {
    let (mut code, mut comments) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
    let mut rest = text;
    while !rest.is_empty() {
        let (kind, length) = piece(rest);
        let (piece, after) = rest.split_at(length);
        code.push_str(&if matches!(kind, TokenKind::Code) { piece.to_owned() } else { blank(piece) });
        comments.push_str(&if matches!(kind, TokenKind::Comment) { piece.to_owned() } else { blank(piece) });
        rest = after;
    }
    (code, comments)
}

/// Returns the words of code, each with its offset.
pub(super) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let parts = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    parts.map(move |word| (word.as_ptr().addr() - code.as_ptr().addr(), word))
}

/// Returns the line of an offset.
pub(super) fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// Returns the length of the code before the bracket that closes the one before it.
pub(super) fn length_in_brackets(code: &str) -> usize {
    let mut depth = 1_usize;
    for (at, character) in code.char_indices() {
        match character {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' if depth == 1 => return at,
            ')' | '}' | ']' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// A literal of text.
pub(super) struct Literal {
    /// The line on which it begins.
    pub(super) line: usize,
    /// Its contents as written, without quotes.
    pub(super) text: String,
}

/// Returns the literals of text, without single characters.
pub(super) fn literals(text: &str) -> Vec<Literal> {
    let (mut found, mut line, mut rest) = (Vec::new(), 1, text);
    while !rest.is_empty() {
        let (kind, length) = piece(rest);
        let (piece, after) = rest.split_at(length);
        if matches!(kind, TokenKind::Literal) && !piece.starts_with('\'') {
            let inner = piece.trim_start_matches(['b', 'c', 'r', '#']).trim_end_matches('#');
            let inner = inner.trim_start_matches('"');
            let text = inner.strip_suffix('"').unwrap_or(inner).to_owned();
            found.push(Literal { line, text });
        }
        line += piece.matches('\n').count();
        rest = after;
    }
    found
}

fn blank(piece: &str) -> String {
    piece.chars().map(|character| if character == '\n' { '\n' } else { ' ' }).collect()
}

/// Returns the kind and the length in bytes of the first token.
fn piece(rest: &str) -> (TokenKind, usize) {
    match rest.chars().next() {
        Some('/') if rest.starts_with("//") => (TokenKind::Comment, rest.find('\n').unwrap_or(rest.len())),
        Some('/') if rest.starts_with("/*") => (TokenKind::Comment, block_comment(rest)),
        Some('"') => (TokenKind::Literal, quoted(rest, '"')),
        Some('\'') => tick(rest),
        Some(first) if first.is_alphanumeric() || first == '_' => word(rest),
        Some(other) => (TokenKind::Code, other.len_utf8()),
        None => (TokenKind::Code, 0),
    }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        if !escaped && character == quote {
            return at + 1;
        }
        escaped = !escaped && character == '\\';
    }
    rest.len()
}

/// Lexes a tick, which opens a character literal or a lifetime.
fn tick(rest: &str) -> (TokenKind, usize) {
    let mut after = rest.chars().skip(1);
    match (after.next(), after.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => (TokenKind::Literal, quoted(rest, '\'')),
        _ => (TokenKind::Code, 1),
    }
}

/// Lexes a whole word, with its raw literal if it is the prefix of one.
fn word(rest: &str) -> (TokenKind, usize) {
    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(length);
    let hashes = after.len() - after.trim_start_matches('#').len();
    if ["r", "br", "cr"].contains(&name) && after[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let body = length + hashes + 1;
        let found = rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len());
        return (TokenKind::Literal, found);
    }
    (TokenKind::Code, length)
}

#[cfg(test)]
mod tests {
    use super::{length_in_brackets, line_of, literals, split};

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        let (code, comments) =
            split("let a = \"b // c\"; // d\n/* e /* f */ g */ h(r#\"i\"#, b\"j\", '\\'', '\"')");
        assert_eq!(words(&code), ["let", "a", "=", ";", "h(", ",", "b", ",", ",", ")"]);
        assert_eq!(words(&comments), ["//", "d", "/*", "e", "/*", "f", "*/", "g", "*/"]);
    }

    #[test]
    fn brackets_of_all_kinds_are_counted() {
        assert_eq!(length_in_brackets("a(b[c]){d}) e"), 10);
        assert_eq!(length_in_brackets("a(b"), 3);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }

    #[test]
    fn a_literal_has_its_text_and_its_line() {
        let found = literals("a(\"b c\",\n  r#\"d \"e\"\"#, 'f', b\"g\", \"\")");
        let found: Vec<_> = found.iter().map(|literal| (literal.line, literal.text.as_str())).collect();
        assert_eq!(found, [(1, "b c"), (2, "d \"e\""), (2, "g"), (2, "")]);
    }

    #[test]
    fn a_lifetime_is_code_and_a_raw_name_too() {
        let (code, _) = split("fn a<'b>(r#type: &'b str)");
        assert_eq!(code, "fn a<'b>(r#type: &'b str)");
    }

    #[test]
    fn lines_stay_where_they_are() {
        let text = "a\n\"b\nc\"\n/* d\n*/ e\n";
        let (code, comments) = split(text);
        assert_eq!(code.lines().count(), text.lines().count());
        assert_eq!(comments.lines().count(), text.lines().count());
    }

    #[test]
    fn an_unterminated_literal_ends_with_the_text() {
        for text in ["\"a", "/* a", "r#\"a", "'\\", "é'"] {
            assert_eq!(split(text).0.chars().count(), text.chars().count());
        }
    }
}
