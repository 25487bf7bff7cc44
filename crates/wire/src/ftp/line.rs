//! Reassembles the lines of a control connection from the pieces in which they are received.
//!
//! Not here: the parsing of a line, and replies to Telnet's options. "The FTP uses the Telnet protocol on
//! the control connection" (RFC 959, section 2.3), so Telnet commands may stand among the bytes; all are
//! ignored. Invariants: the lines do not depend on how the bytes are split. A line's memory is bounded by
//! the limit, and is zero before its first byte is received.

use std::mem;

/// "Interpret as command": the Telnet byte before each of its commands (RFC 854).
const IAC: u8 = 255;
/// Ends a subnegotiation.
const SE: u8 = 240;
/// The data mark that accompanies an urgent notification.
const DATA_MARK: u8 = 242;
/// First of the one-byte commands (NOP), after SE.
const NOP: u8 = 241;
/// Last of the one-byte commands.
const GO_AHEAD: u8 = 249;
/// Starts a subnegotiation.
const SB: u8 = 250;
/// First and last of the commands that name an option: WILL, WONT, DO, DONT.
const WILL: u8 = 251;
const DONT: u8 = 254;

/// A line exceeded the limit. It was skipped to its end, so that the next line can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The line is too long. Use shorter names.")]
pub struct TooLong;

/// State of the Telnet parser before the next byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Telnet {
    #[default]
    Text,
    Command,
    Option,
    Subnegotiation,
    SubnegotiationCommand,
}

/// Extracts lines from the bytes of a control connection.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    line: Vec<u8>,
    telnet: Telnet,
    /// The last byte of text was a CR, which is withheld from the line.
    held_cr: bool,
    too_long: bool,
}

impl Lines {
    /// Returns whether no byte of a next line was received.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_at_start() && self.telnet == Telnet::Text
    }

    /// Consumes the next bytes, up to the end of a line. Returns the number of bytes consumed, and the line
    /// without its end. Without a line, all bytes were consumed and more are needed.
    ///
    /// A line ends in CR LF, or in LF alone, which people at a terminal send. `limit` is the maximum length
    /// of a line in bytes, its end and Telnet's bytes not counted.
    pub fn take(&mut self, bytes: &[u8], limit: usize) -> (usize, Option<Result<Vec<u8>, TooLong>>) {
        for (at, &byte) in bytes.iter().enumerate() {
            let Some(text) = self.text_byte(byte) else { continue };
            if text == b'\n' {
                return (at + 1, Some(self.end()));
            }
            self.push_text(text, limit);
        }
        (bytes.len(), None)
    }

    /// Returns the byte of text that remains after Telnet's commands are removed, if any.
    fn text_byte(&mut self, byte: u8) -> Option<u8> {
        let (next, text) = match (self.telnet, byte) {
            (Telnet::Text, IAC) => (Telnet::Command, None),
            // The urgent byte of an IAC DM may have been the IAC, which the kernel removes from the stream.
            (Telnet::Text, DATA_MARK) if self.is_at_start() => (Telnet::Text, None),
            (Telnet::Command, SE | NOP..=GO_AHEAD) => (Telnet::Text, None),
            (Telnet::Command, SB) => (Telnet::Subnegotiation, None),
            (Telnet::Command, WILL..=DONT) => (Telnet::Option, None),
            (Telnet::Option, _) | (Telnet::SubnegotiationCommand, SE) => (Telnet::Text, None),
            (Telnet::Subnegotiation, IAC) => (Telnet::SubnegotiationCommand, None),
            (Telnet::Subnegotiation | Telnet::SubnegotiationCommand, _) => (Telnet::Subnegotiation, None),
            // A doubled IAC is one byte of text. So is a byte after an IAC whose command was the urgent
            // byte.
            (Telnet::Text | Telnet::Command, text) => (Telnet::Text, Some(text)),
        };
        self.telnet = next;
        text
    }

    /// Adds a byte of text. CR NUL is a CR that ends no line (RFC 854); so is a CR before any other byte.
    fn push_text(&mut self, byte: u8, limit: usize) {
        if mem::replace(&mut self.held_cr, byte == b'\r') {
            self.push(b'\r', limit);
            if byte == 0 {
                return;
            }
        }
        if !self.held_cr {
            self.push(byte, limit);
        }
    }

    fn push(&mut self, byte: u8, limit: usize) {
        if self.line.len() < limit && !self.too_long {
            self.line.push(byte);
        } else {
            self.too_long = true;
            self.line = Vec::new();
        }
    }

    fn end(&mut self) -> Result<Vec<u8>, TooLong> {
        self.held_cr = false;
        let line = mem::take(&mut self.line);
        if mem::take(&mut self.too_long) { Err(TooLong) } else { Ok(line) }
    }

    fn is_at_start(&self) -> bool {
        self.line.is_empty() && !self.held_cr && !self.too_long
    }
}
