//! `multipart/form-data`: the files of an HTML form, and of `curl -F` (RFC 7578).
//!
//! Not here: the storage of the files. Invariants: the parts do not depend on how the bytes are split; the
//! buffer is bounded by the maximum length of a part's head; an error is permanent.

use super::grammar::is_tchar;
use super::media_type::is_media_type;
use crate::limits::{FORM_BOUNDARY_BYTES_MAX, FORM_PADDING_BYTES_MAX, FORM_PART_HEAD_BYTES_MAX};

/// The reason why a form cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadForm {
    /// The Content-Type has no boundary, or an invalid one.
    #[error("The Content-Type of a form must have a boundary of 1 to 70 characters.")]
    Boundary,
    /// The bytes after a boundary are neither the end of the line nor `--`.
    #[error("A boundary of the form is followed by what does not belong there.")]
    Delimiter,
    /// The head of a part is too long.
    #[error("The head of a part of the form is longer than 8 KiB.")]
    HeadTooLong,
    /// The head of a part has no valid Content-Disposition of a form.
    #[error("A part of the form has no Content-Disposition: form-data that can be read.")]
    Disposition,
}

/// An event of the decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A part starts. A file has a name.
    Part {
        /// The file's name as sent; None for a field of the form that is not a file.
        filename: Option<Vec<u8>>,
    },
    /// Bytes of the part, at least one.
    Data(Vec<u8>),
    /// The part is complete.
    PartEnd,
    /// The form is complete; later bytes are ignored.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Preamble,
    AfterBoundary,
    Head,
    Data,
    Ended,
    Failed(BadForm),
}

/// Splits a form into its parts.
pub struct FormDecoder {
    /// CRLF, two dashes and the boundary.
    delimiter: Vec<u8>,
    state: State,
    /// Bytes that could still belong to a delimiter or a head.
    buffer: Vec<u8>,
}

impl FormDecoder {
    /// Returns a decoder for the form that a Content-Type declares, or None for another media type.
    ///
    /// # Errors
    /// [`BadForm::Boundary`].
    pub fn of(content_type: &[u8]) -> Option<Result<FormDecoder, BadForm>> {
        if !is_media_type(content_type, "multipart/form-data") {
            return None;
        }
        let boundary =
            parameters(content_type).skip(1).find_map(|parameter| value_of(parameter, b"boundary"));
        Some(match boundary {
            Some(boundary) if is_boundary(&boundary) => Ok(FormDecoder::new(&boundary)),
            _ => Err(BadForm::Boundary),
        })
    }

    fn new(boundary: &[u8]) -> FormDecoder {
        let delimiter = [b"\r\n--", boundary].concat();
        // "The CRLF preceding the boundary delimiter line is conceptually attached to the boundary"; the
        // first boundary may be the first line.
        FormDecoder { delimiter, state: State::Preamble, buffer: b"\r\n".to_vec() }
    }

