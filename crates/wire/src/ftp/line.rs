//! The lines of a control connection, out of whatever pieces they arrive in.
//!
//! Not here: what a line says, and answers to Telnet's options. "The FTP uses the Telnet protocol on the
//! control connection" (RFC 959, section 2.3), so Telnet's commands may stand among the bytes; all are passed
//! over. What must hold: the same lines come out however the bytes are cut; a line costs no more memory than
//! its limit allows, and none while nothing of it has come.

use std::mem;

/// "Interpret as command": the Telnet byte before each of its commands (RFC 854).
const IAC: u8 = 255;
/// The end of a subnegotiation.
const SE: u8 = 240;
/// The data mark that goes with an urgent notification.
const DATA_MARK: u8 = 242;
/// The first of the commands of one byte (NOP), after SE.
const NOP: u8 = 241;
/// The last of them.
const GO_AHEAD: u8 = 249;
/// The start of a subnegotiation.
const SB: u8 = 250;
/// The first and the last of the commands that name an option: WILL, WONT, DO, DONT.
const WILL: u8 = 251;
const DONT: u8 = 254;

/// A line was longer than the limit. It was skipped to its end, so that the next line is one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The line is too long. Use shorter names.")]
pub struct TooLong;

/// Where in Telnet's commands the next byte stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Telnet {
    #[default]
    Text,
    Command,
    Option,
    Subnegotiation,
    SubnegotiationCommand,
}

/// Takes lines out of the bytes of a control connection.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    line: Vec<u8>,
    telnet: Telnet,
    /// The last byte of text was a CR, which is not in the line yet.
    held_cr: bool,
    too_long: bool,
}

impl Lines {
    /// Whether nothing of a next line has come.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_at_start() && self.telnet == Telnet::Text
    }

    /// Looks at the bytes that follow what was consumed so far, up to the end of a line: how many that were,
    /// and the line without its end. Without a line all of them were consumed, and more are needed.
    ///
    /// A line ends in CR LF, or in LF alone, which people at a terminal send. `limit` is the longest line in
    /// bytes, its end and Telnet's bytes not counted.
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

    /// What a byte adds to the text once Telnet's commands are out.
    fn text_byte(&mut self, byte: u8) -> Option<u8> {
        let (next, text) = match (self.telnet, byte) {
            (Telnet::Text, IAC) => (Telnet::Command, None),
            // The urgent byte of an IAC DM may have been the IAC: the system takes it out of the stream.
            (Telnet::Text, DATA_MARK) if self.is_at_start() => (Telnet::Text, None),
            (Telnet::Command, SE | NOP..=GO_AHEAD) => (Telnet::Text, None),
            (Telnet::Command, SB) => (Telnet::Subnegotiation, None),
            (Telnet::Command, WILL..=DONT) => (Telnet::Option, None),
            (Telnet::Option, _) | (Telnet::SubnegotiationCommand, SE) => (Telnet::Text, None),
            (Telnet::Subnegotiation, IAC) => (Telnet::SubnegotiationCommand, None),
            (Telnet::Subnegotiation | Telnet::SubnegotiationCommand, _) => (Telnet::Subnegotiation, None),
            // A doubled IAC is a byte of text; so is one whose command was the urgent byte and is gone.
            (Telnet::Text | Telnet::Command, text) => (Telnet::Text, Some(text)),
        };
        self.telnet = next;
        text
    }

    /// CR NUL is a CR that ends no line (RFC 854); so is a CR before anything else.
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
