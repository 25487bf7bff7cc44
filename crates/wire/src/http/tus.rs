//! The fields of resumable uploads: tus 1.0, core protocol and the extensions creation and checksum.
//!
//! Not here: uploads. Invariants: a field is parsed by the rules of the protocol or refused; the size of
//! decoded values is bounded by that of the head.

use super::base64;
use super::status::Status;
use crate::decimal::decimal;
use crate::limits::{UPLOAD_METADATA_KEYS_MAX, UPLOAD_PARTS_MAX};

/// The supported version of the protocol, for Tus-Resumable and Tus-Version.
pub const VERSION: &str = "1.0.0";

/// The algorithms of [`Checksum`], by their names in Tus-Checksum-Algorithm.
pub const CHECKSUM_ALGORITHMS: &str = "sha256,sha1,md5";

/// An error in a field of tus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.detail())]
pub enum BadTus {
    /// A version other than [`VERSION`], or none.
    Version,
    /// An Upload-Length that is not a number.
    Length,
    /// An Upload-Offset that is not a number.
    Offset,
    /// An Upload-Metadata that is not pairs of a key and base64.
    Metadata,
    /// An Upload-Metadata with more than [`UPLOAD_METADATA_KEYS_MAX`] keys.
    MetadataKeys,
    /// An Upload-Concat that is neither `partial` nor `final;` followed by uploads.
    Concat,
    /// An Upload-Concat of more than [`UPLOAD_PARTS_MAX`] uploads.
    Parts,
    /// An Upload-Checksum that is not an algorithm and base64 of its length.
    Checksum,
    /// An Upload-Checksum of another algorithm than [`CHECKSUM_ALGORITHMS`].
    ChecksumAlgorithm,
}

impl BadTus {
    /// Returns the status of the response. "If the version specified by the Client is not supported by the
    /// Server, it MUST respond with the 412 Precondition Failed status".
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Version => Status::PRECONDITION_FAILED,
            _ => Status::BAD_REQUEST,
        }
    }

    /// Returns the text for the peer: the error and the remedy.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        match self {
            Self::Version => "Only version 1.0.0 of tus is spoken here. Send Tus-Resumable: 1.0.0.",
            Self::Length => "Upload-Length must be one decimal number of bytes.",
            Self::Offset => "Upload-Offset must be one decimal number of bytes.",
            Self::Metadata => {
                "Upload-Metadata must be pairs of a key and its value in base64, with commas between, \
                 each key once."
            }
            Self::MetadataKeys => "Upload-Metadata has too many keys. Send fewer.",
            Self::Concat => {
                "Upload-Concat must be `partial`, or `final;` and the URLs of partial uploads with spaces \
                 between."
            }
            Self::Parts => "Upload-Concat has too many uploads. Send the file in fewer parts.",
            Self::Checksum => "Upload-Checksum must be an algorithm, a space, and the checksum in base64.",
            Self::ChecksumAlgorithm => "Upload-Checksum must be of sha256, sha1 or md5. Send one of them.",
        }
    }
}

/// Checks the value of Tus-Resumable: "The Tus-Resumable header MUST be included in every request and
/// response except for OPTIONS requests".
///
/// # Errors
///
/// [`BadTus::Version`].
pub fn check_version(value: Option<&[u8]>) -> Result<(), BadTus> {
    if value == Some(VERSION.as_bytes()) { Ok(()) } else { Err(BadTus::Version) }
}

/// Parses an Upload-Length, in bytes.
///
/// # Errors
///
/// [`BadTus::Length`].
pub fn parse_length(value: &[u8]) -> Result<u64, BadTus> {
    decimal(value).ok_or(BadTus::Length)
}

/// Parses an Upload-Offset, in bytes.
///
/// # Errors
///
/// [`BadTus::Offset`].
pub fn parse_offset(value: &[u8]) -> Result<u64, BadTus> {
    decimal(value).ok_or(BadTus::Offset)
}

/// A validated Upload-Metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata<'a> {
    value: &'a [u8],
}

