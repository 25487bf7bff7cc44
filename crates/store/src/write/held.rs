//! Bytes of an upload that have come and are not written yet.
//!
//! Whoever hands bytes to where they may be written changes threads, and back. So what comes fast is handed
//! over a megabyte at a time, and what comes slowly once it is a receive's worth. It does not write.
//!
//! What must hold: who looks at the upload's file, or takes it over, finds what is held; whoever takes it has
//! the file's lock until it is written, so that bytes stay in order; the memory that all uploads take for it,
//! until it is written, is no more than [`HELD_TOGETHER_BYTES_MAX`] beyond one receive each.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::{Detached, Instant, Lease};

use crate::limits::{
    GATHERED_BYTES, HELD_BYTES_MAX, HELD_FAST_BYTES_MAX, HELD_TIME, HELD_TOGETHER_BYTES_MAX,
};
use crate::usage::Quota;

/// The memory, in bytes, that the uploads of a store take beyond what each may hold anyway.
#[derive(Default)]
pub(crate) struct HeldTogether(AtomicUsize);

/// What one upload holds: for who receives it, and for the file that it is to be written to. Clones are the
/// same. Its lock is never held while the disk is waited for.
#[derive(Clone)]
pub(super) struct Held(Arc<Mutex<Holding>>);

struct Holding {
    pieces: Vec<Detached>,
    /// What came in small pieces since the last of those: each would keep a whole block.
    small: Vec<u8>,
    bytes: usize,
    /// When the first of them came; none if nothing is held.
    since: Option<Instant>,
    charge: Charge,
    quota: Quota,
}

/// Memory that is charged, until it is dropped.
struct Charge {
    together: Arc<HeldTogether>,
    bytes: usize,
}

/// What was held, until it is written.
pub(super) struct Batch {
    pieces: Vec<Detached>,
    /// What their upload may have all in all.
    pub(super) quota: Quota,
    _charge: Charge,
}

impl Held {
    pub(super) fn new(together: Arc<HeldTogether>) -> Held {
        let (pieces, small, quota) = (Vec::new(), Vec::new(), Quota::default());
        let charge = Charge { together, bytes: 0 };
        Held(Arc::new(Mutex::new(Holding { pieces, small, bytes: 0, since: None, charge, quota })))
    }

    /// Takes what came, of an upload under `quota`. Whether all that is held is to be written before more is
    /// taken.
    pub(super) fn push(&self, piece: Detached, now: Instant, quota: Quota) -> bool {
        let mut held = self.lock();
        held.quota = quota;
        held.since.get_or_insert(now);
        held.bytes += piece.len();
        if piece.len() < GATHERED_BYTES {
            held.small.extend_from_slice(&piece);
        } else {
            held.gather();
            held.pieces.push(piece);
        }
        held.is_due(now)
    }

    /// All that is held; nothing is, then.
    pub(super) fn take(&self) -> Batch {
        let mut held = self.lock();
        held.gather();
        (held.bytes, held.since) = (0, None);
        let charge = Charge { together: Arc::clone(&held.charge.together), bytes: 0 };
        let charge = std::mem::replace(&mut held.charge, charge);
        Batch { pieces: std::mem::take(&mut held.pieces), quota: held.quota, _charge: charge }
    }

    /// How many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Whether as much as a receive is held here, and nowhere else.
    pub(super) fn is_alone(&self) -> bool {
        let charge = &self.lock().charge;
        charge.bytes > 0 && charge.together.0.load(Ordering::Relaxed) == charge.bytes
    }

    fn lock(&self) -> MutexGuard<'_, Holding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holding {
    fn gather(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push(Lease::owned(std::mem::take(&mut self.small)).detach());
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let memory = self.pieces.iter().map(Detached::capacity).sum::<usize>() + self.small.capacity();
        if memory < HELD_BYTES_MAX {
            return false;
        }
        let is_fast = self.since.is_none_or(|since| now - since < HELD_TIME);
        !(is_fast && self.bytes < HELD_FAST_BYTES_MAX && self.charge.is_let(memory))
    }
}

