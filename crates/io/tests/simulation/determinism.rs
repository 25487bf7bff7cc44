//! A run is a function of its seed and its faults.

use plimsoll_io::sim::{Chance, Faults, LINK_DELAY, Sim, seeds};

use crate::{at, bytes, echo_setup, owned, receive_all};

/// Runs one echoed exchange. Returns the digest of all its events.
fn digest(seed: u64, faults: Faults) -> u64 {
    let sim = Sim::new(seed, faults);
    let (client, server) = (sim.host("client"), sim.host("server"));
    sim.serve(&server, &at(), &echo_setup()).unwrap();
    let io = client.io();
    sim.run(&client, async move {
        let mut stream = io.connect(&at()).await.unwrap();
        stream.tx.push(owned(&bytes(500)));
        stream.tx.finish();
        let _ = receive_all(&mut stream.rx).await;
    });
    sim.trace_digest()
}

#[test]
fn the_same_seed_replays_exactly() {
    for seed in seeds(50) {
        assert_eq!(digest(seed, Faults::splits()), digest(seed, Faults::splits()));
        assert_eq!(digest(seed, Faults::resets(20)), digest(seed, Faults::resets(20)));
    }
}

#[test]
fn different_seeds_do_different_things() {
    let mut digests: Vec<u64> = (0..100).map(|seed| digest(seed, Faults::splits())).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 100);
}

#[test]
fn without_faults_the_seed_does_not_matter() {
    assert_eq!(digest(1, Faults::none()), digest(2, Faults::none()));
}

#[test]
fn other_faults_do_other_things() {
    assert_ne!(digest(1, Faults::splits()), digest(1, Faults::none()));
}

#[test]
fn entropy_is_the_seeds() {
    let drawn = |seed| {
        let sim = Sim::new(seed, Faults::none());
        let mut bytes = [0; 13];
        sim.host("one").io().entropy(&mut bytes);
        bytes
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn a_forked_chance_goes_its_own_way() {
    let mut chance = Chance::new(3);
    let mut fork = chance.fork();
    assert_ne!(chance.draw(), fork.draw());
}

#[test]
fn the_trace_tells_host_and_event_and_keeps_the_last_ones() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("alone");
    let io = host.io();
    sim.run(&host, async move {
        for _ in 0..500 {
            io.yield_now().await;
        }
    });
    let trace = sim.trace();
    assert!(trace.starts_with("103 earlier events are not kept\n"), "{trace}");
    assert!(trace.contains("alone    task 1          Polled\n"), "{trace}");
}

/// Returns the order in which three tasks of one host, ready together, are polled.
fn order(seed: u64, faults: Faults) -> Vec<u32> {
    let sim = Sim::new(seed, faults);
    let host = sim.host("one");
    let order = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    for number in 0..3 {
        let order = order.clone();
        sim.spawn(&host, Box::pin(async move { order.borrow_mut().push(number) }));
    }
    let io = host.io();
    sim.run(&host, async move { io.yield_now().await });
    order.take()
}

#[test]
fn tasks_that_are_ready_together_are_polled_in_every_order() {
    let orders: std::collections::BTreeSet<_> = (0..100).map(|seed| order(seed, Faults::splits())).collect();
    assert_eq!(orders.len(), 6);
    assert_eq!(order(0, Faults::none()), [0, 1, 2]);
}

#[test]
fn delays_are_the_seeds_and_at_most_what_was_set() {
    let connected = |seed, faults: Faults| {
        let sim = Sim::new(seed, faults);
        let host = sim.host("one");
        let (io, _listener) = (host.io(), host.io().listen(&at()).unwrap());
        sim.run(&host, async move { io.connect(&at()).await.map(drop).unwrap() });
        sim.now().since_start()
    };
    let delays: std::collections::BTreeSet<_> =
        (0..50).map(|seed| connected(seed, Faults::splits())).collect();
    assert!(delays.len() > 10, "{delays:?}");
    assert!(delays.iter().all(|delay| *delay <= Faults::splits().delay_max + LINK_DELAY * 2));
    assert_eq!(connected(1, Faults::none()), LINK_DELAY * 2);
}
