//! The contents of a channel's ring, as a hostile peer writes them.
//!
//! Invariants: reading ends, and never outside the ring; no byte sequence causes a panic.
#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzz_target;
use plimsoll_channel::frame::{Front, Incoming, Outgoing};
use plimsoll_channel::doorbell;
use plimsoll_channel::limits::{DOORBELL_BYTES, DOORBELL_CHANNELS};
use plimsoll_channel::message::{number_of, region_bytes_of, version_of};
use plimsoll_channel::ring::{Consumer, Layout, Producer};

/// Words of each ring.
const CAPACITY: usize = 32;
/// Reads of one input: more than frames fit into the ring, because the input also moves the positions.
const STEPS: usize = 200;

fuzz_target!(|bytes: &[u8]| {
    let _ = (version_of(bytes), region_bytes_of(bytes));
    assert!(number_of(bytes).is_ok_and(|number| number < DOORBELL_CHANNELS) || number_of(bytes).is_err());
    let page: Vec<AtomicU64> = (0..DOORBELL_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
    let count = Layout::words(CAPACITY * 8);
    let words: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
    let layout = Layout::of(count).expect("a region of this size");
    let mut incoming = Incoming::new(Consumer::new(layout.to_acceptor));
    let mut outgoing = Outgoing::new(Producer::new(layout.to_connector));
    // Each ten bytes are a store of the peer: an index, and a value. After each, both sides are used.
    let mut stores = bytes.chunks_exact(10).take(STEPS);
    for store in stores.by_ref() {
        let index = usize::from(u16::from_le_bytes([store[0], store[1]])) % count;
        let value = u64::from_le_bytes(store[2..].try_into().expect("eight bytes"));
        words[index].store(value, Ordering::Relaxed);
        page[index % page.len()].store(value, Ordering::Relaxed);
        doorbell::press(&page, index % DOORBELL_CHANNELS);
        doorbell::about_to_wait(&page);
        let mut is_reported = false;
        doorbell::take(&page, |channel| {
            assert!(channel < DOORBELL_CHANNELS);
            is_reported |= channel == index % DOORBELL_CHANNELS;
        });
        assert!(is_reported);
        match incoming.front(&words) {
            Ok(Front::Bytes(left)) => {
                assert!(left <= CAPACITY * 8);
                let mut part = Vec::with_capacity(usize::from(store[0]) + 8);
                assert!(incoming.take_bytes(&words, &mut part, usize::MAX) > 0);
            }
            Ok(Front::File { offset, length }) => {
                assert!(offset.checked_add(length).is_some());
                incoming.take_file();
            }
            Ok(Front::Empty | Front::End | Front::Abort) | Err(_) => {}
        }
        let _ = (incoming.ring().about_to_wait(&words), incoming.ring().must_wake(&words));
        if let Ok(room) = outgoing.ring().room(&words) {
            assert!(room <= CAPACITY);
            outgoing.send_bytes(&words, room, &[store]);
        }
        let _ = (outgoing.ring().about_to_wait(&words), outgoing.ring().wakeup(&words));
    }
});
