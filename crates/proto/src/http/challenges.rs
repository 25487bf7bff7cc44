//! Answers to the challenges of ACME servers (RFC 8555, section 8.3), from files.
//!
//! It orders no certificate, and has no answer of its own. Invariant: only a file whose name has the form of
//! a token is read, and only in the folder of answers.

use plimsoll_io::{File, Io, read_whole};
use plimsoll_wire::acme::is_challenge_token;
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use crate::limits::CHALLENGE_BYTES_MAX;

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
    path.strip_prefix(PREFIX).filter(|token| is_challenge_token(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_token_below_the_prefix_is_a_challenge() {
        let token_of = |token: &[u8]| token_of(&[PREFIX, token].concat()).map(<[u8]>::to_vec);
        assert_eq!(token_of(b"evaGxfADs6pSRb2LAv9IZ-_").unwrap(), b"evaGxfADs6pSRb2LAv9IZ-_");
        for text in [&b""[..], b"..", b"a/b", b"a.new"] {
            assert_eq!(token_of(text), None, "{text:?}");
        }
    }
}
