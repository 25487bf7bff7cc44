//! One direction of a connection: the sender's outbox, the kernels' buffers, the bytes that have
//! arrived.
//!
//! It draws no random numbers and schedules nothing ([`super::connection`] does): it only moves as many
//! bytes as the caller orders. Invariants: bytes keep their order, and no more than the window is
//! between the two ends.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use super::faults::WINDOW_OPENS_EVERY;
use super::limits::WINDOW_BYTES_MAX;
use crate::file::Fs;
use crate::limits::GATHER_SEGMENTS_MAX;
use crate::outbox::{Front, Outbox};

/// The progress of the end of sending.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The sender has not finished, or not everything has been taken.
    Open,
    /// The sender's kernel has the end, behind all bytes.
    OnTheWire,
    /// The end has arrived. A receive returns it after the last byte.
    Arrived,
}

pub(super) struct Pipe {
    /// The segments in the sender's process.
    pub(super) outbox: Outbox,
    pub(super) finished: bool,
    /// The bytes that the sender's kernel has taken and the receiver's has not received yet.
    wire: VecDeque<u8>,
    /// The bytes in the receiver's kernel until the receiver reads them.
    arrived: VecDeque<u8>,
    pub(super) end: End,
    window: usize,
    /// The total number of bytes that have arrived.
    carried: u64,
    /// Whether bytes that the sender's kernel had taken were lost.
    has_lost: bool,
    /// Whether an event is scheduled in which the kernel takes bytes.
    pub(super) taking: bool,
    /// Whether an event is scheduled in which bytes arrive.
    pub(super) arriving: bool,
    pub(super) receiver: Option<Waker>,
    pub(super) drainer: Option<(u64, Waker)>,
}

impl Pipe {
    pub(super) fn new(window: usize) -> Pipe {
        Pipe {
            outbox: Outbox::default(),
            finished: false,
            wire: VecDeque::new(),
            arrived: VecDeque::new(),
            end: End::Open,
            window,
            carried: 0,
            has_lost: false,
            taking: false,
            arriving: false,
            receiver: None,
            drainer: None,
        }
    }

    /// Returns how many more bytes fit into the window.
    pub(super) fn room(&self) -> usize {
        let opened = usize::try_from(self.carried / WINDOW_OPENS_EVERY).unwrap_or(WINDOW_BYTES_MAX);
        self.window.max(opened).min(WINDOW_BYTES_MAX).saturating_sub(self.wire.len() + self.arrived.len())
    }

    /// Returns how many unsent bytes the kernel could take now.
    pub(super) fn takeable(&self) -> usize {
        self.room().min(usize::try_from(self.outbox.unsent()).unwrap_or(usize::MAX))
    }

    /// Whether the sender has finished, and the kernel has taken all bytes but not the end.
    pub(super) fn end_is_due(&self) -> bool {
        self.finished && self.end == End::Open && self.outbox.unsent() == 0
    }

    /// Moves up to `count` bytes from the outbox to the sender's kernel. Returns the number of bytes
    /// moved.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if a file is shorter than its range.
    pub(super) fn take(&mut self, count: usize, disk: &dyn Fs) -> io::Result<usize> {
        let mut taken = 0;
        while taken < count {
            let step = self.take_front(count - taken, disk)?;
            if step == 0 {
                break;
            }
            self.outbox.advance(step as u64);
            taken += step;
        }
        Ok(taken)
    }

    fn take_front(&mut self, most: usize, disk: &dyn Fs) -> io::Result<usize> {
        match self.outbox.front() {
            None => Ok(0),
            Some(Front::Bytes) => {
                let mut slices = [&[][..]; GATHER_SEGMENTS_MAX];
                let gathered = self.outbox.gather(&mut slices);
                let before = self.wire.len();
                for slice in &slices[..gathered] {
                    let room = most - (self.wire.len() - before);
                    self.wire.extend(&slice[..room.min(slice.len())]);
                }
                Ok(self.wire.len() - before)
            }
            Some(Front::Piped(_)) => Err(io::ErrorKind::Unsupported.into()),
            Some(Front::File(file, range)) => {
                let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                let mut bytes = vec![0; most.min(len)];
                let count = disk.read_at(file, &mut bytes, range.start)?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.wire.extend(&bytes[..count]);
                Ok(count)
            }
        }
    }

    pub(super) fn on_the_wire(&self) -> usize {
        self.wire.len()
    }

    /// Returns the number of pushed bytes that have not arrived; `None` if some never will.
    pub(super) fn not_arrived(&self) -> Option<u64> {
        (!self.has_lost).then(|| self.outbox.unsent() + self.wire.len() as u64)
    }

    pub(super) fn arrived(&self) -> usize {
        self.arrived.len()
    }

    pub(super) fn carried(&self) -> u64 {
        self.carried
    }

    /// Moves `count` bytes to the receiver's kernel.
    pub(super) fn arrive(&mut self, count: usize) {
        take_from(&mut self.wire, count, |bytes| self.arrived.extend(bytes));
        self.carried += count as u64;
    }

    /// Moves `count` bytes to the receiver.
    pub(super) fn receive(&mut self, count: usize, into: &mut Vec<u8>) {
        take_from(&mut self.arrived, count, |bytes| into.extend_from_slice(bytes));
    }

    /// Drops the bytes on the wire, and the end if it is there.
    pub(super) fn lose_wire(&mut self) {
        self.has_lost |= !self.wire.is_empty();
        self.wire.clear();
        if self.end == End::OnTheWire {
            self.end = End::Open;
        }
    }

    /// Drops the bytes that have arrived and were not read.
    pub(super) fn lose_arrived(&mut self) {
        self.arrived.clear();
        self.end = End::Open;
    }

    pub(super) fn wake_receiver(&mut self) {
        if let Some(waker) = self.receiver.take() {
            waker.wake();
        }
    }

    /// Wakes the task that waits for the outbox to drain, if the outbox has drained that far.
    pub(super) fn wake_drainer(&mut self) {
        if let Some((_, waker)) = self.drainer.take_if(|(below, _)| self.outbox.unsent() <= *below) {
            waker.wake();
        }
    }

    /// Wakes the task that waits for the outbox to drain, to report an error.
    pub(super) fn wake_drainer_always(&mut self) {
        if let Some((_, waker)) = self.drainer.take() {
            waker.wake();
        }
    }
}

/// Takes up to `count` bytes from a queue, as slices: byte by byte takes ten times as long.
fn take_from(queue: &mut VecDeque<u8>, count: usize, mut take: impl FnMut(&[u8])) {
    let count = count.min(queue.len());
    let (front, back) = queue.as_slices();
    let split = count.min(front.len());
    take(&front[..split]);
    take(&back[..count - split]);
    queue.drain(..count);
}
