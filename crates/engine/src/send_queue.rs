//! The bytes in a socket's send buffer in the kernel.
//!
//! It waits for nothing. Invariant: an error of the connection is only looked at, so that the next call on
//! the socket still reports it.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Returns the number of bytes that the kernel has taken and the peer has not acknowledged (tcp(7),
/// `SIOCOUTQ`). An end that was sent and not acknowledged counts as one.
///
/// # Errors
/// [`io::ErrorKind::ConnectionReset`] if the connection broke before all were acknowledged; the operating
/// system's error.
pub(crate) fn unacknowledged(fd: impl AsFd) -> io::Result<u64> {
    let fd = fd.as_fd();
    let mut queued: libc::c_int = 0;
    // SAFETY: for this request, the kernel writes an int to the address, which is valid for the call.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut queued) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    // A reset leaves the number as it was.
    if queued > 0 && poll(&mut polled, Some(&Timespec::default()))? > 0 {
        let has_failed = polled[0].revents().contains(PollFlags::ERR);
        if has_failed {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
    }
    Ok(u64::try_from(queued).unwrap_or(0))
}
