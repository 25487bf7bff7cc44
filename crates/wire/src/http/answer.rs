//! Writes response heads directly into the send buffer.
//!
//! Not here: the choice of response. Invariant: the head has exactly the lines that the caller appended,
//! whatever bytes the values contain. A name chosen by a user must not be able to add a line.

use std::fmt::{self, Write as _};

use super::date::DATE_BYTES;
use super::grammar::{is_field_byte, is_tchar};
use super::head::Version;
use super::status::Status;
use crate::decimal::write_decimal;

/// The interim response that lets a client send its body (RFC 9110, section 15.2.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The interim response that reports a request in progress: "This status code SHOULD only be sent when the
/// server has a reasonable expectation that the request will take significant time to complete" (RFC 2518,
/// section 10.1).
pub const PROCESSING: &[u8] = b"HTTP/1.1 102 Processing\r\n\r\n";

/// A head being written: fields in the order of the calls, completed by [`AnswerHead::finish`].
#[must_use = "a head is not complete before `finish`"]
#[derive(Debug)]
pub struct AnswerHead<'b> {
    out: &'b mut Vec<u8>,
}

impl<'b> AnswerHead<'b> {
    /// Appends the status line.
    ///
    /// The version is always HTTP/1.1, also for an older client: "A server SHOULD send a response version
    /// equal to the highest version to which the server is conformant" (RFC 9110, section 6.2).
    pub fn begin(out: &'b mut Vec<u8>, status: Status) -> Self {
        out.extend_from_slice(b"HTTP/1.1 ");
        write_decimal(u64::from(status.code()), out);
        out.push(b' ');
        out.extend_from_slice(status.reason().as_bytes());
        out.extend_from_slice(b"\r\n");
        Self { out }
    }

    /// Continues a head in `out` that is not finished.
    pub fn resume(out: &'b mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends a Date, as written by [`super::date::write_date`].
    pub fn date(self, date: &[u8; DATE_BYTES]) -> Self {
        self.field("Date", date)
    }

    /// Appends a field. An invalid byte in the value becomes a space: "a recipient of CR, LF, or NUL within
    /// a field value MUST either reject the message or replace each of those characters with SP" (RFC 9110,
    /// section 5.5). Replacing them here keeps them from any recipient.
    pub fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.begin_line(name);
        write_value(value.as_ref(), self.out);
        self.end_line()
    }

    /// Appends a field if it has a value.
    pub fn field_if(self, name: &str, value: Option<impl AsRef<[u8]>>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Appends a field and formats its value in place.
    pub fn field_display(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.begin_line(name);
        // Writing to a vector does not fail; a value whose Display fails is truncated there.
        let _ = write!(ValueWriter(&mut *self.out), "{value}");
        self.end_line()
    }

    /// Appends a field with a number.
    pub fn field_u64(mut self, name: &str, value: u64) -> Self {
        self.begin_line(name);
        write_decimal(value, self.out);
        self.end_line()
    }

    /// Appends the length of the body.
    pub fn content_length(self, length: u64) -> Self {
        self.field_u64("Content-Length", length)
    }

    /// Declares the body chunked. Valid only for an HTTP/1.1 client: "A server MUST NOT send a response
    /// containing Transfer-Encoding unless the corresponding request indicates HTTP/1.1" (RFC 9112, section
    /// 6.1).
    pub fn chunked(self) -> Self {
        self.field("Transfer-Encoding", "chunked")
    }

    /// Declares whether the connection stays open, if this differs from the version's default (RFC 9112,
    /// section 9.3).
    pub fn keep_alive(self, keep: bool, version: Version) -> Self {
        match (keep, version) {
            (true, Version::Http11) => self,
            (true, Version::Http10) => self.field("Connection", "keep-alive"),
            (false, _) => self.field("Connection", "close"),
        }
    }

    /// Appends the blank line.
    pub fn finish(self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// Starts a line. A byte that is not valid in a token becomes `-`. The program's own names are valid,
    /// so this guards only against names received by a proxy.
    fn begin_line(&mut self, name: &str) {
        debug_assert!(!name.is_empty() && name.bytes().all(is_tchar), "not a field name: {name:?}");
        self.out.extend(name.bytes().map(|byte| if is_tchar(byte) { byte } else { b'-' }));
        self.out.extend_from_slice(b": ");
    }

    fn end_line(self) -> Self {
        self.out.extend_from_slice(b"\r\n");
        self
    }
}

/// Appends a value. Invalid bytes become spaces.
pub(super) fn write_value(value: &[u8], out: &mut Vec<u8>) {
    out.extend(value.iter().map(|&byte| if is_field_byte(byte) { byte } else { b' ' }));
}

/// Adapts [`write_value`] to `core::fmt`.
struct ValueWriter<'b>(&'b mut Vec<u8>);

impl fmt::Write for ValueWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_value(text.as_bytes(), self.0);
        Ok(())
    }
}
