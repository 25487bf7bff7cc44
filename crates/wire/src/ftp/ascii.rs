//! TYPE A: lines end in CR LF on the data connection and in LF in files.
//!
//! Not here: character sets. "In accordance with the NVT standard, the `<CRLF>` sequence should be used
//! where necessary to denote the end of a line of text" (RFC 959, section 3.1.1.1). Invariants: the output
//! does not depend on how the input is split. A CR that ends no line is preserved, and so is a NUL after
//! it: a binary file loses nothing but the form of its line ends.

/// Converts from a file to the data connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToNetwork {
    after_cr: bool,
}

impl ToNetwork {
    /// Converts the next bytes of the file and appends the result. Each LF becomes CR LF, unless a CR
    /// precedes it.
    pub fn convert(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (line, is_ended) = match part.split_last() {
                Some((b'\n', line)) => (line, true),
                _ => (part, false),
            };
            out.extend_from_slice(line);
            let has_cr = line.last().map_or(self.after_cr, |&last| last == b'\r');
            if is_ended {
                out.extend_from_slice(if has_cr { b"\n" } else { b"\r\n" });
            }
            self.after_cr = has_cr && !is_ended;
        }
    }

    /// Returns how many bytes [`Self::convert`] would append, and advances the state as it would.
    pub fn measure(&mut self, bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |sum, &byte| {
            let is_bare = byte == b'\n' && !self.after_cr;
            self.after_cr = byte == b'\r';
            sum + 1 + u64::from(is_bare)
        })
    }
}

/// Converts from the data connection to a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct FromNetwork {
    /// The last byte was a CR, which is withheld: an LF may follow it.
    held_cr: bool,
}

impl FromNetwork {
    /// Converts the next bytes of the connection and appends the result. CR LF becomes LF; other bytes are
    /// unchanged.
    pub fn convert(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.reserve(bytes.len() + 1);
        for part in bytes.split_inclusive(|&byte| byte == b'\r') {
            if self.held_cr && part.first() != Some(&b'\n') {
                out.push(b'\r');
            }
            self.held_cr = part.last() == Some(&b'\r');
            let len = part.len() - usize::from(self.held_cr);
            out.extend_from_slice(part.get(..len).unwrap_or_default());
        }
    }

    /// Appends the withheld CR if it was the last byte of the data.
    pub fn finish(self, out: &mut Vec<u8>) {
        if self.held_cr {
            out.push(b'\r');
        }
    }
}
