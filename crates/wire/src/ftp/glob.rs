//! Patterns for names: `*`, `?`, `[a-z]`, `[!a]` and `\x`, as people write them after LIST.
//!
//! Not here: folders, and names that begin with a dot, which the caller includes or not. No RFC defines
//! patterns; clients send those of the shell. Invariant: a match takes no more steps than the pattern's
//! length times the name's, since untrusted peers choose both.

/// Returns whether a pattern has wildcards.
#[must_use]
pub fn has_wildcards(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| b"*?[".contains(byte))
}

/// Returns whether the whole name matches. A character is one of UTF-8, or a byte that is not valid UTF-8.
#[must_use]
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // The rest of the pattern after the last star, and the position in the name at which that star began to
    // match. Only this star has to be retried: an earlier one could match no more than it.
    let mut star: Option<(&[u8], &[u8])> = None;
    let mut classes = Classes::default();
    loop {
        if let [b'*', rest @ ..] = pattern {
            (pattern, star) = (rest, Some((rest, name)));
            continue;
        }
        let Some((character, rest)) = next_character(name) else { return pattern.is_empty() };
        if let Some(after) = classes.after_match(pattern, character) {
            (pattern, name) = (after, rest);
            continue;
        }
        let Some((after_star, from)) = star else { return false };
        let Some((_, from)) = next_character(from) else { return false };
        (pattern, name, star) = (after_star, from, Some((after_star, from)));
    }
}

/// Remembers the first unclosed bracket, so that the search for its end runs once.
#[derive(Default)]
struct Classes {
    /// Length of the pattern from that bracket on, in bytes: later brackets are unclosed too.
    unclosed_bytes: usize,
}

impl Classes {
    /// Returns the rest of the pattern if its first element, which is not a star, matches the character.
    fn after_match<'a>(&mut self, pattern: &'a [u8], character: u32) -> Option<&'a [u8]> {
        let (is_match, rest) = match pattern {
            [b'?', rest @ ..] => (true, rest),
            [b'[', inside @ ..] => self.class(inside, character),
            _ => {
                let (literal, rest) = next_literal(pattern)?;
                (character == literal, rest)
            }
        };
        is_match.then_some(rest)
    }

    /// Matches like [`class`]. An unclosed bracket is a literal character.
    fn class<'a>(&mut self, inside: &'a [u8], character: u32) -> (bool, &'a [u8]) {
        let is_closed = inside.len() >= self.unclosed_bytes;
        let class = if is_closed { class(inside, character) } else { None };
        class.unwrap_or_else(|| {
            self.unclosed_bytes = self.unclosed_bytes.max(inside.len() + 1);
            (character == u32::from(b'['), inside)
        })
    }
}

/// Returns whether a character is in the class whose opening bracket precedes `inside`, and the rest of the
/// pattern after the class. Returns None if the class is not closed.
fn class(inside: &[u8], character: u32) -> Option<(bool, &[u8])> {
    let (is_negated, mut rest) = match inside {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, inside),
    };
    let mut is_in = false;
    let mut is_first = true;
    loop {
        // A closing bracket in the first position is a member of the class.
        if let [b']', after @ ..] = rest
            && !is_first
        {
            return Some((is_in != is_negated, after));
        }
        is_first = false;
        let (from, after) = next_literal(rest)?;
        let (to, after) = match after {
            [b'-', end, ..] if *end != b']' => next_literal(after.get(1..)?)?,
            _ => (from, after),
        };
        is_in |= (from..=to).contains(&character);
        rest = after;
    }
}

/// Returns the next character and the rest. A backslash escapes the next character; at the end it is
/// literal.
fn next_literal(pattern: &[u8]) -> Option<(u32, &[u8])> {
    match pattern {
        [b'\\', escaped @ ..] if !escaped.is_empty() => next_character(escaped),
        _ => next_character(pattern),
    }
}

/// Returns the first character and the rest. A byte that is not valid UTF-8 maps above all code points.
fn next_character(bytes: &[u8]) -> Option<(u32, &[u8])> {
    const BEYOND: u32 = 0x11_0000;
    let first = *bytes.first()?;
    let len = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let text = bytes.get(..len).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match text.and_then(|text| text.chars().next()) {
        Some(character) => Some((u32::from(character), bytes.get(len..)?)),
        None => Some((BEYOND + u32::from(first), bytes.get(1..)?)),
    }
}
