//! A model of the ring, of the doorbell and of their wake-ups. It tries every order of the two sides'
//! accesses that the memory model permits: no word and no wake-up is lost.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

use std::sync::atomic::Ordering;

use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Notify};
use plimsoll_channel::doorbell;
use plimsoll_channel::ring::{Consumer, Layout, Producer, Wakeup};
use plimsoll_channel::word::Word;

/// Words of an item: half of the smallest ring, so that the third item has to wait for room.
const ITEM_WORDS: usize = 8;
const RING_BYTES: usize = 128;
/// Words of a doorbell with marks for 64 channels.
const DOORBELL_WORDS: usize = 9;

/// A word of the model. Without `FENCED`, its fences do nothing.
struct ModelWord<const FENCED: bool>(AtomicU64);

impl<const FENCED: bool> Word for ModelWord<FENCED> {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.0.swap(value, order)
    }

    fn fetch_or(&self, bits: u64, order: Ordering) {
        self.0.fetch_or(bits, order);
    }

    fn fence() {
        if FENCED {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }
}

/// The shared memory and the eventfd of each side.
struct Shared<const FENCED: bool> {
    words: Vec<ModelWord<FENCED>>,
    of_producer: Notify,
    of_consumer: Notify,
}

fn produce<const FENCED: bool>(shared: &Shared<FENCED>, layout: Layout, items: u64) {
    let mut ring = Producer::new(layout.to_acceptor);
    for item in 1..=items {
        while ring.room(&shared.words).unwrap() < ITEM_WORDS {
            if ring.about_to_wait(&shared.words).unwrap() < ITEM_WORDS {
                shared.of_producer.wait();
            }
        }
        let [first, _] = ring.unpublished(&shared.words, 0, ITEM_WORDS);
        first[0].store(item, Ordering::Relaxed);
        ring.publish(&shared.words, ITEM_WORDS);
        ModelWord::<FENCED>::fence();
        if ring.wakeup(&shared.words) != Wakeup::None {
            shared.of_consumer.notify();
        }
    }
}

fn consume<const FENCED: bool>(shared: &Shared<FENCED>, layout: Layout, items: u64) {
    let mut ring = Consumer::new(layout.to_acceptor);
    for item in 1..=items {
        while ring.available(&shared.words).unwrap() == 0 {
            if ring.about_to_wait(&shared.words).unwrap() == 0 {
                shared.of_consumer.wait();
            }
        }
        assert_eq!(ring.word(&shared.words, 0), item);
        ring.release(&shared.words, ITEM_WORDS);
        ModelWord::<FENCED>::fence();
        if ring.must_wake(&shared.words) {
            shared.of_producer.notify();
        }
    }
}

fn try_every_order<const FENCED: bool>(items: u64) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let count = Layout::words(RING_BYTES);
        let layout = Layout::of(count).unwrap();
        let words = (0..count).map(|_| ModelWord(AtomicU64::new(0))).collect();
        let shared =
            Arc::new(Shared::<FENCED> { words, of_producer: Notify::new(), of_consumer: Notify::new() });
        let theirs = Arc::clone(&shared);
        let producer = loom::thread::spawn(move || produce(&theirs, layout, items));
        consume(&shared, layout, items);
        producer.join().unwrap();
    });
}

#[test]
fn every_word_arrives_in_order_and_no_wakeup_is_lost() {
    try_every_order::<true>(2);
}

#[test]
fn a_producer_that_waits_for_room_is_woken() {
    try_every_order::<true>(3);
}

/// A thread with two channels, whose doorbell is pressed by two others.
struct Owner<const FENCED: bool> {
    page: Vec<ModelWord<FENCED>>,
    /// The data of the other threads for it.
    written: [ModelWord<FENCED>; 2],
    eventfd: Notify,
}

impl<const FENCED: bool> Owner<FENCED> {
    fn new() -> Arc<Owner<FENCED>> {
        let words = || ModelWord(AtomicU64::new(0));
        let page = (0..DOORBELL_WORDS).map(|_| words()).collect();
        Arc::new(Owner { page, written: [words(), words()], eventfd: Notify::new() })
    }

    fn write(&self, channel: usize) {
        self.written[channel].store(1, Ordering::Relaxed);
        if doorbell::press(&self.page, channel) {
            self.eventfd.notify();
        }
    }

    /// Runs the turns of the owner's thread, until all channels are reported.
    fn run(&self, channels: usize) {
        let mut reported = 0;
        while reported < channels {
            if !doorbell::about_to_wait(&self.page) {
                self.eventfd.wait();
            }
            doorbell::take(&self.page, |channel| {
                assert_eq!(self.written[channel].load(Ordering::Relaxed), 1);
                reported += 1;
            });
        }
    }
}

fn press_in_every_order<const FENCED: bool>(channels: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let owner = Owner::<FENCED>::new();
        let threads: Vec<_> = (0..channels)
            .map(|channel| {
                let owner = Arc::clone(&owner);
                loom::thread::spawn(move || owner.write(channel))
            })
            .collect();
        owner.run(channels);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn every_channel_of_a_doorbell_is_reported() {
    press_in_every_order::<true>(1);
    press_in_every_order::<true>(2);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fences_the_model_finds_a_doorbell_that_is_not_heard() {
    press_in_every_order::<false>(1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fences_the_model_finds_a_lost_wakeup() {
    try_every_order::<false>(2);
}
