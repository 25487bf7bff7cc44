//! Bytes of an upload that are received and not written yet.
//!
//! Writing passes the bytes to another thread, at the cost of two thread switches. So bytes that arrive
//! fast are handed over a megabyte at a time, and slow ones once they fill a receive. Bytes that need no
//! inspection may be in a pipe, from which the kernel moves them into the file. It does not write.
//!
//! Invariants: a thread that inspects the upload's file writes the buffered bytes first, so their offset is
//! reported only once they are in the file. A takeover discards bytes that are still buffered. A thread
//! that takes them holds the upload's state until they are written, so that bytes stay in order. The memory
//! that all uploads take for them, until they are written, is at most [`BUFFERED_TOGETHER_BYTES_MAX`] beyond
//! one receive each.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use plimsoll_io::{Detached, Filled, Instant, Lease, Pipe};

use super::upload::SharedUpload;
use crate::error::{Error, Result};
use crate::limits::{
    AHEAD_BYTES, BUFFERED_BYTES_MAX, BUFFERED_FAST_BYTES_MAX, BUFFERED_TIME, BUFFERED_TOGETHER_BYTES_MAX,
    GATHERED_BYTES,
};
use crate::usage::Quota;

/// The memory, in bytes, that is charged to the uploads of a store for buffered bytes. An upload that
/// buffers less than one receive is not charged.
#[derive(Default)]
pub(crate) struct BufferBudget(AtomicUsize);

/// The buffer of one upload: its receiver fills it, the writer of its file empties it. Its lock is never
/// held while the disk is waited for.
pub(super) struct Buffer(Mutex<Contents>);

struct Contents {
    pieces: Vec<BufferedBytes>,
    /// Small pieces that were received since the last large one, copied: each would keep a whole block.
    small: Vec<u8>,
    bytes: usize,
    /// When the first of them was received; none if nothing is buffered.
    since: Option<Instant>,
    /// When the last bytes were received; none before the first.
    last: Option<Instant>,
    charge: BudgetCharge,
    quota: Quota,
    /// The pipe that the next bytes are received into, if they stay in the kernel. It is never a pipe that
    /// is being emptied: that thread waits for the disk with the pipe's own lock.
    pipe: Option<Arc<Pipe>>,
    /// Whether bytes are received into memory: they need inspection, or they cannot go into a pipe.
    is_for_memory: bool,
    /// Whether the digest of the whole file is computed as it is written.
    is_hashed: bool,
    /// Whether a thread is writing buffered bytes while the sender goes on.
    is_ahead: bool,
    /// The error that ended the upload, until it is returned to the sender.
    failed: Option<Error>,
}

/// The receiving end of an upload in progress, for the code that polls its connection. Bytes that go into a
/// pipe stay in the kernel until they are in the file.
pub struct ReceivePipe(pub(super) Arc<SharedUpload>);

impl ReceivePipe {
    /// Calls `fill` to receive into the upload's pipe; `open` opens one if there is none. Returns the pipe,
    /// which must be passed to the upload along with the bytes, and the result. None if bytes are to be
    /// received into memory.
    pub fn poll(
        &self,
        open: impl FnOnce() -> Option<Pipe>,
        fill: impl FnOnce(&Pipe) -> Poll<io::Result<Filled>>,
    ) -> Option<(Arc<Pipe>, Poll<io::Result<Filled>>)> {
        self.0.buffer.fill(open, fill)
    }
}

/// Bytes that were received for an upload.
pub enum ReceivedBytes {
    /// In memory, in this order.
    Memory(Vec<Lease>),
    /// This many more bytes in the upload's [pipe](ReceivePipe). Zero if the pipe is full.
    Piped(Arc<Pipe>, u64),
}

