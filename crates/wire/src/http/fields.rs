//! The field lines of a request or response head: the positions of the known fields.
//!
//! Not here: the meaning of a field, and the first line. Invariants: one pass over httparse's result, no
//! allocation, and no line end but CRLF. With a block other than its own, the result is meaningless but
//! nothing panics.

use super::field::{FIELD_COUNT, Field};
use super::grammar::trim_ows;

/// A part of a head, as offsets into its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub(super) start: u16,
    pub(super) end: u16,
}

impl Span {
    /// A position that no field can have, since the first line precedes all fields.
    pub(super) const ABSENT: Self = Self { start: 0, end: 0 };

    /// Returns the bytes of the block at this position, or none if the block is too short.
    #[must_use]
    pub fn of(self, block: &[u8]) -> &[u8] {
        block.get(usize::from(self.start)..usize::from(self.end)).unwrap_or_default()
    }
}

/// The positions of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    /// Value of the first line of each known field.
    places: [Span; FIELD_COUNT],
    /// The fields with more than one line, as a bit set.
    repeated: u64,
    /// All field lines, and the blank line after them.
    section: Span,
}

/// The result of the pass over the fields.
pub(super) struct Gathered {
    pub(super) fields: Fields,
    /// Whether `Connection: close` is present.
    pub(super) closes: bool,
    /// Whether `Connection: keep-alive` is present.
    pub(super) persists: bool,
}

/// A line that does not end in CRLF.
pub(super) struct BadLineEnd;

impl Fields {
    pub(super) fn place(&self, field: Field) -> Span {
        self.places.get(field.index()).copied().unwrap_or(Span::ABSENT)
    }

    pub(super) fn first<'a>(&self, block: &'a [u8], field: Field) -> Option<&'a [u8]> {
        let place = self.place(field);
        (place != Span::ABSENT).then(|| place.of(block))
    }

    pub(super) fn repeated(&self, field: Field) -> bool {
        self.repeated & field.bit() != 0
    }

    pub(super) fn all<'a>(&self, block: &'a [u8], field: Field) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let repeated = self.repeated(field);
        let first = if repeated { None } else { self.first(block, field) };
        let rest = if repeated { self.section.of(block) } else { &[] };
        let same_name = move |&(name, _): &(&[u8], _)| Field::by_name(name) == Some(field);
        first.into_iter().chain(lines(rest).filter(same_name).map(|(_, value)| value))
    }

    pub(super) fn named<'a>(&self, block: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let mut lines = self.lines(block);
        lines.find_map(|(other, value)| other.eq_ignore_ascii_case(name.as_bytes()).then_some(value))
    }

    pub(super) fn lines<'a>(&self, block: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        lines(self.section.of(block))
    }

    /// Records the position of a field's first line, or that the field is repeated.
    fn note(&mut self, field: Field, at: Span) {
        match self.places.get_mut(field.index()) {
            Some(place) if *place == Span::ABSENT => *place = at,
            _ => self.repeated |= field.bit(),
        }
    }
}

impl Gathered {
    /// Records the options of a Connection field. "Connection options are case-insensitive" (RFC 9110,
    /// section 7.6.1).
    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',').map(trim_ows) {
            self.closes |= option.eq_ignore_ascii_case(b"close");
            self.persists |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

/// Gathers the fields in a single pass.
///
/// httparse accepts a bare LF as a line end: "a recipient MAY recognize a single LF as a line terminator"
/// (RFC 9112, section 2.2). This function refuses it, since a proxy that does not accept it would read
/// another message. Neither name nor value can contain a line end, so that checking the bytes before each
/// line is sufficient.
pub(super) fn gather(headers: &[httparse::Header<'_>], block: &[u8]) -> Result<Gathered, BadLineEnd> {
    let start = headers.first().map_or(block.len(), |field| offset(block, field.name.as_bytes()));
    let section = Span { start: narrow(start), end: narrow(block.len()) };
    let fields = Fields { places: [Span::ABSENT; FIELD_COUNT], repeated: 0, section };
    let mut gathered = Gathered { fields, closes: false, persists: false };
    if !block.ends_with(b"\r\n\r\n") {
        return Err(BadLineEnd);
    }
    for header in headers {
        let name = header.name.as_bytes();
        let before = block.get(..offset(block, name)).unwrap_or_default();
        if !before.ends_with(b"\r\n") {
            return Err(BadLineEnd);
        }
        let Some(field) = Field::by_name(name) else { continue };
        gathered.fields.note(field, value_span(block, name, header.value));
        if field == Field::Connection {
            gathered.connection(header.value);
        }
    }
    Ok(gathered)
}

/// Returns the position of a value. For an empty one this is its colon, because httparse's empty slice may
/// point anywhere.
fn value_span(block: &[u8], name: &[u8], value: &[u8]) -> Span {
    if value.is_empty() {
        let colon = narrow(offset(block, name) + name.len());
        return Span { start: colon, end: colon };
    }
    span(block, value)
}

/// Returns the offset of `part` in `block`, of which it is a slice.
fn offset(block: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr().saturating_sub(block.as_ptr().addr())
}

/// Returns the position of `part` in `block`, of which it is a slice.
pub(super) fn span(block: &[u8], part: &[u8]) -> Span {
    let start = offset(block, part);
    Span { start: narrow(start), end: narrow(start + part.len()) }
}

/// Converts an offset. A head is at most [`crate::limits::HEAD_BYTES_MAX`] long, so this is lossless.
pub(super) fn narrow(offset: usize) -> u16 {
    u16::try_from(offset).unwrap_or(u16::MAX)
}

/// Returns whether the head has a CR without LF, for a value that httparse refused.
pub(super) fn has_bare_cr(rest: &[u8]) -> bool {
    rest.windows(2).any(|pair| matches!(pair, [b'\r', after] if *after != b'\n'))
}

/// Iterates over the lines of a validated section: each ends in CRLF and has a colon.
pub(super) fn lines(mut section: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let end = section.iter().position(|&byte| byte == b'\n')?;
        let line = section.get(..end)?;
        section = section.get(end + 1..)?;
        let colon = line.iter().position(|&byte| byte == b':')?;
        let value = line.get(colon + 1..)?;
        Some((line.get(..colon)?, trim_ows(value.strip_suffix(b"\r").unwrap_or(value))))
    })
}
