//! Selects the bodies that are verified, and holds their references.
//!
//! It receives nothing. Invariants: a file's reference is fixed before the measurement, or by the first
//! verified body; once fixed, it never changes.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use crate::failure::Failure;
use crate::files::{Files, mixed};
use crate::workload::Checked;

/// The digest and the length of a file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    digest: blake3::Hash,
    bytes: u64,
}

/// Computes the fingerprint of a body, piece by piece.
pub(crate) struct Fingerprinting {
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Fingerprinting {
    pub(crate) fn new() -> Box<Fingerprinting> {
        Box::new(Fingerprinting { hasher: blake3::Hasher::new(), bytes: 0 })
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(crate) fn end(&self) -> Fingerprint {
        Fingerprint { digest: self.hasher.finalize(), bytes: self.bytes }
    }
}

/// Collects a body's bytes: their fingerprint, the bytes themselves, or both.
#[derive(Default)]
pub(crate) struct Taking {
    pub(crate) fingerprinting: Option<Box<Fingerprinting>>,
    pub(crate) bytes: Option<Vec<u8>>,
}

impl Taking {
    /// Collects the fingerprint only.
    pub(crate) fn to_verify() -> Taking {
        Taking { fingerprinting: Some(Fingerprinting::new()), bytes: None }
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if let Some(fingerprinting) = &mut self.fingerprinting {
            fingerprinting.take(bytes);
        }
        if let Some(kept) = &mut self.bytes {
            kept.extend_from_slice(bytes);
        }
    }
}

impl Fingerprint {
    /// Returns the fingerprint of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Fingerprint {
        Fingerprint { digest: blake3::hash(bytes), bytes: bytes.len() as u64 }
    }

    /// Returns the length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The reference fingerprints of a workload's files, as far as they are known.
pub(crate) struct References(Vec<OnceLock<Fingerprint>>);

impl References {
    /// Creates references for this many files, all unknown.
    pub(crate) fn unknown(files: u64) -> References {
        References((0..files).map(|_| OnceLock::new()).collect())
    }

    /// Reads the references from a folder. Each file's name there is the last segment of its target.
    ///
    /// # Errors
    /// An error if one of the files cannot be read.
    pub(crate) fn of_folder(folder: &Path, files: &Files, pattern: &str) -> io::Result<References> {
        let references = References::unknown(files.count());
        for (index, reference) in (0..).zip(&references.0) {
            let target = files.target(pattern, index);
            let path = folder.join(target.rsplit('/').next().unwrap_or_default());
            let read = std::fs::read(&path);
            let bytes =
                read.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            let _ = reference.set(Fingerprint::of(&bytes));
        }
        Ok(references)
    }

    /// Compares a body with its reference. The first body of a file becomes its reference.
    pub(crate) fn compare(&self, file: u64, found: &Fingerprint) -> Result<(), Failure> {
        match self.reference(file) {
            Some(reference) if reference.get_or_init(|| found.clone()) == found => Ok(()),
            _ => Err(Failure::WrongBody),
        }
    }

    /// Returns whether a body of this length can be correct.
    pub(crate) fn may_be(&self, file: u64, bytes: u64) -> bool {
        self.reference(file).and_then(OnceLock::get).is_none_or(|known| known.bytes == bytes)
    }

    fn reference(&self, file: u64) -> Option<&OnceLock<Fingerprint>> {
        self.0.get(usize::try_from(file).unwrap_or(usize::MAX))
    }
}

impl Checked {
    /// Returns whether the body of a request must be verified. The choice is pseudo-random, so that it
    /// prefers no file.
    pub(crate) fn is_due(self, seed: u64, user: u64, request: u64) -> bool {
        match self {
            Checked::None => false,
            Checked::OneIn(many) => mixed(!seed, user, request).is_multiple_of(many.max(1)),
            Checked::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_body_says_what_later_ones_should_be() {
        let references = References::unknown(2);
        let (right, wrong) = (Fingerprint::of(b"right"), Fingerprint::of(b"wrong"));
        assert!(references.may_be(1, 99));
        references.compare(1, &right).unwrap();
        references.compare(1, &right).unwrap();
        assert!(matches!(references.compare(1, &wrong), Err(Failure::WrongBody)));
        assert!(references.may_be(1, 5) && !references.may_be(1, 6));
    }

    #[test]
    fn a_folder_says_what_its_files_should_be() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("7.txt"), "seven").unwrap();
        let files: Files = "7..8".parse().unwrap();
        let references = References::of_folder(folder.path(), &files, "/some/{}.txt").unwrap();
        assert!(references.compare(0, &Fingerprint::of(b"seven")).is_ok());
        assert!(references.compare(0, &Fingerprint::of(b"eight")).is_err());
        let missing = References::of_folder(folder.path(), &"7..9".parse().unwrap(), "/{}.txt");
        assert!(missing.err().unwrap().to_string().contains("8.txt"));
    }

    #[test]
    fn one_in_so_many_is_verified_spread_over_users_and_requests() {
        let due = |request| (0..64).filter(|user| Checked::OneIn(64).is_due(1, *user, request)).count();
        let all: usize = (0..1000).map(due).sum();
        assert!((800..1200).contains(&all), "{all} of 64,000");
        assert!((0..1000).all(|request| due(request) < 12), "they come together");
        assert!(Checked::All.is_due(1, 2, 3) && !Checked::None.is_due(1, 2, 3));
    }
}
