//! Tokens of ACME challenges (RFC 8555, section 8.3), which name resources and files.
//!
//! Not here: challenges and their answers. Invariant: no token is a path.

use crate::limits::CHALLENGE_TOKEN_BYTES_MAX;

/// Returns whether a token has no character "outside the base64url alphabet" (RFC 8555, section 8.3), and a
/// length that a file's name may have.
#[must_use]
pub fn is_challenge_token(token: &[u8]) -> bool {
    let is_safe = token.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
    is_safe && (1..=CHALLENGE_TOKEN_BYTES_MAX).contains(&token.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_a_path() {
        assert!(is_challenge_token(b"evaGxfADs6pSRb2LAv9IZ-_") && is_challenge_token(&[b'a'; 128]));
        for text in ["", ".", "..", "a/b", "../account.json", "a.new", "a\0", "ä", "a b", &"a".repeat(129)] {
            assert!(!is_challenge_token(text.as_bytes()), "{text}");
        }
    }
}