impl ReceivedBytes {
    /// The number of the bytes.
    pub fn len(&self) -> u64 {
        match self {
            ReceivedBytes::Memory(pieces) => pieces.iter().map(|piece| piece.len() as u64).sum(),
            ReceivedBytes::Piped(_, bytes) => *bytes,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A piece of the buffered bytes.
pub(super) enum BufferedBytes {
    /// In memory.
    Lease(Detached),
    /// This many bytes that stay in the kernel: the next ones out of this pipe.
    Piped(Arc<Pipe>, u64),
}

/// Memory that is charged, until it is dropped.
struct BudgetCharge {
    budget: Arc<BufferBudget>,
    /// This upload's part of it, which includes bytes that are being written.
    own: Arc<AtomicUsize>,
    bytes: usize,
}

/// Bytes that were buffered, until they are written.
pub(super) struct Batch {
    pub(super) pieces: Vec<BufferedBytes>,
    /// The quota that their upload counts against.
    pub(super) quota: Quota,
    /// Whether the digest of the whole file is computed as it is written.
    pub(super) is_hashed: bool,
    _charge: BudgetCharge,
}

impl Buffer {
    /// Creates an empty buffer. `is_for_memory` says whether bytes may not be received into a pipe.
    pub(super) fn new(budget: Arc<BufferBudget>, is_for_memory: bool) -> Buffer {
        let (pieces, small, bytes, since, last, pipe) = (Vec::new(), Vec::new(), 0, None, None, None);
        let (charge, quota) = (BudgetCharge { budget, own: Arc::default(), bytes }, Quota::default());
        let (is_hashed, is_ahead, failed) = (false, false, None);
        Buffer(Mutex::new(Contents {
            pieces,
            small,
            bytes,
            since,
            last,
            charge,
            quota,
            pipe,
            is_for_memory,
            is_hashed,
            is_ahead,
            failed,
        }))
    }

    /// Calls `fill` to receive into a pipe, which `open` opens if there is none. None if bytes are to be
    /// received into memory. The buffer stays locked meanwhile.
    fn fill(
        &self,
        open: impl FnOnce() -> Option<Pipe>,
        fill: impl FnOnce(&Pipe) -> Poll<io::Result<Filled>>,
    ) -> Option<(Arc<Pipe>, Poll<io::Result<Filled>>)> {
        let mut contents = self.lock();
        if contents.is_for_memory {
            return None;
        }
        if contents.pipe.is_none() {
            contents.pipe = Some(Arc::new(open()?));
        }
        let pipe = contents.pipe.clone()?;
        let filled = fill(&pipe);
        contents.is_for_memory = matches!(filled, Poll::Ready(Ok(Filled::Refused)));
        Some((pipe, filled))
    }

    /// Buffers a piece of an upload under `quota`. Returns whether the buffer is to be written before more
    /// is received.
    ///
    /// A small piece is copied, and its block is free for the next receive.
    pub(super) fn push(&self, piece: Lease, now: Instant, quota: Quota) -> bool {
        let mut contents = self.lock();
        contents.bytes += piece.len();
        if piece.len() < GATHERED_BYTES {
            contents.small.extend_from_slice(&piece);
        } else {
            contents.gather();
            contents.pieces.push(BufferedBytes::Lease(piece.detach()));
        }
        contents.is_due(now, quota)
    }

    /// As [`Buffer::push`], for `bytes` that went into a pipe.
    pub(super) fn push_piped(&self, pipe: &Arc<Pipe>, bytes: u64, now: Instant, quota: Quota) -> bool {
        let mut contents = self.lock();
        contents.bytes += usize::try_from(bytes).unwrap_or(usize::MAX);
        contents.gather();
        match contents.pieces.last_mut() {
            Some(BufferedBytes::Piped(last, before)) if Arc::ptr_eq(last, pipe) => *before += bytes,
            _ => contents.pieces.push(BufferedBytes::Piped(Arc::clone(pipe), bytes)),
        }
        contents.is_due(now, quota)
    }

    /// Computes the digest of the whole file as it is written. The bytes are received into memory for that.
    pub(super) fn hash_bytes(&self) {
        let mut contents = self.lock();
        (contents.is_for_memory, contents.is_hashed) = (true, true);
    }

    /// Takes all buffered bytes.
    pub(super) fn take(&self) -> Batch {
        let mut contents = self.lock();
        contents.gather();
        (contents.bytes, contents.since, contents.pipe) = (0, None, None);
        let BudgetCharge { budget, own, .. } = &contents.charge;
        let charge = BudgetCharge { budget: Arc::clone(budget), own: Arc::clone(own), bytes: 0 };
        let charge = std::mem::replace(&mut contents.charge, charge);
        let pieces = std::mem::take(&mut contents.pieces);
        Batch { pieces, quota: contents.quota, is_hashed: contents.is_hashed, _charge: charge }
    }

    /// When the last bytes were received; none before the first.
    pub(super) fn received_at(&self) -> Option<Instant> {
        self.lock().last
    }

    /// The number of buffered bytes.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Whether at least one receive is buffered here, and no other upload has as much unwritten.
    pub(super) fn is_alone(&self) -> bool {
        self.lock().is_alone()
    }

    /// Returns whether to write the buffer while more is received, and notes that if so. The upload must be
    /// the only active one, and the buffer large enough.
    pub(super) fn goes_ahead(&self) -> bool {
        let mut contents = self.lock();
        let goes = !contents.is_ahead && contents.bytes >= AHEAD_BYTES && contents.is_alone();
        contents.is_ahead |= goes;
        goes
    }

    /// Notes the end of such a write. Its error is returned to the sender later.
    pub(super) fn went_ahead(&self, done: Result<()>) {
        let mut contents = self.lock();
        contents.is_ahead = false;
        contents.failed = contents.failed.take().or(done.err());
    }

    /// Makes the sender's next call fail with `error`.
    pub(super) fn fail(&self, error: Error) {
        self.lock().failed.get_or_insert(error);
    }

    /// Takes the error that ended the upload, unless it was returned already.
    pub(super) fn failure(&self) -> Option<Error> {
        self.lock().failed.take()
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn gather(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push(BufferedBytes::Lease(Lease::owned(std::mem::take(&mut self.small)).detach()));
        }
    }

    fn is_alone(&self) -> bool {
        let BudgetCharge { budget, own, bytes } = &self.charge;
        *bytes > 0 && budget.0.load(Ordering::Relaxed) == own.load(Ordering::Relaxed)
    }

    fn is_due(&mut self, now: Instant, quota: Quota) -> bool {
        self.quota = quota;
        self.since.get_or_insert(now);
        self.last = Some(now);
        let memory = self.pieces.iter().map(BufferedBytes::memory).sum::<usize>() + self.small.capacity();
        if memory < BUFFERED_BYTES_MAX {
            return false;
        }
        let fits = self.charge.fits(memory);
        let is_fast = self.since.is_none_or(|since| now - since < BUFFERED_TIME);
        !(fits && is_fast && self.bytes < BUFFERED_FAST_BYTES_MAX)
    }
}

impl BudgetCharge {
    /// Charges `bytes` in all, which are allocated already. Returns whether the limit has room for them.
    fn fits(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let before = self.budget.0.fetch_add(more, Ordering::Relaxed);
        self.own.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        before + more <= BUFFERED_TOGETHER_BYTES_MAX
    }
}

impl Drop for BudgetCharge {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
        self.own.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl BufferedBytes {
    /// The number of its bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            BufferedBytes::Lease(lease) => lease.len() as u64,
            BufferedBytes::Piped(_, bytes) => *bytes,
        }
    }

    /// The memory that it takes, in a pipe the kernel's.
    fn memory(&self) -> usize {
        match self {
            BufferedBytes::Lease(lease) => lease.capacity(),
            BufferedBytes::Piped(_, bytes) => usize::try_from(*bytes).unwrap_or(usize::MAX),
        }
    }
}

impl Batch {
    /// The number of its bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.pieces.iter().map(BufferedBytes::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn piece(bytes: usize) -> Lease {
        Lease::owned(vec![7; bytes])
    }

    fn in_memory(piece: &BufferedBytes) -> Option<&[u8]> {
        match piece {
            BufferedBytes::Lease(lease) => Some(lease),
            BufferedBytes::Piped(..) => None,
        }
    }

    /// Pushes receives of 64 KiB, at intervals of `interval`, until the buffer is to be written.
    fn fill(held: &Buffer, interval: Duration) -> Batch {
        let mut now = Instant::default();
        while !held.push(piece(BUFFERED_BYTES_MAX), now, Quota::default()) {
            now = now + interval;
        }
        held.take()
    }

    fn held_with(together: &Arc<BufferBudget>) -> Buffer {
        Buffer::new(Arc::clone(together), false)
    }

    fn len(batch: &Batch) -> usize {
        usize::try_from(batch.bytes()).unwrap()
    }

    #[test]
    fn fast_uploads_are_written_in_megabytes_and_slow_ones_as_they_arrive() {
        let held = held_with(&Arc::default());
        assert_eq!(len(&fill(&held, Duration::from_micros(100))), BUFFERED_FAST_BYTES_MAX);
        assert_eq!(
            len(&fill(&held, BUFFERED_TIME)),
            2 * BUFFERED_BYTES_MAX,
            "a second receive tells that it is slow"
        );
    }

    #[test]
    fn where_others_hold_all_that_may_be_held_an_upload_holds_one_receive() {
        let together = Arc::<BufferBudget>::default();
        let of_others = BUFFERED_TOGETHER_BYTES_MAX / BUFFERED_FAST_BYTES_MAX + 1;
        let others: Vec<Buffer> = (0..of_others).map(|_| held_with(&together)).collect();
        for other in &others {
            other.push(piece(BUFFERED_FAST_BYTES_MAX - 1), Instant::default(), Quota::default());
        }
        let held = held_with(&together);
        assert_eq!(len(&fill(&held, Duration::ZERO)), BUFFERED_BYTES_MAX);
        let on_their_way: Vec<Batch> = others.iter().map(Buffer::take).collect();
        assert_eq!(len(&fill(&held, Duration::ZERO)), BUFFERED_BYTES_MAX, "it is not written yet");
        drop((others, on_their_way));
        assert_eq!(together.0.load(Ordering::Relaxed), 0, "who drops it gives its room back");
        assert_eq!(len(&fill(&held, Duration::ZERO)), BUFFERED_FAST_BYTES_MAX);
    }

    #[test]
    fn the_budget_is_charged_for_the_capacity_of_a_block() {
        let together = Arc::<BufferBudget>::default();
        let held = held_with(&together);
        let mut blocks = 0;
        while together.0.load(Ordering::Relaxed) == 0 {
            let mut block = Vec::with_capacity(4 * GATHERED_BYTES);
            block.resize(GATHERED_BYTES, 7);
            held.push(Lease::owned(block), Instant::default(), Quota::default());
            blocks += 1;
        }
        assert!(together.0.load(Ordering::Relaxed) >= blocks * 4 * GATHERED_BYTES);
    }

    #[test]
    fn an_upload_is_alone_while_no_other_holds_as_much_as_a_receive() {
        let together = Arc::<BufferBudget>::default();
        let (one, other) = (held_with(&together), held_with(&together));
        let push = |held: &Buffer| held.push(piece(BUFFERED_BYTES_MAX), Instant::default(), Quota::default());
        assert!(!one.is_alone(), "nothing is held");
        push(&one);
        assert!(one.is_alone());
        push(&other);
        assert!(!one.is_alone());
        drop(other.take());
        assert!(one.is_alone());
    }

    #[test]
    fn piped_bytes_keep_their_order_among_those_in_memory() {
        let held = held_with(&Arc::default());
        let (pipe, now) = (Arc::new(pipe()), Instant::default());
        held.push(piece(10), now, Quota::default());
        for bytes in [20, 30] {
            assert!(!held.push_piped(&pipe, bytes, now, Quota::default()));
        }
        held.push(piece(GATHERED_BYTES), now, Quota::default());
        assert!(held.push_piped(&pipe, BUFFERED_FAST_BYTES_MAX as u64, now, Quota::default()), "it is much");
        let summary = |piece: &BufferedBytes| (matches!(piece, BufferedBytes::Piped(..)), piece.len());
        let summary: Vec<(bool, u64)> = held.take().pieces.iter().map(summary).collect();
        let much = BUFFERED_FAST_BYTES_MAX as u64;
        assert_eq!(summary, [(false, 10), (true, 50), (false, GATHERED_BYTES as u64), (true, much)]);
        assert_eq!(held.bytes(), 0);
    }

    fn pipe() -> Pipe {
        let make = || io::pipe().ok().map(|(source, sink)| (source.into(), sink.into()));
        Pipe::open(usize::MAX, make).unwrap()
    }

    #[test]
    fn a_pipe_that_is_emptied_is_not_received_into() {
        let held = held_with(&Arc::default());
        let fill = |pipe: &Pipe| {
            pipe.filled(7);
            Poll::Ready(Ok(Filled::Bytes(7)))
        };
        let (first, _) = held.fill(|| Some(pipe()), fill).unwrap();
        let (again, _) = held.fill(|| panic!("there is one"), fill).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        held.push_piped(&first, 14, Instant::default(), Quota::default());
        let _taken = held.take();
        let (other, _) = held.fill(|| Some(pipe()), fill).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
    }

    #[test]
    fn inspected_bytes_and_those_without_a_pipe_are_received_into_memory() {
        let looked_at = Buffer::new(Arc::default(), true);
        assert!(looked_at.fill(|| panic!("it takes none"), |_| Poll::Pending).is_none());
        let held = held_with(&Arc::default());
        assert!(held.fill(|| None, |_| Poll::Pending).is_none(), "there is none left");
        assert!(held.fill(|| Some(pipe()), |_| Poll::Ready(Ok(Filled::Refused))).is_some());
        assert!(held.fill(|| panic!("it takes none"), |_| Poll::Pending).is_none());
    }

    #[test]
    fn small_pieces_keep_their_order_and_no_blocks() {
        let held = held_with(&Arc::default());
        let sizes = [1, 2, GATHERED_BYTES, 3, 4, GATHERED_BYTES + 1, 5];
        let mut all = Vec::new();
        for (number, size) in (0..).zip(sizes) {
            let bytes = vec![number; size];
            all.extend_from_slice(&bytes);
            held.push(Lease::owned(bytes), Instant::default(), Quota::default());
        }
        let batch = held.take();
        let pieces: Vec<&[u8]> = batch.pieces.iter().filter_map(in_memory).collect();
        let sizes: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(sizes, [3, GATHERED_BYTES, 7, GATHERED_BYTES + 1, 5]);
        assert_eq!(pieces.concat(), all);
    }
}
