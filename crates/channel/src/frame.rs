//! The frames in a ring: bytes, a passed file, the end, an abort.
//!
//! A frame is a word with its kind and length, and then its contents, padded to a whole word. It says nothing
//! about the protocol that the bytes belong to. Invariants: a frame is published as a whole, so a part of one
//! is corrupt. Every word is copied out of shared memory before it is interpreted, and never read again.

use std::sync::atomic::Ordering;

use crate::ring::{Consumer, Corrupt, Producer, WORD_BYTES};
use crate::word::Word;

/// Words of a frame of a passed file: its head, the offset and the length.
pub const FILE_FRAME_WORDS: usize = 3;

const BYTES: u64 = 1;
const FILE: u64 = 2;
const END: u64 = 3;
const ABORT: u64 = 4;

const KIND_BITS: u64 = 0xFF;
/// Bits of a frame's head that are zero.
const RESERVED_BITS: u64 = 0xFFFF_FF00;
const LENGTH_SHIFT: u32 = 32;

/// The part of the stream that is received next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// The ring is empty.
    Empty,
    /// So many bytes of a frame that are left in the ring.
    Bytes(usize),
    /// The bytes of a passed file, which the link has next.
    File {
        /// The first of them.
        offset: u64,
        /// Their number, at least one. The last byte's offset does not overflow.
        length: u64,
    },
    /// The peer has sent everything.
    End,
    /// The peer has given up before the end.
    Abort,
}

/// The receiving side of a ring, by frames.
#[derive(Clone, Debug)]
pub struct Incoming {
    ring: Consumer,
    front: Front,
}

impl Incoming {
    /// Creates the receiving side over the reading side of a ring.
    pub fn new(ring: Consumer) -> Incoming {
        Incoming { ring, front: Front::Empty }
    }

    /// Returns the reading side of the ring.
    pub fn ring(&mut self) -> &mut Consumer {
        &mut self.ring
    }

    /// Returns the part that is received next. An end and an abort stay.
    ///
    /// # Errors
    /// [`Corrupt`] if the ring has no correct frame.
    pub fn front<W: Word>(&mut self, region: &[W]) -> Result<Front, Corrupt> {
        if self.front == Front::Empty {
            let available = self.ring.available(region)?;
            if available > 0 {
                self.front = self.parse(region, available)?;
            }
        }
        Ok(self.front)
    }

    /// Takes the frame at the ring's start out of it, except for bytes.
    fn parse<W: Word>(&mut self, region: &[W], available: usize) -> Result<Front, Corrupt> {
        let head = self.ring.word(region, 0);
        if head & RESERVED_BITS != 0 {
            return Err(Corrupt("a frame's reserved bits are set"));
        }
        let length = usize::try_from(head >> LENGTH_SHIFT).map_err(|_| Corrupt("a frame is too long"))?;
        let front = match (head & KIND_BITS, length) {
            (BYTES, 1..) => Front::Bytes(length),
            (FILE, 0) if available >= FILE_FRAME_WORDS => {
                let (offset, length) = (self.ring.word(region, 1), self.ring.word(region, 2));
                if length == 0 || offset.checked_add(length).is_none_or(|end| i64::try_from(end).is_err()) {
                    return Err(Corrupt("a passed file has an impossible range"));
                }
                Front::File { offset, length }
            }
            (END, 0) => Front::End,
            (ABORT, 0) => Front::Abort,
            _ => return Err(Corrupt("a frame is of no known kind, or has a wrong length")),
        };
        let words = match front {
            Front::Bytes(bytes) if bytes.div_ceil(WORD_BYTES) >= available => {
                return Err(Corrupt("a frame is longer than the published part of the ring"));
            }
            Front::File { .. } => FILE_FRAME_WORDS,
            _ => 1,
        };
        self.ring.release(region, words);
        Ok(front)
    }

    /// Appends up to `bytes_max` bytes of the frame at the front to `into`, up to its capacity: whole words,
    /// unless these are the frame's last bytes. Returns their number, which is 0 only if less than a word
    /// fits.
    pub fn take_bytes<W: Word>(&mut self, region: &[W], into: &mut Vec<u8>, bytes_max: usize) -> usize {
        let Front::Bytes(left) = self.front else { return 0 };
        let room = bytes_max.min(into.capacity() - into.len());
        let bytes = if left <= room { left } else { room - room % WORD_BYTES };
        let words = bytes.div_ceil(WORD_BYTES);
        let sources = self.ring.next(region, words);
        append(into, sources, bytes);
        self.ring.release(region, words);
        self.front = if left == bytes { Front::Empty } else { Front::Bytes(left - bytes) };
        bytes
    }

    /// Removes the passed file from the front, after its descriptor was taken.
    pub fn take_file(&mut self) {
        if matches!(self.front, Front::File { .. }) {
            self.front = Front::Empty;
        }
    }
}

