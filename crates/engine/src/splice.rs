//! Moving bytes between sockets and pipes by splice(2), without a copy through user space.
//!
//! It never blocks and never waits. Invariant: a pipe's count of bytes changes with its contents.

use std::os::fd::{BorrowedFd, OwnedFd};

use plimsoll_io::limits::PIPE_BYTES;
use plimsoll_io::{Filled, Pipe};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvFlags, recv};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use rustix::process::{Resource, getrlimit};

use crate::limits::pipes_of;

#[cfg(test)]
mod tests;

/// Returns how many pipes this process may have.
pub(crate) fn pipes_max() -> usize {
    let open_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(pipes_of(open_files)).unwrap_or(0)
}

/// Creates a pipe with a capacity of [`PIPE_BYTES`], if the kernel permits: the pipes of one user share a
/// limit of memory (pipe(7), `pipe-user-pages-soft`).
pub(crate) fn new_pipe() -> Option<(OwnedFd, OwnedFd)> {
    let (source, sink) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
    fcntl_setpipe_size(&sink, PIPE_BYTES).ok()?;
    Some((source, sink))
}

/// Moves up to `bytes_max` received bytes of the socket `from` into `pipe`. `has_more` says whether the
/// socket may have an end or an error to report.
///
/// # Errors
/// [`Errno::AGAIN`] if nothing has arrived; else the error that broke the connection.
pub(crate) fn fill(
    pipe: &Pipe,
    from: BorrowedFd<'_>,
    bytes_max: u64,
    has_more: bool,
) -> Result<Filled, Errno> {
    let is_empty = pipe.bytes() == 0;
    let room = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(PIPE_BYTES);
    let splice = || splice(from, None, pipe.sink(), None, room, SpliceFlags::NONBLOCK);
    let mut moved = splice();
    // A full pipe and an empty socket give the same error. Edge-triggered epoll reports bytes that were
    // there before, and were not taken, only once.
    if !is_empty && moved == Err(Errno::AGAIN) && (has_more || ioctl_fionread(from)? > 0) {
        moved = splice();
        if moved == Err(Errno::AGAIN) {
            return Ok(Filled::Full);
        }
    }
    // Nor does the kernel move anything beyond an urgent byte. Splice then reports an empty socket or,
    // after the peer's end, the end.
    let is_nothing = |moved| moved == Ok(0) || moved == Err(Errno::AGAIN);
    if is_nothing(moved) {
        match has_bytes(from) {
            Ok(false) => {}
            Ok(true) => {
                // The bytes may have arrived since.
                moved = splice();
                if is_nothing(moved) {
                    return Ok(if is_empty { Filled::Refused } else { Filled::Full });
                }
            }
            // The kernel reports an error once, and then an end: so this one must be kept.
            Err(error) => moved = Err(error),
        }
    }
    Ok(match moved? as u64 {
        0 => Filled::End,
        bytes => {
            pipe.filled(bytes);
            Filled::Bytes(bytes)
        }
    })
}

/// Returns whether a receive would find bytes now, or the pending error.
fn has_bytes(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    match recv(fd, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, bytes)) => Ok(bytes > 0),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves the bytes of `pipe` to the socket `to`, as far as it has room, and returns how many. `more_follows`
/// says whether others are sent at once. A short result does not mean that the socket's buffer is full: a
/// signal may have interrupted the call.
///
/// # Errors
/// [`Errno::AGAIN`] if the socket has no room; else the error that broke the connection.
pub(crate) fn empty(pipe: &Pipe, to: BorrowedFd<'_>, more_follows: bool) -> Result<u64, Errno> {
    let mut flags = SpliceFlags::NONBLOCK;
    flags.set(SpliceFlags::MORE, more_follows);
    let count = usize::try_from(pipe.bytes()).unwrap_or(usize::MAX);
    // The outbox counts the bytes when it advances over them.
    Ok(splice(pipe.source(), None, to, None, count, flags)? as u64)
}
