//! The state of a connection in the kernel: whether the peer has ended it, and its round-trip time.
//!
//! It waits for nothing and receives nothing. Invariant: an error of the connection is only looked at, so
//! that the next call on the socket still reports it.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::time::Duration;

use plimsoll_io::EndProbe;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Returns a probe for the peer's end. It has a descriptor of its own; `None` if the process has none left.
pub(crate) fn end_probe(fd: BorrowedFd<'_>) -> Option<EndProbe> {
    let fd = fd.try_clone_to_owned().ok()?;
    Some(EndProbe::new(move || has_ended(fd.as_fd())))
}

/// Whether the peer has closed its side, or the connection is broken. Unlike a receive, poll(2) reports that
/// also while unread bytes are before the end.
fn has_ended(fd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::RDHUP)];
    let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|_| polled[0].revents().intersects(ended))
}

/// Returns the smoothed round-trip time of a TCP connection (tcp(7), `TCP_INFO`).
pub(crate) fn round_trip(fd: BorrowedFd<'_>) -> Option<Duration> {
    // SAFETY: the structure is of integers, for which zero is a valid value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut bytes = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    let value = (&raw mut info).cast();
    // SAFETY: for this option, the kernel writes at most `bytes` bytes to the structure, which has as many.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, value, &raw mut bytes) };
    (result == 0 && info.tcpi_rtt > 0).then(|| Duration::from_micros(info.tcpi_rtt.into()))
}
