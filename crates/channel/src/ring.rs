//! A ring of words in shared memory, with one producer and one consumer in different processes.
//!
//! It knows no frames and sends no wake-up itself: it says when one is due. Invariants: each side keeps its
//! own position in private memory, and never reads it from the ring. A position of the peer is checked
//! against the capacity before it is used, and an index is masked, so that no value of the shared memory
//! leads outside the ring.
//!
//! Wake-ups: a side that is about to wait raises its flag, then has a fence, and then loads the peer's
//! position once more. The peer stores its position, then has a fence, and then loads the flag. The two
//! fences are sequentially consistent, so one of them is first. If it is that of the waiting side, the peer
//! sees the flag. If it is that of the peer, the waiting side sees the position. A wake-up could
//! be lost only if neither side saw the store of the other, which the order of the fences excludes.

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::limits::{HEADER_WORDS, RING_BYTES_MAX, RING_WORDS_MIN};
use crate::word::Word;

/// Bytes of a word.
pub const WORD_BYTES: usize = 8;

/// Words of a cache line, and of each field of a ring's header.
const LINE_WORDS: usize = 8;
/// The fields of a ring's header, in words from its start.
const TAIL: usize = 0;
const HEAD: usize = LINE_WORDS;
const CONSUMER_WAITS: usize = 2 * LINE_WORDS;
const PRODUCER_WAITS: usize = 3 * LINE_WORDS;
const RING_HEADER_WORDS: usize = 4 * LINE_WORDS;
/// The word in which the connecting side says that it wants copies.
pub(crate) const MODE: usize = 2 * RING_HEADER_WORDS;
/// The word in which the connecting side says how many slots the accepting side may use; 0 says nothing.
pub(crate) const SLOTS_WANTED: usize = MODE + 1;

/// The value of a flag whose side waits for its eventfd, or for a message on the socket.
const WAITS: u64 = 1;
const IS_PARKED: u64 = 2;

/// The wake-up that a peer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// None: it is awake.
    None,
    /// By its eventfd.
    Bell,
    /// By a message on the socket: it is parked.
    Message,
}

/// The peer has written to the shared memory what no correct peer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt(pub &'static str);

/// The places of the two rings in a region of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The ring that the connecting side writes.
    pub to_acceptor: RingPlace,
    /// The ring that the accepting side writes.
    pub to_connector: RingPlace,
}

/// The place of one ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    header: usize,
    data: usize,
    /// A power of two.
    capacity: usize,
}

impl Layout {
    /// Returns the number of words of a region with two rings of at least `ring_bytes` each.
    pub fn words(ring_bytes: usize) -> usize {
        let words = (ring_bytes / WORD_BYTES).clamp(RING_WORDS_MIN, RING_BYTES_MAX / WORD_BYTES);
        HEADER_WORDS + 2 * words.next_power_of_two()
    }

    /// Returns the layout of a region of so many words, or `None` if it cannot be a channel's.
    pub fn of(words: usize) -> Option<Layout> {
        let capacity = words.checked_sub(HEADER_WORDS)? / 2;
        let fits = capacity.is_power_of_two() && HEADER_WORDS + 2 * capacity == words;
        if !fits || !(RING_WORDS_MIN..=RING_BYTES_MAX / WORD_BYTES).contains(&capacity) {
            return None;
        }
        let place = |number| RingPlace {
            header: number * RING_HEADER_WORDS,
            data: HEADER_WORDS + number * capacity,
            capacity,
        };
        Some(Layout { to_acceptor: place(0), to_connector: place(1) })
    }
}

impl RingPlace {
    /// Returns the number of words that the ring holds.
    pub fn capacity(self) -> usize {
        self.capacity
    }

    fn field<W>(self, region: &[W], field: usize) -> &W {
        &region[self.header + field]
    }

    /// Returns the index of the word at a position.
    fn index(self, position: u64) -> usize {
        // The mask is below the capacity, so the cast loses nothing.
        let masked = position & (self.capacity as u64 - 1);
        self.data + usize::try_from(masked).unwrap_or(0)
    }

