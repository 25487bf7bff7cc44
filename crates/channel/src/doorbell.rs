//! A doorbell: one bit for each channel, the mark, in a page of shared memory. The peer sets it when the
//! owner's thread should look at the channel.
//!
//! [`press`] only returns whether the owner's thread waits; its caller then writes to the eventfd. Each side
//! of a channel has a doorbell, which the channels to one process share. So a thread that is awake, or that
//! was just woken, costs its peers no system call, however many of its channels they write to. Invariant: a
//! peer's nonsense in the page causes needless reports, or delays those of the peer's own channels, and
//! nothing else.
//!
//! Order: the peer sets the mark, then has a fence, and then loads the flag. The owner raises the flag, then
//! has a fence, and then loads the marks. As with the flags of a [ring](crate::ring), the fences exclude
//! that both miss the store of the other.

use std::sync::atomic::Ordering;

use crate::limits::DOORBELL_CHANNELS;
use crate::word::Word;

/// The word that is not 0 while the owner waits, or is about to.
const IS_WAITING: usize = 0;
/// The first word of the marks, on a cache line of its own. Each channel has one bit.
const MARKS: usize = 8;
const MARK_BITS: usize = u64::BITS as usize;

/// Marks a channel. Returns whether the owner's thread waits and must be woken. It is not woken twice for one
/// wait.
pub fn press<W: Word>(page: &[W], channel: usize) -> bool {
    page[MARKS + channel / MARK_BITS].fetch_or(1 << (channel % MARK_BITS), Ordering::Release);
    W::fence();
    let flag = &page[IS_WAITING];
    // The load alone is cheap: mostly the owner is awake.
    flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::Relaxed) != 0
}

/// Says that the owner is about to wait. Returns whether a channel is marked by now: then it must not wait.
pub fn about_to_wait<W: Word>(page: &[W]) -> bool {
    // The flag is only exchanged and never stored to, so that its values have one order in loom's model, too.
    page[IS_WAITING].swap(1, Ordering::Relaxed);
    W::fence();
    marks(page).any(|marks| marks.load(Ordering::Relaxed) != 0)
}

/// Says that the owner does not wait any more, and calls `report` with each marked channel, whose mark is
/// removed.
pub fn take<W: Word>(page: &[W], mut report: impl FnMut(usize)) {
    if page[IS_WAITING].load(Ordering::Relaxed) != 0 {
        page[IS_WAITING].swap(0, Ordering::Relaxed);
    }
    for (number, word) in marks(page).enumerate() {
        if word.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let mut marks = word.swap(0, Ordering::Acquire);
        while marks != 0 {
            report(number * MARK_BITS + marks.trailing_zeros() as usize);
            marks &= marks - 1;
        }
    }
}

fn marks<W>(page: &[W]) -> impl Iterator<Item = &W> {
    page[MARKS..].iter().take(DOORBELL_CHANNELS / MARK_BITS)
}