/// Appends the first `bytes` bytes of two slices of words, which hold no more words than that, to `into`,
/// which has capacity for them.
fn append<W: Word>(into: &mut Vec<u8>, [first, second]: [&[W]; 2], bytes: usize) {
    let before = into.len();
    let (whole, rest) = into.spare_capacity_mut()[..bytes].as_chunks_mut::<WORD_BYTES>();
    let (to_first, to_second) = whole.split_at_mut(whole.len().min(first.len()));
    for (to, word) in to_first.iter_mut().zip(first).chain(to_second.iter_mut().zip(second)) {
        for (to, byte) in to.iter_mut().zip(word.load(Ordering::Relaxed).to_ne_bytes()) {
            to.write(byte);
        }
    }
    if let Some(word) = second.last().or(first.last()) {
        for (to, byte) in rest.iter_mut().zip(word.load(Ordering::Relaxed).to_ne_bytes()) {
            to.write(byte);
        }
    }
    // SAFETY: the words cover `bytes` bytes, as the caller computed their number from it, and the slice of
    // the spare capacity was exactly as long: every byte of it was written above.
    unsafe { into.set_len(before + bytes) };
}

/// The sending side of a ring, by frames.
#[derive(Clone, Debug)]
pub struct Outgoing {
    ring: Producer,
}

impl Outgoing {
    /// Creates the sending side over the writing side of a ring.
    pub fn new(ring: Producer) -> Outgoing {
        Outgoing { ring }
    }

    /// Returns the writing side of the ring.
    pub fn ring(&mut self) -> &mut Producer {
        &mut self.ring
    }

    /// Publishes one frame with the first bytes of `slices`, as many as `room` words have space for. Returns
    /// their number, 0 if there is no space.
    pub fn send_bytes<W: Word>(&mut self, region: &[W], room: usize, slices: &[&[u8]]) -> usize {
        let whole: usize = slices.iter().map(|slice| slice.len()).sum();
        let bytes = whole.min(room.saturating_sub(1).saturating_mul(WORD_BYTES)).min(u32::MAX as usize);
        if bytes == 0 {
            return 0;
        }
        let words = bytes.div_ceil(WORD_BYTES);
        let targets = self.ring.unpublished(region, 1, words);
        let mut writer = Writer { targets, partial: [0; WORD_BYTES], filled: 0 };
        let mut left = bytes;
        for slice in slices {
            let part = &slice[..slice.len().min(left)];
            left -= part.len();
            writer.write(part);
        }
        writer.finish();
        self.send_head(region, head(BYTES, bytes), 1 + words);
        bytes
    }

    /// Publishes the frame of a file whose descriptor was passed. The caller has checked that there is room
    /// for [`FILE_FRAME_WORDS`].
    pub fn send_file<W: Word>(&mut self, region: &[W], offset: u64, length: u64) {
        let targets = self.ring.unpublished(region, 1, FILE_FRAME_WORDS - 1);
        for (to, value) in targets.into_iter().flatten().zip([offset, length]) {
            to.store(value, Ordering::Relaxed);
        }
        self.send_head(region, head(FILE, 0), FILE_FRAME_WORDS);
    }

    /// Publishes the end. The caller has checked that there is room for a word.
    pub fn send_end<W: Word>(&mut self, region: &[W]) {
        self.send_head(region, head(END, 0), 1);
    }

    /// Publishes that nothing more will come, although not everything was sent. The caller has checked that
    /// there is room for a word.
    pub fn send_abort<W: Word>(&mut self, region: &[W]) {
        self.send_head(region, head(ABORT, 0), 1);
    }

    /// Writes the head of a frame and publishes the whole of it.
    fn send_head<W: Word>(&mut self, region: &[W], head: u64, words: usize) {
        for to in self.ring.unpublished(region, 0, 1).into_iter().flatten() {
            to.store(head, Ordering::Relaxed);
        }
        self.ring.publish(region, words);
    }
}

fn head(kind: u64, length: usize) -> u64 {
    kind | (length as u64) << LENGTH_SHIFT
}

/// Writes bytes into words.
struct Writer<'r, W> {
    /// The words that are left.
    targets: [&'r [W]; 2],
    /// The bytes of a word that is not complete.
    partial: [u8; WORD_BYTES],
    filled: usize,
}

impl<W: Word> Writer<'_, W> {
    fn write(&mut self, mut bytes: &[u8]) {
        if self.filled > 0 {
            let (first, rest) = bytes.split_at(bytes.len().min(WORD_BYTES - self.filled));
            self.partial[self.filled..self.filled + first.len()].copy_from_slice(first);
            self.filled += first.len();
            bytes = rest;
            if self.filled == WORD_BYTES {
                self.finish();
            }
        }
        let (whole, rest) = bytes.as_chunks::<WORD_BYTES>();
        self.store(whole);
        if !rest.is_empty() {
            self.partial[..rest.len()].copy_from_slice(rest);
            self.filled = rest.len();
        }
    }

    /// Writes the last word, if it is not complete.
    fn finish(&mut self) {
        if self.filled > 0 {
            self.store(&[self.partial]);
            (self.partial, self.filled) = ([0; WORD_BYTES], 0);
        }
    }

    fn store(&mut self, mut whole: &[[u8; WORD_BYTES]]) {
        for targets in &mut self.targets {
            let count = whole.len().min(targets.len());
            for (word, to) in whole[..count].iter().zip(*targets) {
                to.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            }
            (whole, *targets) = (&whole[count..], &targets[count..]);
        }
    }
}
