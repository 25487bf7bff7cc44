//! The format of a stored object's file: the content, the checksums of its blocks, the metadata, and a
//! trailer of fixed length.
//!
//! Not here: files. The content comes first, so that a hit is sent from offset 0, and the metadata last,
//! because the length of a chunked body is known only then. A file without checksums is one that was written
//! while they were off. Invariant: a file that was cut, or whose metadata changed, has no valid trailer.

use super::checksums::{CHECKSUM_BYTES, blocks_of};
use crate::cache::limits::METADATA_BYTES_MAX;
use crate::cache::policy::{Digest, StoredHead};

/// Length of the trailer in bytes.
pub(super) const TRAILER_BYTES: usize = 48;
const MAGIC: [u8; 8] = *b"plimobj2";

/// The trailer of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    /// Length of the content in bytes.
    pub(super) content_bytes: u64,
    /// Length of the checksums in bytes.
    pub(super) checksum_bytes: u64,
    /// Length of the metadata in bytes.
    pub(super) metadata_bytes: u64,
    /// Number of the file, which its name repeats.
    pub(super) sequence: u64,
    digest: Digest,
}

/// Returns metadata and trailer: the end of a file, behind the checksums.
pub(super) fn encode_end(head: &StoredHead, content_bytes: u64, sequence: u64) -> Vec<u8> {
    let mut end = head.encode();
    let metadata_bytes = end.len() as u64;
    let digest = digest_of(&end, content_bytes, sequence);
    end.extend_from_slice(&MAGIC);
    end.extend_from_slice(&content_bytes.to_le_bytes());
    end.extend_from_slice(&metadata_bytes.to_le_bytes());
    end.extend_from_slice(&sequence.to_le_bytes());
    end.extend_from_slice(digest.as_bytes());
    end
}

impl Trailer {
    /// Reads the trailer of a file of `file_bytes`. Returns `None` if it is not one, or of another file.
    pub(super) fn parse(bytes: &[u8; TRAILER_BYTES], file_bytes: u64) -> Option<Trailer> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (content, rest) = rest.split_first_chunk::<8>()?;
        let (metadata, rest) = rest.split_first_chunk::<8>()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let content_bytes = u64::from_le_bytes(*content);
        let metadata_bytes = u64::from_le_bytes(*metadata);
        let rest_bytes = content_bytes.checked_add(metadata_bytes)?.checked_add(TRAILER_BYTES as u64)?;
        let trailer = Trailer {
            content_bytes,
            checksum_bytes: file_bytes.checked_sub(rest_bytes)?,
            metadata_bytes,
            sequence: u64::from_le_bytes(*sequence),
            digest: Digest(*rest.first_chunk()?),
        };
        let is_whole = trailer.checksum_bytes == 0 || trailer.has_checksums();
        let is_valid = *magic == MAGIC && is_whole && trailer.metadata_bytes <= METADATA_BYTES_MAX;
        is_valid.then_some(trailer)
    }

    /// Whether each block of the content has a checksum.
    pub(super) fn has_checksums(&self) -> bool {
        blocks_of(self.content_bytes).checked_mul(CHECKSUM_BYTES) == Some(self.checksum_bytes)
    }

    /// Returns the offset of the metadata.
    pub(super) fn metadata_at(&self) -> u64 {
        self.content_bytes + self.checksum_bytes
    }

    /// Decodes the metadata, if it is what the trailer was written for.
    pub(super) fn decode(&self, metadata: &[u8]) -> Option<StoredHead> {
        let digest = digest_of(metadata, self.content_bytes, self.sequence);
        if digest == self.digest { StoredHead::decode(metadata) } else { None }
    }
}

fn digest_of(metadata: &[u8], content_bytes: u64, sequence: u64) -> Digest {
    Digest::of([&MAGIC[..], metadata, &content_bytes.to_le_bytes(), &sequence.to_le_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::policy::stored_for_tests as stored;

    fn read(file: &[u8]) -> Option<StoredHead> {
        let (rest, trailer) = file.split_last_chunk::<TRAILER_BYTES>()?;
        let trailer = Trailer::parse(trailer, file.len() as u64)?;
        let start = usize::try_from(trailer.metadata_at()).ok()?;
        trailer.decode(rest.get(start..)?)
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let head = stored("http://a/x", "", "ETag: \"a\"\r\n");
        let without = [b"content".to_vec(), encode_end(&head, 7, 5)].concat();
        assert_eq!(read(&without), Some(head.clone()));
        let (content, checksums) = (b"content".to_vec(), vec![9; 8]);
        let file = [content, checksums, encode_end(&head, 7, 5)].concat();
        assert_eq!(read(&file), Some(head));
        for end in 0..file.len() {
            assert_eq!(read(&file[..end]), None, "cut at {end}");
        }
        for at in b"content".len() + 8..file.len() {
            let mut torn = file.clone();
            torn[at] ^= 1;
            assert_eq!(read(&torn), None, "torn at {at}");
        }
        assert_eq!(read(&vec![0; file.len()]), None);
    }
}
