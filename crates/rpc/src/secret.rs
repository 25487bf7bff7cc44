//! Secret bytes: a password on its way to be hashed, or the secret of a tier.
//!
//! They are not stored. Invariant: the memory is overwritten on drop, and the `Debug` output does not
//! contain them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use plimsoll_wire::hex;

/// A secret. The time of a comparison depends only on the lengths.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of the bytes; the caller must wipe any copy.
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(Zeroizing::new(bytes))
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret::new(text.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Secret {
    fn from(bytes: &[u8]) -> Secret {
        Secret::new(bytes.to_vec())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Serialises as hexadecimal digits: a password need not be text.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Zeroizing::new(hex::encode(self.bytes())).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let bytes = hex::decode(text.as_bytes());
        bytes.map(Secret::new).ok_or_else(|| serde::de::Error::custom("a secret is not hexadecimal"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_shows_nothing_of_it() {
        assert_eq!(format!("{:?}", Secret::from("hunter2")), "Secret");
    }

    #[test]
    fn a_secret_of_any_bytes_survives_serialisation() {
        let secret = Secret::new(vec![0, 255, b'"', 0xc3]);
        let sent = serde_json::to_string(&secret).unwrap();
        assert_eq!(serde_json::from_str::<Secret>(&sent).unwrap(), secret);
        assert!(serde_json::from_str::<Secret>("\"xyz\"").is_err());
    }
}
