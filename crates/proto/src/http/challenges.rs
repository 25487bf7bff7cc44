//! Answers to the challenges of ACME servers (RFC 8555, section 8.3), from files.
//!
//! It orders no certificate, and has no answer of its own. Invariant: only a file whose name has the form of
//! a token is read, and only in the folder of answers.

use plimsoll_io::{File, Io, read_whole};
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use crate::limits::{CHALLENGE_BYTES_MAX, CHALLENGE_TOKEN_BYTES_MAX};

/// The path below which ACME servers fetch answers.
const PREFIX: &[u8] = b"/.well-known/acme-challenge/";

/// The folder of the answers.
#[derive(Clone)]
pub struct Challenges(File);

impl Challenges {
    /// Answers challenges from the files in `folder`, named by their tokens.
    pub fn new(folder: File) -> Challenges {
        Challenges(folder)
    }

    /// Returns the answer to the challenge with this token; `None` if it is no open challenge of this server.
    pub(super) async fn answer(&self, io: &Io, token: &[u8]) -> Option<Answer> {
        let (folder, token) = (self.0.clone(), token.to_vec());
        match io.files(move |fs| read_whole(fs, &folder, &token, CHALLENGE_BYTES_MAX)).await {
            Ok(Some(bytes)) => {
                Some(Answer::new(Status::OK).field("Content-Type", "text/plain").body(Body::Bytes(bytes)))
            }
            Ok(None) => None,
            Err(error) => {
                tracing::error!(%error, "the answer to a challenge cannot be read");
                None
            }
        }
    }
}

/// Returns the token of the challenge whose answer has this path.
pub(super) fn token_of(path: &[u8]) -> Option<&[u8]> {
    path.strip_prefix(PREFIX).filter(|token| is_token(token))
}

fn is_token(token: &[u8]) -> bool {
    let is_safe = token.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
    is_safe && (1..=CHALLENGE_TOKEN_BYTES_MAX).contains(&token.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_a_path() {
        let token_of = |token: &[u8]| token_of(&[PREFIX, token].concat()).map(<[u8]>::to_vec);
        assert_eq!(token_of(b"evaGxfADs6pSRb2LAv9IZ-_").unwrap(), b"evaGxfADs6pSRb2LAv9IZ-_");
        for text in [&b""[..], b".", b"..", b"a/b", b"a.new", b"a\0", &[b'a'; 129]] {
            assert_eq!(token_of(text), None, "{text:?}");
        }
    }
}
