//! The identifier of an upload: 128 random bits, in hexadecimal the name of its file.
//!
//! It is no secret that gives access: an upload is only found in its owner's home. Invariants: it is a
//! valid file name, and never another upload's.

use std::fmt;

use plimsoll_io::Io;

/// Identifies an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UploadId(u128);

impl UploadId {
    /// Draws a new identifier.
    pub(crate) fn draw(io: &Io) -> UploadId {
        let mut bytes = [0; 16];
        io.entropy(&mut bytes);
        UploadId(u128::from_be_bytes(bytes))
    }

    /// Returns the identifier with the lowest 48 bits of `number` at its start.
    pub(crate) fn with_start(self, number: u64) -> UploadId {
        UploadId((u128::from(number) << 80) | (self.0 & (u128::MAX >> 48)))
    }

    /// The number of its first 48 bits.
    pub(crate) fn start(self) -> u64 {
        u64::try_from(self.0 >> 80).unwrap_or(u64::MAX)
    }

    /// Parses the output of [`fmt::Display`], and nothing else.
    pub fn parse(text: &[u8]) -> Option<UploadId> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 32)?;
        let id = UploadId(u128::from_str_radix(text, 16).ok()?);
        (id.to_string() == text).then_some(id)
    }

    /// The name of its file.
    pub(crate) fn data_name(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }

    /// The name of the list of the partial uploads that it joins.
    pub(crate) fn parts_name(&self) -> Vec<u8> {
        format!("{self}.parts").into_bytes()
    }

    /// The name of its record.
    pub(crate) fn record_name(&self) -> Vec<u8> {
        format!("{self}.record").into_bytes()
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_text_is_read() {
        let id = UploadId(0xabc);
        assert_eq!(UploadId::parse(id.to_string().as_bytes()), Some(id));
        for text in ["", "abc", "+0000000000000000000000000000abc", &id.to_string().to_uppercase()] {
            assert_eq!(UploadId::parse(text.as_bytes()), None, "{text}");
        }
    }
}
