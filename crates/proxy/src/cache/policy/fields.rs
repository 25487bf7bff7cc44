//! Field lines: a view of the lines of a head, and an owned block of lines that can be sent as it is.
//!
//! Not here: the meaning of a field, and parsing from the network (`wire` has it). Invariant: each line of
//! a block has a valid name, a value without line ends, and ends in CR LF.

/// The field lines of a head that was parsed before.
#[derive(Clone, Copy, Debug, Default)]
pub struct FieldLines<'a>(&'a [u8]);

impl<'a> FieldLines<'a> {
    /// Wraps complete lines, each with its CR LF.
    #[must_use]
    pub fn new(lines: &'a [u8]) -> FieldLines<'a> {
        FieldLines(lines)
    }

    /// Returns the field lines of a whole head: everything after its first line.
    #[must_use]
    pub fn of_head(head: &'a [u8]) -> FieldLines<'a> {
        let first_end = head.iter().position(|&byte| byte == b'\n').map_or(head.len(), |at| at + 1);
        FieldLines(head.get(first_end..).unwrap_or_default())
    }

    /// Iterates over names and trimmed values, in the order sent.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let end = rest.iter().position(|&byte| byte == b'\n')?;
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            let colon = line.iter().position(|&byte| byte == b':')?;
            Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
        })
    }

    /// Iterates over the values of all lines of one field.
    pub fn all<'n>(self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name.as_bytes())).map(|(_, v)| v)
    }

    /// Returns the value of the first line of a field.
    #[must_use]
    pub fn first(self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Whether the field is present.
    #[must_use]
    pub fn contains(self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// Iterates over the members of a field that is a list, over all its lines.
    pub fn members<'n>(self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.all(name).flat_map(list_members)
    }

    /// Copies all lines.
    #[must_use]
    pub fn to_block(self) -> FieldBlock {
        let mut block = FieldBlock::default();
        self.iter().for_each(|(name, value)| block.push(name, value));
        block
    }
}

/// Owned field lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldBlock(Vec<u8>);

impl FieldBlock {
    /// Appends a line. Drops a name or value with a line end: a value from a parsed head has none.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        if name.is_empty() || name.iter().any(|byte| *byte == b':' || is_line_end(byte)) {
            return;
        }
        if value.iter().any(is_line_end) {
            return;
        }
        self.0.extend_from_slice(name);
        self.0.extend_from_slice(b": ");
        self.0.extend_from_slice(value);
        self.0.extend_from_slice(b"\r\n");
    }

    /// Wraps bytes that [`FieldBlock::as_bytes`] returned. Returns `None` for other bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<FieldBlock> {
        let block = FieldLines(bytes).to_block();
        (block.0 == bytes).then_some(block)
    }

    /// Returns the lines as they are sent, without the blank line at the end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns a view of the lines.
    #[must_use]
    pub fn lines(&self) -> FieldLines<'_> {
        FieldLines(&self.0)
    }
}

/// Iterates over the trimmed members of a comma-separated list. Skips empty ones; a comma in a quoted
/// string does not separate (RFC 9110, section 5.6.1).
pub(super) fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    let members = std::iter::from_fn(move || {
        let bytes = rest?;
        let end = unquoted_comma(bytes);
        rest = bytes.get(end + 1..);
        bytes.get(..end).map(<[u8]>::trim_ascii)
    });
    members.filter(|member| !member.is_empty())
}

fn unquoted_comma(bytes: &[u8]) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return at,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_name_in_any_case_and_lists_span_lines() {
        let lines = FieldLines::of_head(b"GET / HTTP/1.1\r\nA: 1, \"x,y\"\r\nb:2\r\na: ,3 \r\n\r\n");
        assert_eq!(lines.members("a").collect::<Vec<_>>(), [&b"1"[..], b"\"x,y\"", b"3"]);
        assert_eq!(lines.first("B"), Some(&b"2"[..]));
        assert!(!lines.contains("c"));
    }

    #[test]
    fn a_line_end_never_enters_a_block() {
        let mut block = FieldBlock::default();
        block.push(b"A", b"1\r\nB: 2");
        block.push(b"A\n", b"1");
        block.push(b"", b"1");
        assert_eq!(block.as_bytes(), b"");
        block.push(b"A", b"1");
        assert_eq!(FieldBlock::from_bytes(block.as_bytes()), Some(block));
        assert_eq!(FieldBlock::from_bytes(b"A: 1\r\nbroken"), None);
    }
}
