//! Checksums of the blocks of a stored body, and which of them were verified.
//!
//! It opens no file. A checksum is the start of a BLAKE3 hash: it finds changes by a disk, a file system or
//! another program, not by an attacker, who could replace it too. Invariant: a block counts as verified only
//! while the file has the metadata with which it was.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_io::{File, Fs, Stat};

use crate::cache::limits::CHECKED_BLOCK_BYTES;

/// Length of a checksum in bytes.
pub(super) const CHECKSUM_BYTES: u64 = size_of::<Checksum>() as u64;

type Checksum = [u8; 8];

/// The checksums of a body that is being written.
#[derive(Debug, Default)]
pub(super) struct ChecksumWriter {
    checksums: Vec<u8>,
    /// The start of a block.
    block: blake3::Hasher,
    block_bytes: u64,
}

/// Returns the number of blocks of a body of this length.
pub(super) fn blocks_of(content_bytes: u64) -> u64 {
    content_bytes.div_ceil(CHECKED_BLOCK_BYTES)
}

/// Returns the numbers of the blocks that a range of a body touches.
fn blocks_with(range: &Range<u64>) -> Range<u64> {
    range.start / CHECKED_BLOCK_BYTES..blocks_of(range.end)
}

fn checksum_of(hasher: &blake3::Hasher) -> Checksum {
    let mut checksum = Checksum::default();
    hasher.finalize_xof().fill(&mut checksum);
    checksum
}

impl ChecksumWriter {
    /// Adds bytes of the body.
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let left = usize::try_from(CHECKED_BLOCK_BYTES - self.block_bytes).unwrap_or(usize::MAX);
            let (block, rest) = bytes.split_at(left.min(bytes.len()));
            self.block.update(block);
            self.block_bytes += block.len() as u64;
            if self.block_bytes == CHECKED_BLOCK_BYTES {
                self.end_block();
            }
            bytes = rest;
        }
    }

    /// Returns the checksums, once all of the body was added.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.block_bytes > 0 {
            self.end_block();
        }
        self.checksums
    }

    fn end_block(&mut self) {
        self.checksums.extend_from_slice(&checksum_of(&self.block));
        self.block.reset();
        self.block_bytes = 0;
    }
}

/// The blocks of a body that were verified since this process has started.
#[derive(Debug, Default)]
pub(super) struct Verified(Mutex<Blocks>);

#[derive(Debug, Default)]
struct Blocks {
    /// The time of the file's last change when they were verified.
    changed: Duration,
    /// A bit for each block.
    bits: Box<[u64]>,
}

impl Verified {
    /// Whether all blocks with a range are verified.
    pub(super) fn contains(&self, range: &Range<u64>) -> bool {
        let blocks = self.lock();
        blocks_with(range).all(|block| blocks.contains(block))
    }

    /// Notes the metadata of the file. If it has changed since, no block is verified any more.
    pub(super) fn note(&self, stat: &Stat) {
        let mut blocks = self.lock();
        if blocks.changed != stat.changed {
            *blocks = Blocks { changed: stat.changed, bits: Box::default() };
        }
    }

