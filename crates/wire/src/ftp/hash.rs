//! HASH: the digest algorithms and the form of the reply (draft-bryan-ftpext-hash).
//!
//! Not here: the computation of digests. Invariants: "The hash algorithm that is currently selected MUST be
//! marked with an asterisk" (section 3.1); algorithm names are not case-sensitive.

use crate::hex;

/// A digest algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-256, the default.
    #[default]
    Sha256,
    /// SHA-1, which does not resist deliberate collisions.
    Sha1,
    /// MD5, which does not resist them either.
    Md5,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 3] = [Self::Sha256, Self::Sha1, Self::Md5];

    /// Returns the name in IANA's registry of hash functions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA-256",
            Self::Sha1 => "SHA-1",
            Self::Md5 => "MD5",
        }
    }

    /// Returns the length of a digest, in bytes.
    #[must_use]
    pub fn digest_bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha1 => 20,
            Self::Md5 => 16,
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Formats the line of FEAT while this algorithm is selected.
    #[must_use]
    pub fn feature(self) -> String {
        let mark = |other| if other == self { "*" } else { "" };
        let all = Self::ALL.iter().map(|other| format!("{}{};", other.name(), mark(*other)));
        format!("HASH {}", all.collect::<String>())
    }

    /// Formats the text of the 213 that answers HASH for a whole file of `size` bytes: `hashname SP
    /// start-point "-" end-point SP filehash SP <pathname>` (section 3). The end point is the last
    /// position, inclusive; for an empty file it equals the start.
    #[must_use]
    pub fn reply_text(self, size: u64, digest: &[u8], path: &[u8]) -> Vec<u8> {
        let last = size.saturating_sub(1);
        let mut text = format!("{} 0-{last} {} ", self.name(), hex::encode(digest)).into_bytes();
        text.extend_from_slice(path);
        text
    }
}
