//! Frames in a ring: every split, every position of the wrap, every corruption.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs,
    reason = "tests"
)]

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_channel::frame::{FILE_FRAME_WORDS, Front, Incoming, Outgoing};
use plimsoll_channel::ring::{Consumer, Corrupt, Layout, Producer};
use proptest::prelude::*;

/// Index of the writer's position in the header.
const TAIL: usize = 0;
/// Index of the reader's position.
const HEAD: usize = 8;

/// A region with one ring in use.
struct Region {
    words: Vec<AtomicU64>,
    layout: Layout,
}

impl Region {
    fn new(ring_bytes: usize) -> Region {
        let count = Layout::words(ring_bytes);
        let words = (0..count).map(|_| AtomicU64::new(0)).collect();
        Region { words, layout: Layout::of(count).unwrap() }
    }

    fn sides(&self) -> (Outgoing, Incoming) {
        let place = self.layout.to_acceptor;
        (Outgoing::new(Producer::new(place)), Incoming::new(Consumer::new(place)))
    }

    /// Returns the data of the ring.
    fn data(&self) -> &[AtomicU64] {
        let capacity = self.layout.to_acceptor.capacity();
        let start = self.words.len() - 2 * capacity;
        &self.words[start..start + capacity]
    }
}

fn received(region: &Region, incoming: &mut Incoming, lease_bytes: usize) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Front::Bytes(_) = incoming.front(&region.words).unwrap() {
        let mut part = Vec::with_capacity(lease_bytes);
        let taken = incoming.take_bytes(&region.words, &mut part, usize::MAX);
        assert_eq!(taken, part.len());
        assert!(taken > 0, "a word fits");
        whole.extend(part);
    }
    whole
}

#[test]
fn bytes_arrive_whole_wherever_they_are_split_and_the_ring_wraps() {
    let bytes: Vec<u8> = (0..41).collect();
    for split in 0..=bytes.len() {
        let region = Region::new(128);
        let (mut outgoing, mut incoming) = region.sides();
        // Each round begins at another word of the ring.
        for _ in 0..2 * region.layout.to_acceptor.capacity() {
            for part in [&bytes[..split], &bytes[split..]] {
                let room = outgoing.ring().room(&region.words).unwrap();
                assert_eq!(outgoing.send_bytes(&region.words, room, &[part]), part.len());
            }
            assert_eq!(received(&region, &mut incoming, 16), bytes, "split at {split}");
        }
    }
}

#[test]
fn slices_of_every_length_are_joined_in_one_frame() {
    let bytes: Vec<u8> = (0..60).collect();
    for one in 0..20 {
        for two in 0..20 {
            let region = Region::new(256);
            let (mut outgoing, mut incoming) = region.sides();
            let slices = [&bytes[..one], &bytes[one..one + two], &bytes[one + two..]];
            assert_eq!(outgoing.send_bytes(&region.words, 32, &slices), bytes.len());
            assert_eq!(incoming.front(&region.words), Ok(Front::Bytes(bytes.len())));
            assert_eq!(received(&region, &mut incoming, 64), bytes);
        }
    }
}

#[test]
fn a_frame_is_as_long_as_there_is_room_for() {
    let region = Region::new(128);
    let (mut outgoing, mut incoming) = region.sides();
    for room in 0..2 {
        assert_eq!(outgoing.send_bytes(&region.words, room, &[b"abc"]), 0);
    }
    assert_eq!(outgoing.send_bytes(&region.words, 16, &[&[7; 1000]]), 15 * 8);
    assert_eq!(outgoing.ring().room(&region.words), Ok(0));
    assert_eq!(received(&region, &mut incoming, 1000), [7; 15 * 8]);
    assert_eq!(outgoing.ring().room(&region.words), Ok(16));
}

#[test]
fn files_and_the_end_keep_their_place_between_bytes() {
    let region = Region::new(128);
    let (mut outgoing, mut incoming) = region.sides();
    outgoing.send_bytes(&region.words, 16, &[b"head"]);
    outgoing.send_file(&region.words, 5, 7);
    outgoing.send_bytes(&region.words, 16 - 2 - FILE_FRAME_WORDS, &[b"tail"]);
    outgoing.send_end(&region.words);
    assert_eq!(received(&region, &mut incoming, 64), b"head");
    let file = Front::File { offset: 5, length: 7 };
    assert_eq!(incoming.front(&region.words), Ok(file));
    assert_eq!(incoming.front(&region.words), Ok(file), "it stays until it is taken");
    incoming.take_file();
    assert_eq!(received(&region, &mut incoming, 64), b"tail");
    assert_eq!(incoming.front(&region.words), Ok(Front::End));
    assert_eq!(incoming.front(&region.words), Ok(Front::End));
}

