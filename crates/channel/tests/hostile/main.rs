//! Peers that do not follow the protocol: an error for the other side, and nothing worse.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod acceptors;
mod connectors;
mod wakeups;

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use plimsoll_channel::limits::DOORBELL_BYTES;
use plimsoll_engine::EngineKind;
use rustix::cmsg_space;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Longer than anything in these tests takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a ring: the smallest.
const RING_BYTES: usize = 128;
/// Words of the ring.
const CAPACITY: usize = RING_BYTES / 8;
/// Words of the header of a region.
const HEADER: usize = 128;
/// Words of the header of one ring.
const RING_HEADER: usize = 32;
/// The first word of a doorbell's marks.
const MARKS: usize = 8;
/// The fields of a ring's header.
const TAIL: usize = 0;
const HEAD: usize = 8;

/// Heads of frames.
const BYTES: u64 = 1;
const FILE: u64 = 2;
const END: u64 = 3;

/// Returns the engines that run on this kernel in one process.
fn kinds() -> Vec<EngineKind> {
    EngineKind::ALL.into_iter().filter(|kind| !kind.forks() && kind.check().is_ok()).collect()
}

/// A side of a channel that writes into the shared memory what a test says.
struct RawSide {
    socket: UnixStream,
    memory: File,
    /// The doorbell of the other side.
    page: File,
    /// Wakes the other side.
    bell: File,
    /// The number of this channel at the doorbell.
    number: usize,
    /// The number of the ring that this side writes: 0 for the connecting side.
    writes: usize,
}

impl RawSide {
    fn word(&self, word: usize) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, word as u64 * 8).unwrap();
        u64::from_ne_bytes(bytes)
    }

    fn set(&self, word: usize, value: u64) {
        self.memory.write_all_at(&value.to_ne_bytes(), word as u64 * 8).unwrap();
    }

    /// Sets a word of the ring that this side writes.
    fn set_data(&self, word: usize, value: u64) {
        self.set(HEADER + self.writes * CAPACITY + word % CAPACITY, value);
    }

    fn set_tail(&self, tail: u64) {
        self.set(self.writes * RING_HEADER + TAIL, tail);
    }

    /// Sets this side's position in the ring that it reads.
    fn set_head(&self, head: u64) {
        self.set((1 - self.writes) * RING_HEADER + HEAD, head);
    }

    fn tail_of_peer(&self) -> u64 {
        self.word((1 - self.writes) * RING_HEADER + TAIL)
    }

    /// Returns the mark of this channel: the word of the doorbell and its bit.
    fn mark(&self) -> (u64, u64) {
        ((MARKS + self.number / 64) as u64 * 8, 1 << (self.number % 64))
    }

    /// Returns whether the other side has yet to look at this channel.
    fn is_marked(&self) -> bool {
        let ((at, bit), mut marks) = (self.mark(), [0; 8]);
        self.page.read_exact_at(&mut marks, at).unwrap();
        u64::from_ne_bytes(marks) & bit != 0
    }

    /// Marks this channel and wakes the other side. The other sides of a test are not marked by anything else
    /// at the same time, and a mark that is set again is no fault.
    fn ring(&self) {
        let ((at, bit), mut marks) = (self.mark(), [0; 8]);
        self.page.read_exact_at(&mut marks, at).unwrap();
        self.page.write_all_at(&(u64::from_ne_bytes(marks) | bit).to_ne_bytes(), at).unwrap();
        rustix::io::write(&self.bell, &1u64.to_ne_bytes()).unwrap();
    }

    /// Publishes words from the start of the ring on, and wakes the other side.
    fn publish(&self, words: &[u64]) {
        words.iter().enumerate().for_each(|(at, word)| self.set_data(at, *word));
        self.set_tail(words.len() as u64);
        self.ring();
    }

    /// Waits until the other side has closed the channel.
    fn expect_end(&self) {
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let ended = receive(&self.socket);
        assert!(matches!(ended, Ok((ref bytes, _)) if bytes.is_empty()), "{ended:?}");
    }
}

/// Returns a doorbell, as a correct side passes it: its page and its eventfd.
fn doorbell() -> [OwnedFd; 2] {
    let page = memfd_create("doorbell", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&page, DOORBELL_BYTES as u64).unwrap();
    fcntl_add_seals(&page, SealFlags::from_bits_retain(7)).unwrap();
    [page, eventfd(0, EventfdFlags::NONBLOCK).unwrap()]
}

fn send(socket: &UnixStream, message: &[u8], files: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(8))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(files)));
    }
    // The other side may have closed the channel already, which the test finds elsewhere.
    let _ = sendmsg(socket, &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL);
}

fn receive(socket: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(8))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let (mut bytes, flags) = (vec![0; 64], RecvFlags::CMSG_CLOEXEC);
    // A process that is stopped and continued interrupts the call.
    let received = loop {
        match recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    bytes.truncate(received.bytes);
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(arrived) = message {
            files.extend(arrived);
        }
    }
    Ok((bytes, files))
}
