//! The fingerprint of a certificate: the digest by which a person compares two.
//!
//! It does not verify. Invariant: its text is that of `openssl x509 -fingerprint -sha256`.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// The SHA-256 digest of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// A text that is no fingerprint, with advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 64 hexadecimal digits, SHA-256, with or without colons between pairs")]
pub struct BadFingerprint;

impl Fingerprint {
    /// Computes the fingerprint of a certificate in DER.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Fingerprint, BadFingerprint> {
        let letters = text.trim().chars().filter(|letter| *letter != ':');
        let digits: Option<Vec<u32>> = letters.map(|letter| letter.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or(BadFingerprint)?;
        let byte = |pair: &[u32]| pair.iter().fold(0, |byte, digit| byte * 16 + digit);
        let bytes: Result<Vec<u8>, _> = digits.chunks(2).map(|pair| u8::try_from(byte(pair))).collect();
        let bytes = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Fingerprint).ok_or(BadFingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_written_as_openssl_writes_it() {
        let empty = "E3:B0:C4:42:98:FC:1C:14:9A:FB:F4:C8:99:6F:B9:24:\
                     27:AE:41:E4:64:9B:93:4C:A4:95:99:1B:78:52:B8:55";
        let fingerprint = Fingerprint::of(b"");
        assert_eq!(fingerprint.to_string(), empty);
        for text in [empty.to_owned(), empty.to_lowercase(), empty.replace(':', ""), format!(" {empty}\n")] {
            assert_eq!(text.parse(), Ok(fingerprint), "{text}");
        }
        for text in ["", "AB", &empty[1..], &format!("{empty}:00"), &empty.replace('E', "G")] {
            assert_eq!(text.parse::<Fingerprint>(), Err(BadFingerprint), "{text}");
        }
    }
}
