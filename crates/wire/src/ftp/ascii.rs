//! TYPE A: lines end in CR LF on the data connection and in LF in files.
//!
//! Not here: character sets. "In accordance with the NVT standard, the `<CRLF>` sequence should be used where
//! necessary to denote the end of a line of text" (RFC 959, section 3.1.1.1). What must hold: the same bytes
//! come out however they are cut; a CR that ends no line is kept, and so is a NUL after it, so that no byte
//! of a file that is no text is lost beyond the ends of its lines.

/// From a file to the data connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToNetwork {
    after_cr: bool,
}

impl ToNetwork {
    /// Appends what the bytes that follow in the file are on the connection: each LF as CR LF, but one that
    /// has its CR already as it is.
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

    /// How many bytes [`Self::convert`] would append. It counts as converting: what follows goes on from
    /// here.
    pub fn measure(&mut self, bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |sum, &byte| {
            let is_bare = byte == b'\n' && !self.after_cr;
            self.after_cr = byte == b'\r';
            sum + 1 + u64::from(is_bare)
        })
    }
}

/// From the data connection to a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct FromNetwork {
    /// The last byte was a CR, which is not out yet: it may be half of a line's end.
    held_cr: bool,
}

impl FromNetwork {
    /// Appends what the bytes that follow on the connection are in the file: CR LF as LF, all else as it is.
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

    /// Appends what is left at the end of the data: a CR, if it was the last byte.
    pub fn finish(self, out: &mut Vec<u8>) {
        if self.held_cr {
            out.push(b'\r');
        }
    }
}
