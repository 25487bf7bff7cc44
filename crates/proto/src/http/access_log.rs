//! The access log in the common log format, buffered by each thread.
//!
//! This module does not write to disk: it passes chunks of lines to a [`LogSink`], which must not block.
//! Invariants: a line costs a connection one copy into memory, however slow the disk is. No input of a
//! client can end a line or start another. No line has the token of a public link.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use plimsoll_io::{Io, Peer};

use super::date_cache::Dates;
use super::limits::{LOG_BUFFER_TIME, LOG_BYTES, LOG_TARGET_BYTES_MAX};
use super::link_path::without_tokens;

/// The receiver of chunks of whole lines.
pub trait LogSink: Send + Sync {
    /// Takes whole lines without blocking; drops and counts them if it cannot.
    fn take(&self, lines: Vec<u8>);
}

/// The log lines that one thread buffers for the sink.
pub struct AccessLog {
    sink: Option<Arc<dyn LogSink>>,
    lines: RefCell<Vec<u8>>,
    waiting: Cell<Option<Waker>>,
}

/// The fields of a log line.
pub struct LogEntry<'a> {
    /// The client.
    pub peer: &'a Peer,
    /// Method, target and version as they were sent; empty if the head could not be parsed.
    pub method: &'a [u8],
    /// The target as it was sent.
    pub target: &'a [u8],
    /// The version as it was sent.
    pub version: &'a str,
    /// The status of the response.
    pub status: u16,
    /// The bytes of the body that were sent.
    pub body_bytes: u64,
}

impl AccessLog {
    /// Creates a log to `sink`; without one, lines are dropped.
    pub fn new(sink: Option<Arc<dyn LogSink>>) -> AccessLog {
        AccessLog { sink, lines: RefCell::default(), waiting: Cell::default() }
    }

    /// Buffers a line.
    pub fn write(&self, dates: &Dates, entry: &LogEntry<'_>) {
        if self.sink.is_none() {
            return;
        }
        let mut lines = self.lines.borrow_mut();
        entry.write(dates, &mut lines);
        if lines.len() >= LOG_BYTES {
            drop(lines);
            self.flush();
        } else if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    /// Passes lines to the sink some time after they were written; never returns.
    pub async fn flush_forever(&self, io: &Io) {
        loop {
            poll_fn(|cx| {
                self.waiting.set(Some(cx.waker().clone()));
                if self.lines.borrow().is_empty() { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            io.sleep(LOG_BUFFER_TIME).await;
            self.flush();
        }
    }

    fn flush(&self) {
        let lines = std::mem::take(&mut *self.lines.borrow_mut());
        if let Some(sink) = self.sink.as_ref().filter(|_| !lines.is_empty()) {
            sink.take(lines);
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.flush();
    }
}

impl LogEntry<'_> {
    /// Writes `host ident authuser [date] "request" status bytes`. Neither the ident nor, so far, the
    /// account is known.
    fn write(&self, dates: &Dates, out: &mut Vec<u8>) {
        write_display(self.peer, out);
        out.extend_from_slice(b" - - [");
        dates.write_log(out);
        out.extend_from_slice(b"] \"");
        if self.method.is_empty() {
            out.push(b'-');
        } else {
            write_escaped(self.method, out);
            out.push(b' ');
            let hidden = without_tokens(self.target);
            let target = hidden.as_deref().unwrap_or(self.target);
            write_escaped(&target[..target.len().min(LOG_TARGET_BYTES_MAX)], out);
            out.push(b' ');
            out.extend_from_slice(self.version.as_bytes());
        }
        out.extend_from_slice(b"\" ");
        write_display(&self.status, out);
        out.push(b' ');
        write_display(&self.body_bytes, out);
        out.push(b'\n');
    }
}

fn write_display(value: &dyn std::fmt::Display, out: &mut Vec<u8>) {
    use std::io::Write as _;
    // Writing to a vector does not fail.
    let _ = write!(out, "{value}");
}

/// Writes bytes that could end a line, end a quoted text or control a terminal as `\xHH`.
fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
                out.extend_from_slice(b"\\x");
                out.extend_from_slice(&digits);
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::date_cache::DateCache;
    use super::*;

    fn line_of(target: &[u8]) -> String {
        let dates = DateCache::new().at(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777));
        let peer = Peer::Ip([192, 0, 2, 7].into(), 5);
        let entry = LogEntry {
            peer: &peer,
            method: b"GET",
            target,
            version: "HTTP/1.1",
            status: 200,
            body_bytes: 42,
        };
        let mut out = Vec::new();
        entry.write(&dates, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_in_the_common_log_format() {
        let wanted = "192.0.2.7 - - [06/Nov/1994:08:49:37 +0000] \"GET /a HTTP/1.1\" 200 42\n";
        assert_eq!(line_of(b"/a"), wanted);
    }

    #[test]
    fn bytes_of_a_target_that_could_end_a_log_line_are_escaped() {
        let line = line_of(b"/\"\n\r\x1b\\\xff");
        assert!(line.contains("\"GET /\\x22\\x0a\\x0d\\x1b\\x5c\\xff HTTP/1.1\""), "{line}");
    }

    #[test]
    fn the_token_of_a_link_is_not_logged() {
        let line = line_of(b"/s/00112233445566778899aabbccddeeff/a?download");
        assert!(line.contains("\"GET /s/.../a?download HTTP/1.1\""), "{line}");
    }

    #[test]
    fn a_long_target_is_truncated_in_the_log() {
        assert!(line_of(&[b'a'; 9999]).len() < LOG_TARGET_BYTES_MAX + 200);
    }
}