    /// Reads the blocks with a range of the body, and compares them with their checksums, which are behind
    /// the content.
    ///
    /// # Errors
    /// The operating system's error; [`io::ErrorKind::InvalidData`] if a block has other bytes;
    /// [`io::ErrorKind::UnexpectedEof`] if the file ends before its end.
    pub(super) fn verify(
        &self,
        fs: &dyn Fs,
        file: &File,
        content_bytes: u64,
        range: &Range<u64>,
    ) -> io::Result<()> {
        let changed = fs.stat(file)?.changed;
        let numbers = blocks_with(range);
        let mut checksums =
            vec![0; usize::try_from(CHECKSUM_BYTES * (numbers.end - numbers.start)).unwrap_or(0)];
        read_all(fs, file, &mut checksums, content_bytes + CHECKSUM_BYTES * numbers.start)?;
        let mut block = vec![0; usize::try_from(CHECKED_BLOCK_BYTES).unwrap_or(0)];
        for (number, expected) in numbers.clone().zip(checksums.chunks(size_of::<Checksum>())) {
            let start = number * CHECKED_BLOCK_BYTES;
            let bytes = CHECKED_BLOCK_BYTES.min(content_bytes.saturating_sub(start));
            let block = block.get_mut(..usize::try_from(bytes).unwrap_or(0)).unwrap_or_default();
            read_all(fs, file, block, start)?;
            if checksum_of(blake3::Hasher::new().update(block)) != *expected {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a block has not its checksum"));
            }
        }
        self.lock().add(numbers, blocks_of(content_bytes), changed);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blocks {
    fn contains(&self, block: u64) -> bool {
        let word = usize::try_from(block / 64).ok().and_then(|at| self.bits.get(at));
        word.is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    fn add(&mut self, numbers: Range<u64>, count: u64, changed: Duration) {
        if self.changed != changed {
            return;
        }
        if self.bits.is_empty() {
            self.bits = vec![0; usize::try_from(count.div_ceil(64)).unwrap_or(0)].into();
        }
        for block in numbers {
            if let Some(word) = usize::try_from(block / 64).ok().and_then(|at| self.bits.get_mut(at)) {
                *word |= 1 << (block % 64);
            }
        }
    }
}

/// Fills `into`.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if the file ends before.
pub(super) fn read_all(fs: &dyn Fs, file: &File, mut into: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !into.is_empty() {
        let count = fs.read_at(file, into, offset)?;
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it was"));
        }
        offset += count as u64;
        into = into.get_mut(count..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_io::sim::{Faults, Sim, SimDisk};

    use super::*;

    const BLOCK: usize = 64 << 10;
    const LENGTH: usize = 2 * BLOCK + 5;

    fn content() -> Vec<u8> {
        (0..LENGTH).map(|at| u8::try_from(at % 251).unwrap()).collect()
    }

    /// Returns the checksums of the content, added in parts of `step` bytes.
    fn checksums(step: usize) -> Vec<u8> {
        let mut writer = ChecksumWriter::default();
        content().chunks(step).for_each(|part| writer.add(part));
        writer.finish()
    }

    /// Returns a disk with the content and its checksums as a file.
    fn written() -> (Arc<SimDisk>, File) {
        let sim = Sim::new(0, Faults::none());
        let disk = Arc::clone(sim.host("one").disk());
        disk.write("/file", [content(), checksums(1000)].concat()).unwrap();
        let root = disk.open_root("/".as_ref()).unwrap();
        let file = disk.open_beneath(&root, b"file").unwrap();
        (disk, file)
    }

    fn verify(verified: &Verified, disk: &SimDisk, file: &File, range: &Range<u64>) -> io::Result<()> {
        verified.note(&disk.stat(file).unwrap());
        verified.verify(disk, file, LENGTH as u64, range)
    }

    #[test]
    fn the_checksums_do_not_depend_on_the_parts_in_which_a_body_arrives() {
        let once = checksums(LENGTH);
        assert_eq!(once.len(), 3 * usize::try_from(CHECKSUM_BYTES).unwrap());
        for step in [1, 1000, BLOCK - 1, BLOCK, BLOCK + 1] {
            assert_eq!(checksums(step), once, "{step}");
        }
        assert!(ChecksumWriter::default().finish().is_empty());
    }

    #[test]
    fn the_blocks_with_a_range_are_verified_and_no_others() {
        let (disk, file) = written();
        let (verified, block) = (Verified::default(), BLOCK as u64);
        assert_eq!(block, CHECKED_BLOCK_BYTES);
        assert!(!verified.contains(&(0..1)));
        verify(&verified, &disk, &file, &(block + 7..block + 8)).unwrap();
        assert!(verified.contains(&(block..2 * block)));
        assert!(!verified.contains(&(block - 1..block)) && !verified.contains(&(block..2 * block + 1)));
        verify(&verified, &disk, &file, &(0..LENGTH as u64)).unwrap();
        assert!(verified.contains(&(0..LENGTH as u64)));
    }

    #[test]
    fn a_changed_byte_is_found_in_its_block_only_and_also_after_it_was_verified() {
        let (disk, file) = written();
        let (verified, block) = (Verified::default(), CHECKED_BLOCK_BYTES);
        verify(&verified, &disk, &file, &(0..LENGTH as u64)).unwrap();
        let mut bytes = disk.read("/file").unwrap();
        bytes[BLOCK + 3] ^= 1;
        disk.write("/file", bytes).unwrap();
        verified.note(&disk.stat(&file).unwrap());
        assert!(!verified.contains(&(0..1)), "the file has changed");
        verify(&verified, &disk, &file, &(0..block)).unwrap();
        let error = verify(&verified, &disk, &file, &(block..block + 1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        disk.truncate("/file", 100).unwrap();
        let error = verify(&verified, &disk, &file, &(0..1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
