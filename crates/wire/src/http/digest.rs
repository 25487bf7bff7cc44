//! Digests of content and of representations: Content-MD5 (RFC 1864) and the fields of RFC 9530.
//!
//! Not here: their computation. Invariants: a digest of a known algorithm has the algorithm's length; a
//! malformed field is an error and not treated as absent, because the sender wants the digest checked.

use super::base64;
use super::grammar::split_unquoted;

/// The digests in a Repr-Digest or Content-Digest field, of the supported algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// `sha-256`
    pub sha256: Option<[u8; 32]>,
    /// `sha-512`
    pub sha512: Option<[u8; 64]>,
    /// `md5`
    pub md5: Option<[u8; 16]>,
}

/// A digest field that cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.detail())]
pub struct BadDigest;

impl BadDigest {
    /// Returns the text for the peer: the error and the remedy.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        "A digest must be base64 of the right length: Content-MD5: BASE64, or Repr-Digest: sha-256=:BASE64:."
    }
}

/// Parses the value of Content-MD5: base64 of 16 bytes.
///
/// # Errors
///
/// [`BadDigest`]: respond with 400.
pub fn parse_content_md5(value: &[u8]) -> Result<[u8; 16], BadDigest> {
    base64::decode_digest(value).ok_or(BadDigest)
}

/// Parses the values of all lines of Repr-Digest, or of Content-Digest. Unsupported algorithms are ignored:
/// "A recipient MAY ignore any or all digests" (RFC 9530, section 2).
///
/// # Errors
///
/// [`BadDigest`]: respond with 400.
pub fn parse_digests<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Digests, BadDigest> {
    let mut digests = Digests::default();
    for line in lines {
        for member in members(line) {
            let (key, value) = member.ok_or(BadDigest)?;
            match key {
                b"sha-256" => digests.sha256 = Some(byte_sequence(value)?),
                b"sha-512" => digests.sha512 = Some(byte_sequence(value)?),
                b"md5" => digests.md5 = Some(byte_sequence(value)?),
                _ => {}
            }
        }
    }
    Ok(digests)
}

/// Returns whether the lines of a Want-Repr-Digest request SHA-256. A preference is an integer from 0 to
/// 10, and 0 means not acceptable (RFC 9530, section 4). A malformed field requests nothing.
pub fn wants_sha256<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut wanted = false;
    for line in lines {
        for member in members(line) {
            match member {
                Some((b"sha-256", b"0")) => wanted = false,
                Some((b"sha-256", [b'1'..=b'9'] | b"10")) => wanted = true,
                Some((b"sha-256", _)) | None => return false,
                Some(_) => {}
            }
        }
    }
    wanted
}

/// Formats the value of a Repr-Digest with a SHA-256.
#[must_use]
pub fn sha256_digest(digest: &[u8; 32]) -> Vec<u8> {
    let mut value = b"sha-256=:".to_vec();
    base64::encode(digest, &mut value);
    value.push(b':');
    value
}

/// Formats the value of a Content-MD5.
#[must_use]
pub fn content_md5(digest: &[u8; 16]) -> Vec<u8> {
    let mut value = Vec::new();
    base64::encode(digest, &mut value);
    value
}

/// Iterates over the members of a dictionary (RFC 9651, section 3.2): key and bare value, without
/// parameters. None stands for a malformed member. "If dictionary already contains a key [...] overwrite
/// its value": the caller does so.
fn members(line: &[u8]) -> impl Iterator<Item = Option<(&[u8], &[u8])>> {
    let members = (!line.is_empty()).then(|| split_unquoted(line, b','));
    members.into_iter().flatten().map(|member| {
        let item = split_unquoted(member, b';').next()?;
        let end = item.iter().position(|&byte| byte == b'=');
        // A member without a value is a Boolean that is true.
        let (key, value) = match end {
            Some(end) => (item.get(..end)?, item.get(end + 1..)?),
            None => (item, &b"?1"[..]),
        };
        (is_key(key) && !value.is_empty()).then_some((key, value))
    })
}

/// `key = ( lcalpha / "*" ) *( lcalpha / DIGIT / "_" / "-" / "." / "*" )`
fn is_key(key: &[u8]) -> bool {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte == b'*';
    let is_more = |byte: u8| is_first(byte) || byte.is_ascii_digit() || b"_-.".contains(&byte);
    key.first().is_some_and(|&byte| is_first(byte)) && key.iter().all(|&byte| is_more(byte))
}

/// `:BASE64:`
fn byte_sequence<const N: usize>(value: &[u8]) -> Result<[u8; N], BadDigest> {
    let text = value.strip_prefix(b":").and_then(|rest| rest.strip_suffix(b":"));
    text.and_then(base64::decode_digest).ok_or(BadDigest)
}
