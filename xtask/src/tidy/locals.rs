//! The names that code binds: by `let` and `for`, and as parameters of functions and closures.
//!
//! It reads text and is no parser: it does not find names in the arms of a `match` or in braces.

use super::lexer::{length_in_brackets, words};

/// Words of a pattern that are no names.
const KEYWORDS: [&str; 7] = ["mut", "ref", "dyn", "impl", "as", "fn", "static"];

/// Returns the bound names, each with its offset in the code.
pub(super) fn bound(code: &str) -> Vec<(usize, &str)> {
    let mut found = [of_lets(code), of_loops(code), of_functions(code), of_closures(code)].concat();
    // A parameter of a function pointer is found twice: in its own list and in the list around it.
    found.sort_unstable();
    found.dedup();
    found
}

fn of_lets(code: &str) -> Vec<(usize, &str)> {
    let patterns = starts(code, "let").map(|at| (at, until(&code[at..], &['=', ';', '{'])));
    patterns.flat_map(|(at, pattern)| names(at, without_type(pattern))).collect()
}

fn of_loops(code: &str) -> Vec<(usize, &str)> {
    let loops = starts(code, "for").filter_map(|at| {
        let head = until(&code[at..], &['{', ';']);
        Some((at, head.split_once(" in ")?.0))
    });
    loops.flat_map(|(at, pattern)| names(at, pattern)).collect()
}

fn of_functions(code: &str) -> Vec<(usize, &str)> {
    let lists = starts(code, "fn").filter_map(|at| {
        let open = at + code[at..].find('(')?;
        Some((open + 1, &code[open + 1..open + 1 + length_in_brackets(&code[open + 1..])]))
    });
    lists.flat_map(|(at, list)| parameters(at, list)).collect()
}

/// Returns the words before a single colon.
fn parameters(at: usize, list: &str) -> Vec<(usize, &str)> {
    let found = words(list).filter(|(offset, word)| {
        let after = list[offset + word.len()..].trim_start();
        after.starts_with(':') && !after.starts_with("::") && is_name(word)
    });
    found.map(|(offset, word)| (at + offset, word)).collect()
}

fn of_closures(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(at) = code[next..].find('|').map(|offset| next + offset) {
        next = at + 1;
        let before = code[..at].trim_end();
        let opens = before.ends_with(['(', ',', '=', '{', ';']) || before.ends_with("move");
        let Some(length) = code[next..].find(['|', ';', '{', '}']).filter(|_| opens) else { continue };
        if code[next + length..].starts_with('|') {
            let list = &code[next..next + length];
            found.extend(list.split(',').flat_map(|part| {
                let start = part.as_ptr().addr() - code.as_ptr().addr();
                names(start, without_type(part))
            }));
            next += length + 1;
        }
    }
    found
}

/// Returns the offsets behind each occurrence of a keyword.
fn starts<'a>(code: &'a str, keyword: &'a str) -> impl Iterator<Item = usize> + 'a {
    words(code).filter(move |(_, word)| *word == keyword).map(|(at, word)| at + word.len())
}

fn until<'a>(code: &'a str, ends: &[char]) -> &'a str {
    &code[..code.find(ends).unwrap_or(code.len())]
}

/// Returns a pattern without the type behind its single colon.
fn without_type(pattern: &str) -> &str {
    let is_single = |at: &usize| !pattern[at + 1..].starts_with(':') && !pattern[..*at].ends_with(':');
    let colon = pattern.match_indices(':').map(|(at, _)| at).find(is_single);
    colon.map_or(pattern, |at| &pattern[..at])
}

fn names(at: usize, pattern: &str) -> Vec<(usize, &str)> {
    let found = words(pattern).filter(|(offset, word)| {
        let after = pattern[offset + word.len()..].trim_start();
        is_name(word) && !after.starts_with(['(', '!', '<']) && !after.starts_with("::")
    });
    found.map(|(offset, word)| (at + offset, word)).collect()
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase()) && !KEYWORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::bound;

    fn names(code: &str) -> Vec<&str> {
        bound(code).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn lets_and_loops_bind_the_names_of_their_patterns() {
        assert_eq!(names("let a = b;"), ["a"]);
        assert_eq!(names("let mut a: Vec<b::C> = d();"), ["a"]);
        assert_eq!(names("let (a, mut b) = c;"), ["a", "b"]);
        assert_eq!(names("if let Some(a) = b {"), ["a"]);
        assert_eq!(names("for (a, b) in c.iter() {"), ["a", "b"]);
    }

    #[test]
    fn functions_and_closures_bind_their_parameters() {
        assert_eq!(names("fn a(b: &C, mut d: e::F) -> G {}"), ["b", "d"]);
        assert_eq!(names("fn a<B: C>(\n    &self,\n    d: fn(e: u8),\n) {}"), ["d", "e"]);
        assert_eq!(names("a(|b, c: &D| b.e(c))"), ["b", "c"]);
        assert_eq!(names("let a = move |&(b, c)| b;"), ["a", "b", "c"]);
    }

    #[test]
    fn other_code_binds_nothing() {
        for code in ["a | b", "match a { b | c => d }", "Self { a: b, c }", "a || b", "struct A { b: C }"] {
            assert_eq!(names(code), [""; 0], "{code}");
        }
    }
}
