//! The account at the operator of an ACME server that a new account is bound to (RFC 8555, section 7.3.4).
//!
//! It signs nothing. Invariant: the key is wiped from memory after use, and never logged.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

/// An account at the operator.
#[derive(Clone)]
pub struct ExternalAccount {
    pub(crate) id: String,
    pub(crate) key: Zeroizing<Vec<u8>>,
}

impl ExternalAccount {
    /// Parses the key from its text in base64url, also with padding, or in base64. `None` if it is neither.
    pub fn parse(id: &str, key: &[u8]) -> Option<ExternalAccount> {
        let of_urls = |byte: &u8| match byte {
            b'+' => b'-',
            b'/' => b'_',
            other => *other,
        };
        let text = key.trim_ascii();
        let text: Zeroizing<Vec<u8>> =
            Zeroizing::new(text.iter().filter(|byte| **byte != b'=').map(of_urls).collect());
        let key = BASE64_URL_SAFE_NO_PAD.decode(&text).ok().filter(|key| !key.is_empty())?;
        Some(ExternalAccount { id: id.to_owned(), key: Zeroizing::new(key) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_with_and_without_padding() {
        for text in ["-_8", "-_8=\n", "+/8=", " -_8\r\n"] {
            let account = ExternalAccount::parse("kid-1", text.as_bytes()).unwrap();
            assert_eq!((account.id.as_str(), account.key.as_slice()), ("kid-1", &[0xfb, 0xff][..]), "{text}");
        }
        for text in ["", "\n", "a key", "-", "-_8 -_8"] {
            assert!(ExternalAccount::parse("kid-1", text.as_bytes()).is_none(), "{text}");
        }
    }
}
