//! The client's announcement of its next upload, by which the server knows whether it has received all of it.
//!
//! In stream mode, "the end of file is indicated by the sending host closing the data connection" (RFC 959,
//! section 3.4.1), and the kernel closes the connections of a killed client in the same way. This module does
//! not wait for the client ([`super::confirming`] does). Invariant: an announcement is for one upload.

use plimsoll_store::Algorithm;
use plimsoll_wire::ftp::hash::Algorithm as Named;
use plimsoll_wire::ftp::options::Announced;

/// The announced properties of the next upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Announcement {
    /// The room to set aside, by ALLO: the file's size, or more.
    pub(super) room: Option<u64>,
    /// The size of the file, by OPTS STOR SIZE.
    size: Option<u64>,
    /// The digest of the file, by OPTS STOR.
    digest: Option<(Algorithm, Vec<u8>)>,
}

/// The relation of the received bytes to an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    /// They are the whole file, or its digest decides that.
    Whole,
    /// The announcement does not decide.
    Unknown,
    /// They are fewer than the room that the client had set aside.
    BelowRoom,
    /// They are not the announced size, this.
    Wrong(u64),
}

impl Announcement {
    /// Adds what OPTS STOR says.
    pub(super) fn add(&mut self, announced: Announced) {
        match announced {
            Announced::Size(bytes) => self.size = Some(bytes),
            Announced::Digest(named, digest) => self.digest = Some((algorithm(named), digest)),
        }
    }

    /// Returns what it says of a file of `whole` bytes, of which the last `sent` came in this upload.
    pub(super) fn completeness(&self, whole: u64, sent: u64) -> Completeness {
        match (self.size, self.room) {
            (Some(size), _) if size != whole => Completeness::Wrong(size),
            (Some(_), _) => Completeness::Whole,
            _ if self.digest.is_some() => Completeness::Whole,
            // A client that resumes announces the whole file or the rest of it. Only the rest is certain: a
            // whole file of so many bytes may be a part of the rest.
            (None, Some(room)) if room == sent => Completeness::Whole,
            (None, Some(room)) if whole < room => Completeness::BelowRoom,
            _ => Completeness::Unknown,
        }
    }

    /// Whether a file of `whole` bytes, of which the last `sent` came in this upload, has the announced size.
    pub(super) fn is_size_reached(&self, whole: u64, sent: u64) -> bool {
        self.size.map_or(self.room == Some(sent), |size| size == whole)
    }

    /// Returns the digests that the whole file must have.
    pub(super) fn into_digests(self) -> Vec<(Algorithm, Vec<u8>)> {
        self.digest.into_iter().collect()
    }
}

/// Returns the store's algorithm.
pub(super) fn algorithm(named: Named) -> Algorithm {
    match named {
        Named::Sha256 => Algorithm::Sha256,
        Named::Sha1 => Algorithm::Sha1,
        Named::Md5 => Algorithm::Md5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_decides_whether_an_upload_is_complete() {
        let room = |room| Announcement { room: Some(room), ..Announcement::default() };
        let size = |size| Announcement { size: Some(size), ..room(1) };
        let digest = Announcement { digest: Some((Algorithm::Md5, vec![0; 16])), ..Announcement::default() };
        for (announcement, whole, sent, expected) in [
            (Announcement::default(), 10, 10, Completeness::Unknown),
            (room(10), 10, 10, Completeness::Whole),
            (room(10), 10, 6, Completeness::Unknown),
            (room(4), 10, 4, Completeness::Whole),
            (room(11), 10, 10, Completeness::BelowRoom),
            (room(9), 10, 10, Completeness::Unknown),
            (size(10), 10, 4, Completeness::Whole),
            (size(11), 10, 10, Completeness::Wrong(11)),
            (size(4), 10, 4, Completeness::Wrong(4)),
            (digest, 10, 10, Completeness::Whole),
        ] {
            assert_eq!(announcement.completeness(whole, sent), expected, "{announcement:?}");
        }
    }
}
