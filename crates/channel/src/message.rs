//! Messages on the Unix socket of a channel: the two of the handshake, and passed descriptors.
//!
//! It does not wait: each call takes or sends as much as there is. Invariants: a message of the peer has at
//! most the number of descriptors that it may have, and all of them are closed if it is refused. No call
//! blocks, whatever the flags of the socket are.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::Errno;
use rustix::net::UCred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg, sockopt::socket_peercred,
};
use rustix::process::{Pid, geteuid};

use crate::limits::{DOORBELL_CHANNELS, MESSAGE_FILES_MAX};
use crate::region::invalid;

/// The first word of each message of the handshake.
const MAGIC: [u8; 8] = *b"plimsoll";
/// The version of the rings, their frames and these messages.
pub const VERSION: u32 = 2;
/// Bytes of the first message, from the connecting side.
pub const HELLO_BYTES: usize = 16;
/// Bytes of the second message, from the accepting side.
pub const OFFER_BYTES: usize = 24;

/// Returns the first message, with the channel's number at the doorbell that is passed with it.
pub fn hello(number: u32) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Returns the second message, with the channel's number at the doorbell that is passed with it, and the size
/// of the shared memory; 0 refuses the version of the peer.
pub fn offer(number: u32, region_bytes: u64) -> [u8; OFFER_BYTES] {
    let mut bytes = [0; OFFER_BYTES];
    bytes[..HELLO_BYTES].copy_from_slice(&hello(number));
    bytes[HELLO_BYTES..].copy_from_slice(&region_bytes.to_le_bytes());
    bytes
}

/// Returns the version of the peer that sent this start of a message.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if it is no message of a channel.
pub fn version_of(message: &[u8]) -> io::Result<u32> {
    let version = message.get(8..12).and_then(|version| version.try_into().ok());
    match version.map(u32::from_le_bytes) {
        Some(version) if message.starts_with(&MAGIC) => Ok(version),
        _ => Err(invalid("the peer does not speak the channel's protocol")),
    }
}

/// Returns the channel's number at the peer's doorbell, from the start of a message.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if a doorbell has no such channel.
pub fn number_of(message: &[u8]) -> io::Result<usize> {
    let number = message.get(12..16).and_then(|number| number.try_into().ok()).map(u32::from_le_bytes);
    let number = number.and_then(|number| usize::try_from(number).ok());
    number
        .filter(|number| *number < DOORBELL_CHANNELS)
        .ok_or_else(|| invalid("a doorbell has no such channel"))
}

/// Returns the size of the shared memory in the second message.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if it is no such message, or of another version.
pub fn region_bytes_of(message: &[u8]) -> io::Result<u64> {
    if version_of(message)? != VERSION {
        return Err(invalid("the peer speaks another version of the channel's protocol"));
    }
    let bytes = message.get(HELLO_BYTES..OFFER_BYTES).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u64::from_le_bytes).ok_or_else(|| invalid("the peer's message is too short"))
}

/// Checks that the peer's process runs under this process's user, or under root. Returns the process.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if it does not.
pub(crate) fn check_peer(socket: impl AsFd) -> io::Result<Pid> {
    let UCred { uid: user, pid, .. } = socket_peercred(socket)?;
    if user == geteuid() || user.is_root() {
        return Ok(pid);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "the peer's process runs under another user"))
}

/// Sends a message with descriptors. The socket's buffer of an orderly peer has room for it.
///
/// # Errors
/// The error of sendmsg(2), or [`io::ErrorKind::WriteZero`] if the buffer has no room.
pub fn send(socket: impl AsFd, message: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MESSAGE_FILES_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = loop {
        match sendmsg(&socket, &[IoSlice::new(message)], &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            sent => break sent?,
        }
    };
    if sent == message.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives into `into`, and appends the descriptors that arrive to `files`. Returns the number of bytes, 0
/// at the peer's end, or `None` if nothing has arrived.
pub(crate) fn receive(
    socket: impl AsFd,
    into: &mut [u8],
    files: &mut Vec<OwnedFd>,
) -> io::Result<Option<usize>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MESSAGE_FILES_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = match recvmsg(socket, &mut [IoSliceMut::new(into)], &mut ancillary, flags) {
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        received => received?,
    };
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(arrived) = message {
            files.extend(arrived);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) || files.len() > MESSAGE_FILES_MAX {
        files.clear();
        return Err(invalid("the peer has passed too many descriptors"));
    }
    Ok(Some(received.bytes))
}

/// Returns whether a descriptor permits reading a regular file, and nothing else.
pub(crate) fn is_read_only_file(fd: impl AsFd) -> bool {
    let flags = fcntl_getfl(&fd);
    let is_read_only =
        flags.is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDONLY && !flags.contains(OFlags::PATH));
    is_read_only
        && fstat(&fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}