#[test]
fn a_frame_cut_off_at_any_word_is_corrupt() {
    let frames: [fn(&mut Outgoing, &[AtomicU64]); 2] = [
        |outgoing, words| assert_eq!(outgoing.send_bytes(words, 16, &[&[1; 100]]), 100),
        |outgoing, words| outgoing.send_file(words, 1, 2),
    ];
    for send in frames {
        let region = Region::new(128);
        let (mut outgoing, _) = region.sides();
        send(&mut outgoing, &region.words);
        let (whole, _) = outgoing.ring().positions();
        for cut in 1..whole {
            region.words[TAIL].store(cut, Ordering::Relaxed);
            let (_, mut incoming) = region.sides();
            assert!(incoming.front(&region.words).is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn a_head_with_anything_wrong_is_corrupt() {
    let length = 1 << 32;
    let wrong = [
        0,
        1,
        5 | length,
        0x101 | length,
        1 | 1 << 31 | length,
        2 | length,
        3 | length,
        4 | length,
        1 | 0xFFFF_FFFF << 32,
        u64::MAX,
    ];
    for head in wrong {
        let region = Region::new(128);
        region.data()[0].store(head, Ordering::Relaxed);
        region.words[TAIL].store(16, Ordering::Relaxed);
        let (_, mut incoming) = region.sides();
        assert!(incoming.front(&region.words).is_err(), "{head:#x}");
    }
    for (offset, length) in [(0, 0), (u64::MAX, 1), (1 << 63, 1), (1, u64::MAX), (0, 1 << 63)] {
        let region = Region::new(128);
        let (mut outgoing, mut incoming) = region.sides();
        outgoing.send_file(&region.words, offset, length);
        assert!(incoming.front(&region.words).is_err(), "{offset} {length}");
    }
}

#[test]
fn a_position_outside_the_ring_or_backwards_is_corrupt() {
    for tail in [17, 1 << 32, u64::MAX, u64::MAX - 15] {
        let region = Region::new(128);
        let (_, mut incoming) = region.sides();
        region.words[TAIL].store(tail, Ordering::Relaxed);
        assert!(incoming.front(&region.words).is_err(), "{tail}");
    }
    let region = Region::new(128);
    let (mut outgoing, mut incoming) = region.sides();
    outgoing.send_bytes(&region.words, 16, &[b"12345678"]);
    outgoing.send_bytes(&region.words, 14, &[b"12345678"]);
    assert_eq!(incoming.front(&region.words), Ok(Front::Bytes(8)));
    let mut part = Vec::with_capacity(8);
    incoming.take_bytes(&region.words, &mut part, 8);
    region.words[TAIL].store(2, Ordering::Relaxed);
    assert!(matches!(incoming.front(&region.words), Err(Corrupt(_))), "it was behind four words before");
    for head in [5, u64::MAX] {
        region.words[HEAD].store(head, Ordering::Relaxed);
        assert!(outgoing.ring().room(&region.words).is_err(), "{head}");
    }
    region.words[HEAD].store(2, Ordering::Relaxed);
    assert!(outgoing.ring().room(&region.words).is_ok());
    region.words[HEAD].store(0, Ordering::Relaxed);
    assert!(outgoing.ring().room(&region.words).is_err(), "it was further before");
}

#[test]
fn only_regions_with_two_equal_rings_have_a_layout() {
    for words in [0, 1, 127, 128, 130, 128 + 2 * 15, 128 + 2 * 17, 128 + 2 * 16 + 1, usize::MAX] {
        assert_eq!(Layout::of(words), None, "{words}");
    }
    assert!(Layout::of(128 + 2 * 16).is_some());
    for ring_bytes in [0, 1, 1000, 1 << 20, usize::MAX] {
        assert!(Layout::of(Layout::words(ring_bytes)).is_some(), "{ring_bytes}");
    }
}

proptest! {
    /// Reading arbitrary contents ends: with an error, an end, or an empty ring.
    #[test]
    fn reading_nonsense_ends(words in prop::collection::vec(any::<u64>(), 16), tail in 0..20u64) {
        let region = Region::new(128);
        for (to, word) in region.data().iter().zip(words) {
            // Mostly frames of a known kind and a small length.
            let word = if word % 3 == 0 { word } else { word & 0x1F_0000_0007 };
            to.store(word, Ordering::Relaxed);
        }
        region.words[TAIL].store(tail, Ordering::Relaxed);
        let (_, mut incoming) = region.sides();
        let mut steps = 0;
        loop {
            steps += 1;
            prop_assert!(steps < 100, "it goes on for ever");
            match incoming.front(&region.words) {
                Ok(Front::Bytes(bytes)) => {
                    prop_assert!(bytes <= 16 * 8);
                    let mut part = Vec::with_capacity(24);
                    prop_assert!(incoming.take_bytes(&region.words, &mut part, usize::MAX) > 0);
                }
                Ok(Front::File { offset, length }) => {
                    prop_assert!(offset.checked_add(length).is_some());
                    incoming.take_file();
                }
                Ok(Front::Empty | Front::End | Front::Abort) | Err(_) => break,
            }
        }
    }
}
