//! Reads that bypass the page cache (O_DIRECT), where the file system supports it.
//!
//! Invariants: the caller gets the bytes in any case. Afterwards, the descriptor's flags are as they were
//! before.

use std::io;

use plimsoll_io::File;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::ReadWriteFlags;

use super::reading;
use crate::limits::DIRECT_BLOCK_BYTES;

pub(super) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let fd = file.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    let flags = fcntl_getfl(fd)?;
    if fcntl_setfl(fd, flags | OFlags::DIRECT).is_ok() {
        let read = read_blocks(file, into, offset);
        fcntl_setfl(fd, flags)?;
        if let Some(read) = read {
            return Ok(read);
        }
    }
    reading::read_at(file, into, offset, ReadWriteFlags::empty())
}

/// Reads whole blocks into aligned memory; `None` if O_DIRECT does not work here.
fn read_blocks(file: &File, into: &mut [u8], offset: u64) -> Option<usize> {
    let room = into.len().next_multiple_of(DIRECT_BLOCK_BYTES);
    let mut block = vec![0; room + DIRECT_BLOCK_BYTES];
    let skipped = block.as_ptr().align_offset(DIRECT_BLOCK_BYTES);
    let aligned = block.get_mut(skipped..)?.get_mut(..room)?;
    let read = reading::read_at(file, aligned, offset, ReadWriteFlags::empty()).ok()?.min(into.len());
    into[..read].copy_from_slice(&aligned[..read]);
    Some(read)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plimsoll_io::Fs as _;

    use super::*;
    use crate::SystemFs;

    /// In the source folder, not in a temporary one: tmpfs has no blocks.
    #[test]
    fn the_bytes_are_the_same_and_the_descriptor_is_as_it_was() {
        let folder = tempfile::tempdir_in(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        for len in [0, 1, 4_095, 4_096, 10_000] {
            let bytes: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
            std::fs::write(folder.path().join("file"), &bytes).unwrap();
            let file = SystemFs.open_beneath(&SystemFs.open_root(folder.path()).unwrap(), b"file").unwrap();
            let before = fcntl_getfl(file.descriptor().unwrap()).unwrap();
            let mut into = vec![0; len];
            assert_eq!(read_at(&file, &mut into, 0).unwrap(), len);
            assert!(into == bytes);
            assert_eq!(fcntl_getfl(file.descriptor().unwrap()).unwrap(), before);
            // At an offset that is not the beginning of a block.
            if len > 10 {
                assert_eq!(read_at(&file, &mut into[..5], 3).unwrap(), 5);
                assert_eq!(into[..5], bytes[3..8]);
            }
        }
    }
}
