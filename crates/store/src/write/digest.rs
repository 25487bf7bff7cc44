//! Digests that a client sent with its bytes, computed again from the received bytes; and digests of files.
//!
//! It does not know their syntax in a field. Invariants: every digest that was sent is checked, and one
//! that does not match stops the commit.

use serde::{Deserialize, Serialize};
use std::io;
use std::ops::ControlFlow;

use md5::Md5;
use plimsoll_io::{File, Fs};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

use crate::error::{Error, Result};
use crate::limits::{DIGEST_CHUNK_BYTES, DIGEST_STEP_BYTES};

/// A digest algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// RFC 1321. It detects accidents, not forgeries.
    Md5,
    /// RFC 3174; as MD5.
    Sha1,
    /// FIPS 180-4.
    Sha256,
    /// FIPS 180-4.
    Sha512,
}

/// The length and digests that a client announced for its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The number of bytes, if it is known in advance.
    pub bytes: Option<u64>,
    /// Their digests.
    pub digests: Vec<(Algorithm, Vec<u8>)>,
}

/// The state of a digest computation.
enum Hasher {
    Md5(Md5),
    Sha1(Sha1),
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

/// Digest computations, each with its expected value.
pub(crate) struct Digests(Vec<(Hasher, Vec<u8>)>);

impl Hasher {
    fn new(algorithm: Algorithm) -> Hasher {
        match algorithm {
            Algorithm::Md5 => Hasher::Md5(Md5::new()),
            Algorithm::Sha1 => Hasher::Sha1(Sha1::new()),
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
            Algorithm::Sha512 => Hasher::Sha512(Box::new(Sha512::new())),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Md5(hasher) => hasher.update(bytes),
            Hasher::Sha1(hasher) => hasher.update(bytes),
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Sha512(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Hasher::Md5(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha1(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha256(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha512(hasher) => hasher.finalize().to_vec(),
        }
    }
}

impl Digests {
    pub(crate) fn new(expected: &[(Algorithm, Vec<u8>)]) -> Digests {
        let begun = |(algorithm, wanted): &(Algorithm, Vec<u8>)| (Hasher::new(*algorithm), wanted.clone());
        Digests(expected.iter().map(begun).collect())
    }

    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.iter_mut().for_each(|(hasher, _)| hasher.update(bytes));
    }

    /// Checks each digest against its expected value. Returns the SHA-256 if it is among them.
    pub(crate) fn check(self) -> Result<Option<[u8; 32]>> {
        let mut sha256 = None;
        for (hasher, wanted) in self.0 {
            let is_sha256 = matches!(hasher, Hasher::Sha256(_));
            let digest = hasher.finish();
            if digest != wanted {
                return Err(Error::Digest);
            }
            if is_sha256 {
                sha256 = digest.try_into().ok();
            }
        }
        Ok(sha256)
    }
}

/// Checks the digests of a whole file. Uses `running`, the SHA-256 computed during the upload, if `whole`
/// has no other digest; else reads the file. Returns the SHA-256 if it is known then.
pub(super) fn check_whole(
    fs: &dyn Fs,
    file: &File,
    running: Option<[u8; 32]>,
    whole: &[(Algorithm, Vec<u8>)],
) -> Result<Option<[u8; 32]>> {
    match (running, whole) {
        (_, []) => return Ok(running),
        (Some(sha256), [(Algorithm::Sha256, wanted)]) => {
            return if wanted[..] == sha256[..] { Ok(running) } else { Err(Error::Digest) };
        }
        _ => {}
    }
    let mut digests = Digests::new(whole);
    of_file(fs, file, |bytes| digests.update(bytes))?;
    digests.check()
}

/// Reads a whole file, and passes its bytes to `update`. It may block.
fn of_file(fs: &dyn Fs, file: &File, mut update: impl FnMut(&[u8])) -> Result<()> {
    let mut chunk = vec![0; DIGEST_CHUNK_BYTES];
    let mut at = 0;
    loop {
        match fs.read_at(file, &mut chunk, at)? {
            0 => return Ok(()),
            read => {
                update(&chunk[..read]);
                at += read as u64;
            }
        }
    }
}

/// A step-by-step computation of a whole file's digest. Other work gets its turn between two steps, and a
/// caller cancels it by not continuing.
pub struct FileDigest {
    hasher: Hasher,
    file: File,
    at: u64,
}

impl FileDigest {
    /// Starts a computation; nothing is read yet.
    pub fn new(algorithm: Algorithm, file: File) -> FileDigest {
        FileDigest { hasher: Hasher::new(algorithm), file, at: 0 }
    }

    /// Reads about [`DIGEST_STEP_BYTES`] more, in a closure that may block. Returns the computation to
    /// continue, or the digest.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn step(mut self, fs: &dyn Fs) -> io::Result<ControlFlow<Vec<u8>, FileDigest>> {
        let mut chunk = vec![0; DIGEST_CHUNK_BYTES];
        let until = self.at.saturating_add(DIGEST_STEP_BYTES);
        while self.at < until {
            match fs.read_at(&self.file, &mut chunk, self.at)? {
                0 => return Ok(ControlFlow::Break(self.hasher.finish())),
                read => {
                    self.hasher.update(&chunk[..read]);
                    self.at += read as u64;
                }
            }
        }
        Ok(ControlFlow::Continue(self))
    }
}
