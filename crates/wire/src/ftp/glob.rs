//! Patterns for names: `*`, `?`, `[a-z]`, `[!a]` and `\x`, as people write them after LIST.
//!
//! Not here: folders, and names that begin with a dot, which the one who asks hides or not. No RFC has
//! patterns; the shell's are what clients send. What must hold: any pattern can be matched, in no more steps
//! than the pattern's length times the name's, since a stranger chooses both.

/// Whether a pattern is one, rather than a name.
#[must_use]
pub fn has_wildcards(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| b"*?[".contains(byte))
}

/// Whether a name matches, all of it. A character is one of UTF-8, or a byte that is none.
#[must_use]
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // After the last star, and where the name was there: all that has to be tried again. An earlier star
    // could take no more than the last one can.
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

/// Remembers the first bracket that nothing closes, so that its end is looked for once.
#[derive(Default)]
struct Classes {
    /// How much of the pattern follows that bracket: those after it are not closed either.
    unclosed_bytes: usize,
}

impl Classes {
    /// What follows in the pattern if its first element, which is no star, matches the character.
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

    /// As [`class`]. A bracket that nothing closes is a character.
    fn class<'a>(&mut self, inside: &'a [u8], character: u32) -> (bool, &'a [u8]) {
        let is_closed = inside.len() >= self.unclosed_bytes;
        let class = if is_closed { class(inside, character) } else { None };
        class.unwrap_or_else(|| {
            self.unclosed_bytes = self.unclosed_bytes.max(inside.len() + 1);
            (character == u32::from(b'['), inside)
        })
    }
}

/// Whether a character is in the class whose opening bracket came before, and what follows the class. None
/// if it is not closed.
fn class(inside: &[u8], character: u32) -> Option<(bool, &[u8])> {
    let (is_negated, mut rest) = match inside {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, inside),
    };
    let mut is_in = false;
    let mut is_first = true;
    loop {
        // As the first of the class, a closing bracket is one of its members.
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

/// The next character, one after a backslash as it is. A backslash at the end is one.
fn next_literal(pattern: &[u8]) -> Option<(u32, &[u8])> {
    match pattern {
        [b'\\', escaped @ ..] if !escaped.is_empty() => next_character(escaped),
        _ => next_character(pattern),
    }
}

/// The first character and what follows it. A byte that begins no character is a number beyond all of them.
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
