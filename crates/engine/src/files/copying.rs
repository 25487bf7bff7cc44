//! Copies of files or parts of them: by copy_file_range(2), or else through user space.
//!
//! It does not sync: the copy is as durable as any other write. Invariant: no more is copied than the file's
//! size when the copy began, so that a growing file cannot occupy a thread for ever.

use std::io;

use plimsoll_io::File;
use rustix::fs::copy_file_range;
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use super::reading::{read_at, stat};
use super::writing::{descriptor, write_at};
use crate::limits::COPY_CHUNK_BYTES;

/// Copies at most `bytes_max` bytes from `offset` in `from` to the same offset in `to`; returns how many.
pub(super) fn copy(from: &File, to: &File, offset: u64, bytes_max: u64) -> io::Result<u64> {
    let (source, target) = (descriptor(from)?, descriptor(to)?);
    let end = stat(from)?.size.min(offset.saturating_add(bytes_max));
    let mut done = offset;
    while done < end {
        let (mut at, mut into) = (done, done);
        let most = usize::try_from(end - done).unwrap_or(usize::MAX);
        match retry_on_intr(|| copy_file_range(source, Some(&mut at), target, Some(&mut into), most)) {
            Ok(0) => break,
            Ok(count) => done += count as u64,
            // Two file systems, or one that does not support it.
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                done = copy_by_hand(from, to, done, end)?;
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done.saturating_sub(offset))
}

/// Copies the bytes from `done` to `size` through user space; returns the offset after the last copied byte.
pub(super) fn copy_by_hand(from: &File, to: &File, mut done: u64, size: u64) -> io::Result<u64> {
    let mut chunk = vec![0; COPY_CHUNK_BYTES];
    while done < size {
        let most = usize::try_from(size - done).map_or(chunk.len(), |left| left.min(chunk.len()));
        let count = read_at(from, &mut chunk[..most], done, ReadWriteFlags::empty())?;
        if count == 0 {
            break;
        }
        let mut written = 0;
        while written < count {
            let more = write_at(to, &chunk[written..count], done + written as u64)?;
            if more == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            written += more;
        }
        done += count as u64;
    }
    Ok(done)
}