/// Parses an Upload-Metadata: "one or more comma-separated key-value pairs. The key and value MUST be
/// separated by a space. The key MUST NOT contain spaces and commas and MUST NOT be empty. [...] the value
/// MUST be Base64 encoded. All keys MUST be unique. The value MAY be empty. In these cases, the space,
/// which would normally separate the key and the value, MAY be left out." Some clients send an empty field;
/// it has no keys.
///
/// # Errors
///
/// [`BadTus::Metadata`], [`BadTus::MetadataKeys`].
pub fn parse_metadata(value: &[u8]) -> Result<Metadata<'_>, BadTus> {
    let metadata = Metadata { value };
    for (at, (key, text)) in metadata.pairs().enumerate() {
        if at >= UPLOAD_METADATA_KEYS_MAX {
            return Err(BadTus::MetadataKeys);
        }
        let is_new = metadata.pairs().take(at).all(|(other, _)| other != key);
        if key.is_empty() || !key.iter().all(u8::is_ascii_graphic) || !is_new {
            return Err(BadTus::Metadata);
        }
        base64::decode(text).ok_or(BadTus::Metadata)?;
    }
    Ok(metadata)
}

impl<'a> Metadata<'a> {
    /// Returns the decoded value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let (_, text) = self.pairs().find(|(other, _)| *other == key.as_bytes())?;
        base64::decode(text)
    }

    /// Returns the field's value as sent, for the response to a later HEAD.
    #[must_use]
    pub fn as_sent(&self) -> &'a [u8] {
        self.value
    }

    /// Iterates over the pairs: key and base64.
    fn pairs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let pairs = (!self.value.is_empty()).then(|| self.value.split(|&byte| byte == b','));
        pairs.into_iter().flatten().map(|pair| {
            // The specification allows no white space around the comma, but clients in use send it.
            let pair = super::grammar::trim_ows(pair);
            let end = pair.iter().position(|&byte| byte == b' ').unwrap_or(pair.len());
            let (key, text) = pair.split_at(end);
            (key, text.get(1..).unwrap_or_default())
        })
    }
}

/// The value of an Upload-Concat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Concat<'a> {
    /// The upload is a part of a file.
    Partial,
    /// The upload is the file made of these parts. Each is the last segment of an upload's URL.
    Final(Vec<&'a [u8]>),
}

/// Parses an Upload-Concat: "The header contains either partial, for partial uploads, or final followed by
/// a semicolon and a space-separated list of partial upload URLs", which may be absolute or relative.
///
/// # Errors
///
/// [`BadTus::Concat`], [`BadTus::Parts`].
pub fn parse_concat(value: &[u8]) -> Result<Concat<'_>, BadTus> {
    if value == b"partial" {
        return Ok(Concat::Partial);
    }
    let urls = value.strip_prefix(b"final;").ok_or(BadTus::Concat)?;
    let mut parts = Vec::new();
    for url in urls.split(|&byte| byte == b' ').filter(|url| !url.is_empty()) {
        if parts.len() == UPLOAD_PARTS_MAX {
            return Err(BadTus::Parts);
        }
        let id = url.rsplit(|&byte| byte == b'/').next().filter(|id| !id.is_empty());
        parts.push(id.ok_or(BadTus::Concat)?);
    }
    if parts.is_empty() { Err(BadTus::Concat) } else { Ok(Concat::Final(parts)) }
}

/// The checksum of one request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// `sha1`
    Sha1([u8; 20]),
    /// `md5`
    Md5([u8; 16]),
    /// `sha256`
    Sha256([u8; 32]),
}

/// Parses an Upload-Checksum: "the name of the used checksum algorithm and the Base64 encoded checksum
/// separated by a space".
///
/// # Errors
///
/// [`BadTus::Checksum`], [`BadTus::ChecksumAlgorithm`].
pub fn parse_checksum(value: &[u8]) -> Result<Checksum, BadTus> {
    let space = value.iter().position(|&byte| byte == b' ').ok_or(BadTus::Checksum)?;
    let (algorithm, text) = value.split_at(space);
    let text = text.get(1..).unwrap_or_default();
    let checksum = match algorithm {
        b"sha1" => base64::decode_digest(text).map(Checksum::Sha1),
        b"md5" => base64::decode_digest(text).map(Checksum::Md5),
        b"sha256" => base64::decode_digest(text).map(Checksum::Sha256),
        _ => return Err(BadTus::ChecksumAlgorithm),
    };
    checksum.ok_or(BadTus::Checksum)
}

/// Appends a pair to an Upload-Metadata.
pub fn write_metadata(key: &str, value: &[u8], out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(key.as_bytes());
    out.push(b' ');
    base64::encode(value, out);
}