    /// Decodes the next bytes and appends the events to `events`.
    ///
    /// # Errors
    /// The form is malformed; every later call returns the same error.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), BadForm> {
        self.buffer.extend_from_slice(bytes);
        while let Some(next) = self.step(events) {
            self.state = next;
        }
        match self.state {
            State::Failed(bad) => Err(bad),
            _ => Ok(()),
        }
    }

    /// Returns whether the last boundary has been received.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Consumes as much of the buffer as one state can. Returns the next state, or None if more bytes are
    /// needed.
    fn step(&mut self, events: &mut Vec<Event>) -> Option<State> {
        match self.state {
            State::Preamble => self.take_up_to_delimiter(|_| {}).then_some(State::AfterBoundary),
            State::AfterBoundary => self.after_boundary(events),
            State::Head => self.head(events),
            State::Data => {
                let data = |bytes: Vec<u8>| {
                    if !bytes.is_empty() {
                        events.push(Event::Data(bytes));
                    }
                };
                if !self.take_up_to_delimiter(data) {
                    return None;
                }
                events.push(Event::PartEnd);
                Some(State::AfterBoundary)
            }
            State::Ended | State::Failed(_) => {
                self.buffer.clear();
                None
            }
        }
    }

    /// Passes the bytes before the delimiter to `take` and removes both. Without a delimiter, keeps only
    /// bytes that may be the start of one. Returns whether the delimiter was found.
    fn take_up_to_delimiter(&mut self, take: impl FnOnce(Vec<u8>)) -> bool {
        let (end, is_whole) = find(&self.buffer, &self.delimiter);
        let rest = self.buffer.split_off(end);
        take(std::mem::replace(&mut self.buffer, rest));
        if is_whole {
            self.buffer.drain(..self.delimiter.len());
        }
        is_whole
    }

    fn after_boundary(&mut self, events: &mut Vec<Event>) -> Option<State> {
        if self.buffer.starts_with(b"--") {
            events.push(Event::End);
            return Some(State::Ended);
        }
        let padding = self.buffer.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match self.buffer.get(padding..).unwrap_or_default() {
            [b'\r', b'\n', ..] if padding <= FORM_PADDING_BYTES_MAX => {
                // The head may be empty: its end is then the end of this line.
                self.buffer.drain(..padding);
                Some(State::Head)
            }
            [] | [b'\r'] if padding <= FORM_PADDING_BYTES_MAX => None,
            [b'-'] if padding == 0 => None,
            _ => Some(State::Failed(BadForm::Delimiter)),
        }
    }

    /// Parses the head of a part. The buffer begins with the CRLF before the first field.
    fn head(&mut self, events: &mut Vec<Event>) -> Option<State> {
        let Some(end) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            // With a head of the maximum length, three bytes of its end may already be buffered.
            let is_too_long = self.buffer.len() > FORM_PART_HEAD_BYTES_MAX + 3;
            return is_too_long.then_some(State::Failed(BadForm::HeadTooLong));
        };
        if end > FORM_PART_HEAD_BYTES_MAX {
            return Some(State::Failed(BadForm::HeadTooLong));
        }
        let Some(filename) = filename_in(&self.buffer[..end]) else {
            return Some(State::Failed(BadForm::Disposition));
        };
        self.buffer.drain(..end + 4);
        events.push(Event::Part { filename });
        Some(State::Data)
    }
}

/// Returns the position of the delimiter and true, or the position at which a partial one may start and
/// false.
fn find(bytes: &[u8], delimiter: &[u8]) -> (usize, bool) {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == b'\r') {
        let rest = &bytes[from + at..];
        let common = rest.len().min(delimiter.len());
        if rest[..common] == delimiter[..common] {
            return (from + at, common == delimiter.len());
        }
        from += at + 1;
    }
    (bytes.len(), false)
}

/// Returns whether a boundary is valid by RFC 2046. "Boundary delimiters must not appear within the
/// encapsulated material".
fn is_boundary(boundary: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
    (1..=FORM_BOUNDARY_BYTES_MAX).contains(&boundary.len())
        && boundary.iter().all(is_allowed)
        && !boundary.ends_with(b" ")
}

/// Returns the file's name in the head of a part: `Some(None)` if the part is not a file, `None` if the
/// head is bad.
fn filename_in(head: &[u8]) -> Option<Option<Vec<u8>>> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let value = lines.find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        line[..colon].eq_ignore_ascii_case(b"content-disposition").then(|| line[colon + 1..].trim_ascii())
    })?;
    let mut parts = parameters(value);
    if !parts.next()?.eq_ignore_ascii_case(b"form-data") {
        return None;
    }
    Some(parts.find_map(|parameter| value_of(parameter, b"filename")))
}

/// Splits a field's value at semicolons outside quotes, and trims each piece.
fn parameters(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let pieces = value.split(move |&byte| {
        let is_literal = std::mem::take(&mut is_escaped);
        match byte {
            b'\\' if is_quoted && !is_literal => is_escaped = true,
            b'"' if !is_literal => is_quoted = !is_quoted,
            _ => {}
        }
        byte == b';' && !is_quoted
    });
    pieces.map(<[u8]>::trim_ascii)
}

/// Returns the value of a parameter with this name, without its quotes.
fn value_of(parameter: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let equals = parameter.iter().position(|byte| *byte == b'=')?;
    if !parameter[..equals].trim_ascii().eq_ignore_ascii_case(name) {
        return None;
    }
    let value = parameter[equals + 1..].trim_ascii();
    match value {
        [b'"', quoted @ .., b'"'] => Some(unquoted(quoted)),
        token => (!token.is_empty() && token.iter().copied().all(is_tchar)).then(|| token.to_vec()),
    }
}

/// Removes escapes. curl escapes quotes and backslashes by a backslash. Browsers write a quote as `%22` and
/// do not escape a backslash, so a backslash before any other byte is literal.
fn unquoted(quoted: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        value.push(match (byte, bytes.peek()) {
            (b'\\', Some(b'"' | b'\\')) => bytes.next().unwrap_or(byte),
            _ => byte,
        });
    }
    value
}