impl Charge {
    /// Charges so many bytes, which are taken already. Whether there was room for them.
    fn is_let(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let before = self.together.0.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        before + more <= HELD_TOGETHER_BYTES_MAX
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.together.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Deref for Batch {
    type Target = [Detached];
    fn deref(&self) -> &[Detached] {
        &self.pieces
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn piece(bytes: usize) -> Detached {
        Lease::owned(vec![7; bytes]).detach()
    }

    /// Takes receives of 64 KiB, one each `apart`, until they are to be written.
    fn fill(held: &Held, apart: Duration) -> Batch {
        let mut now = Instant::default();
        while !held.push(piece(HELD_BYTES_MAX), now, Quota::default()) {
            now = now + apart;
        }
        held.take()
    }

    fn len(batch: &[Detached]) -> usize {
        batch.iter().map(|piece| piece.len()).sum()
    }

    #[test]
    fn what_comes_fast_is_written_a_megabyte_at_a_time_and_what_comes_slowly_as_it_comes() {
        let held = Held::new(Arc::default());
        assert_eq!(len(&fill(&held, Duration::from_micros(100))), HELD_FAST_BYTES_MAX);
        assert_eq!(
            len(&fill(&held, HELD_TIME)),
            2 * HELD_BYTES_MAX,
            "a second receive tells that it is slow"
        );
    }

    #[test]
    fn where_others_hold_all_that_may_be_held_an_upload_holds_one_receive() {
        let together = Arc::<HeldTogether>::default();
        let of_others = HELD_TOGETHER_BYTES_MAX / HELD_FAST_BYTES_MAX + 1;
        let others: Vec<Held> = (0..of_others).map(|_| Held::new(together.clone())).collect();
        for other in &others {
            other.push(piece(HELD_FAST_BYTES_MAX - 1), Instant::default(), Quota::default());
        }
        let held = Held::new(together.clone());
        assert_eq!(len(&fill(&held, Duration::ZERO)), HELD_BYTES_MAX);
        let on_their_way: Vec<Batch> = others.iter().map(Held::take).collect();
        assert_eq!(len(&fill(&held, Duration::ZERO)), HELD_BYTES_MAX, "it is not written yet");
        drop((others, on_their_way));
        assert_eq!(together.0.load(Ordering::Relaxed), 0, "who drops it gives its room back");
        assert_eq!(len(&fill(&held, Duration::ZERO)), HELD_FAST_BYTES_MAX);
    }

    #[test]
    fn what_is_charged_is_the_memory_that_it_takes() {
        let together = Arc::<HeldTogether>::default();
        let held = Held::new(together.clone());
        let mut blocks = 0;
        while together.0.load(Ordering::Relaxed) == 0 {
            let mut block = Vec::with_capacity(4 * GATHERED_BYTES);
            block.resize(GATHERED_BYTES, 7);
            held.push(Lease::owned(block).detach(), Instant::default(), Quota::default());
            blocks += 1;
        }
        assert!(together.0.load(Ordering::Relaxed) >= blocks * 4 * GATHERED_BYTES);
    }

    #[test]
    fn an_upload_is_alone_while_no_other_holds_as_much_as_a_receive() {
        let together = Arc::<HeldTogether>::default();
        let (one, other) = (Held::new(together.clone()), Held::new(together));
        let push = |held: &Held| held.push(piece(HELD_BYTES_MAX), Instant::default(), Quota::default());
        assert!(!one.is_alone(), "nothing is held");
        push(&one);
        assert!(one.is_alone());
        push(&other);
        assert!(!one.is_alone());
        drop(other.take());
        assert!(one.is_alone());
    }

    #[test]
    fn small_pieces_keep_their_order_and_no_blocks() {
        let held = Held::new(Arc::default());
        let sizes = [1, 2, GATHERED_BYTES, 3, 4, GATHERED_BYTES + 1, 5];
        let mut all = Vec::new();
        for (number, size) in (0..).zip(sizes) {
            let bytes = vec![number; size];
            all.extend_from_slice(&bytes);
            held.push(Lease::owned(bytes).detach(), Instant::default(), Quota::default());
        }
        let batch = held.take();
        let sizes: Vec<usize> = batch.iter().map(|piece| piece.len()).collect();
        assert_eq!(sizes, [3, GATHERED_BYTES, 7, GATHERED_BYTES + 1, 5]);
        assert_eq!(batch.iter().flat_map(|piece| piece.iter().copied()).collect::<Vec<u8>>(), all);
    }
}