    /// Returns the two ranges of words from `position` on; the second is empty unless they wrap around.
    fn ranges(self, position: u64, words: usize) -> [Range<usize>; 2] {
        let (start, end) = (self.index(position), self.data + self.capacity);
        let first = words.min(end - start);
        [start..start + first, self.data..self.data + words.min(self.capacity) - first]
    }
}

/// The writing side of a ring.
#[derive(Clone, Debug)]
pub struct Producer {
    place: RingPlace,
    /// The position behind the last published word.
    tail: u64,
    /// The consumer's position when it was last looked at.
    head: u64,
    /// The position behind the last published word when the consumer's flag was last looked at.
    announced: u64,
}

impl Producer {
    /// Creates the writing side of an empty ring.
    pub fn new(place: RingPlace) -> Producer {
        Producer { place, tail: 0, head: 0, announced: 0 }
    }

    /// Returns how many words there is room for.
    ///
    /// # Errors
    /// [`Corrupt`] if the consumer's position cannot be right.
    pub fn room<W: Word>(&mut self, region: &[W]) -> Result<usize, Corrupt> {
        let head = self.place.field(region, HEAD).load(Ordering::Acquire);
        // It moves towards the tail, never back.
        if self.tail.wrapping_sub(head) > self.tail.wrapping_sub(self.head) {
            return Err(Corrupt("the reader's position is not between its last one and the writer's"));
        }
        self.head = head;
        Ok(self.place.capacity - self.used())
    }

    fn used(&self) -> usize {
        usize::try_from(self.tail.wrapping_sub(self.head)).unwrap_or(usize::MAX).min(self.place.capacity)
    }

    /// Returns the position behind the last published word, and the consumer's when it was last looked at.
    pub fn positions(&self) -> (u64, u64) {
        (self.tail, self.head)
    }

    /// Returns so many words, from `ahead` words behind the published ones on. The caller has checked that
    /// there is room.
    pub fn unpublished<'r, W>(&self, region: &'r [W], ahead: usize, words: usize) -> [&'r [W]; 2] {
        let ranges = self.place.ranges(self.tail.wrapping_add(ahead as u64), words);
        ranges.map(|range| &region[range])
    }

    /// Publishes so many words, which have been written.
    pub fn publish<W: Word>(&mut self, region: &[W], words: usize) {
        self.tail = self.tail.wrapping_add(words as u64);
        self.place.field(region, TAIL).store(self.tail, Ordering::Release);
    }

    /// Raises the flag that asks for a wake-up when there is room, and then returns how many words there is
    /// room for. The caller does not wait if that is enough by now.
    ///
    /// # Errors
    /// As [`Producer::room`].
    pub fn about_to_wait<W: Word>(&mut self, region: &[W]) -> Result<usize, Corrupt> {
        self.place.field(region, PRODUCER_WAITS).store(WAITS, Ordering::Relaxed);
        W::fence();
        self.room(region)
    }

    /// Returns whether nothing was published since the consumer's flag was last looked at.
    pub fn is_announced(&self) -> bool {
        self.announced == self.tail
    }

    /// Returns the wake-up that the consumer needs, and lowers its flag. It is not woken twice for the same
    /// words. Called after a [`Word::fence`] that follows the last publication.
    pub fn wakeup<W: Word>(&mut self, region: &[W]) -> Wakeup {
        if std::mem::replace(&mut self.announced, self.tail) == self.tail {
            return Wakeup::None;
        }
        let flag = self.place.field(region, CONSUMER_WAITS);
        // The load alone is cheap: mostly the consumer is awake.
        if flag.load(Ordering::Relaxed) == 0 {
            return Wakeup::None;
        }
        match flag.swap(0, Ordering::Relaxed) {
            0 => Wakeup::None,
            IS_PARKED => Wakeup::Message,
            _ => Wakeup::Bell,
        }
    }
}

/// The reading side of a ring.
#[derive(Clone, Debug)]
pub struct Consumer {
    place: RingPlace,
    /// The position of the next word to read.
    head: u64,
    /// The producer's position when it was last looked at.
    tail: u64,
    /// The position of the next word to read when the producer's flag was last looked at.
    announced: u64,
}

impl Consumer {
    /// Creates the reading side of an empty ring.
    pub fn new(place: RingPlace) -> Consumer {
        Consumer { place, head: 0, tail: 0, announced: 0 }
    }

    /// Returns how many words can be read.
    ///
    /// # Errors
    /// [`Corrupt`] if the producer's position cannot be right.
    pub fn available<W: Word>(&mut self, region: &[W]) -> Result<usize, Corrupt> {
        let tail = self.place.field(region, TAIL).load(Ordering::Acquire);
        let (before, now) = (self.tail.wrapping_sub(self.head), tail.wrapping_sub(self.head));
        if now > self.place.capacity as u64 || now < before {
            return Err(Corrupt("the writer's position is not between its last one and the ring's end"));
        }
        self.tail = tail;
        Ok(usize::try_from(now).unwrap_or(0))
    }

    /// Loads one word, `ahead` words behind the next to read. The caller has checked that it is available.
    pub fn word<W: Word>(&self, region: &[W], ahead: usize) -> u64 {
        region[self.place.index(self.head.wrapping_add(ahead as u64))].load(Ordering::Relaxed)
    }

    /// Returns the next words to read. The caller has checked that they are available.
    pub fn next<'r, W>(&self, region: &'r [W], words: usize) -> [&'r [W]; 2] {
        self.place.ranges(self.head, words).map(|range| &region[range])
    }

    /// Releases so many words to the producer, after they were copied out.
    pub fn release<W: Word>(&mut self, region: &[W], words: usize) {
        self.head = self.head.wrapping_add(words as u64);
        self.place.field(region, HEAD).store(self.head, Ordering::Release);
    }

    /// Raises the flag that asks for a wake-up when there is something to read, and then returns how many
    /// words can be read. The caller does not wait if there are any by now.
    ///
    /// # Errors
    /// As [`Consumer::available`].
    pub fn about_to_wait<W: Word>(&mut self, region: &[W]) -> Result<usize, Corrupt> {
        self.raise_flag(region, WAITS)
    }

    /// As [`Consumer::about_to_wait`], for a wake-up by a message on the socket.
    ///
    /// # Errors
    /// As [`Consumer::available`].
    pub fn about_to_park<W: Word>(&mut self, region: &[W]) -> Result<usize, Corrupt> {
        self.raise_flag(region, IS_PARKED)
    }

    fn raise_flag<W: Word>(&mut self, region: &[W], value: u64) -> Result<usize, Corrupt> {
        self.place.field(region, CONSUMER_WAITS).store(value, Ordering::Relaxed);
        W::fence();
        self.available(region)
    }

    /// Returns whether nothing was released since the producer's flag was last looked at.
    pub fn is_announced(&self) -> bool {
        self.announced == self.head
    }

    /// Returns whether the producer waits for room and must be woken, which lowers its flag: as soon as half
    /// of the ring is free, so that it does not wake for every few bytes. It is not woken twice for the same
    /// room. Called after a [`Word::fence`] that follows the last release.
    pub fn must_wake<W: Word>(&mut self, region: &[W]) -> bool {
        if self.announced == self.head {
            return false;
        }
        let flag = self.place.field(region, PRODUCER_WAITS);
        if flag.load(Ordering::Relaxed) == 0 {
            // A producer that waits later first looks at this position.
            self.announced = self.head;
            return false;
        }
        // A wrong position only delays or hastens the wake-up of the peer that wrote it.
        let tail = self.place.field(region, TAIL).load(Ordering::Relaxed);
        let used = tail.wrapping_sub(self.head);
        if used > self.place.capacity as u64 / 2 {
            return false;
        }
        self.announced = self.head;
        flag.swap(0, Ordering::Relaxed) != 0
    }
}
