//! Two waits at once, and the order to stop.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_io::sim::{Faults, Sim, seeds};
use plimsoll_io::{Either, Want, join, select};

use crate::{SECOND, converse, owned, two_hosts};

#[test]
fn select_takes_whichever_is_first_and_the_left_one_if_both_are() {
    let sim = Sim::new(0, Faults::splits());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move {
        assert_eq!(select(async { 1 }, async { 2 }).await, Either::Left(1));
        assert_eq!(select(io.sleep(SECOND * 2), io.sleep(SECOND)).await, Either::Right(()));
        assert_eq!(io.now().since_start(), SECOND);
    });
}

#[test]
fn join_waits_for_both_and_polls_neither_after_its_end() {
    let sim = Sim::new(0, Faults::splits());
    let host = sim.host("one");
    let io = host.io();
    let both = sim.run(&host, async move {
        let late = async {
            io.sleep(SECOND).await;
            io.sleep(SECOND).await;
            io.now().since_start()
        };
        join(late, async { "early" }).await
    });
    assert_eq!(both, (SECOND * 2, "early"));
}

#[test]
fn a_receive_that_loses_a_race_loses_no_byte() {
    for seed in seeds(100) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let io = far.io();
        let ((), received) = converse(
            &sim,
            (&near, &far),
            async |mut stream| {
                stream.tx.push(owned(b"each byte once"));
                stream.finish().await.unwrap();
            },
            async move |mut stream| {
                let mut received = Vec::new();
                loop {
                    let race = select(io.yield_now(), stream.rx.recv(Want::Head)).await;
                    let Either::Right(found) = race else {
                        io.sleep(SECOND / 1000).await;
                        continue;
                    };
                    let Some(lease) = found.unwrap() else { break };
                    received.extend_from_slice(&lease);
                }
                stream.tx.finish();
                received
            },
        );
        assert_eq!(received, b"each byte once");
    }
}

#[test]
fn stop_reaches_every_idle_wait() {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        let ended = Rc::new(Cell::new(0));
        for _ in 0..5 {
            let (io, ended) = (host.io(), Rc::clone(&ended));
            let idle = async move {
                let stopped = select(io.sleep(SECOND * 60), io.stopping()).await;
                assert_eq!(stopped, Either::Right(()));
                ended.set(ended.get() + 1);
            };
            sim.spawn(&host, Box::pin(idle));
        }
        let (io, orders) = (host.io(), host.clone());
        sim.run(&host, async move {
            io.sleep(SECOND).await;
            orders.order_stop();
            io.sleep(SECOND).await;
        });
        assert_eq!((ended.get(), sim.panics()), (5, Vec::new()));
    }
}

#[test]
fn stop_is_level_triggered_and_one_hosts_own() {
    let (sim, near, far) = two_hosts(0, Faults::none());
    near.order_stop();
    let (near_io, far_io) = (near.io(), far.io());
    sim.run(&near, async move {
        near_io.stopping().await;
        near_io.stopping().await;
        assert!(near_io.is_stopping() && !far_io.is_stopping());
    });
}

#[test]
fn the_task_that_orders_the_stop_is_woken_too() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let (io, orders) = (host.io(), host.clone());
    sim.run(&host, async move { join(io.stopping(), async { orders.order_stop() }).await });
}

#[test]
fn yielding_lets_every_other_task_have_its_turn() {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        let turns = Rc::new(Cell::new(0));
        for _ in 0..3 {
            let turns = Rc::clone(&turns);
            sim.spawn(&host, Box::pin(async move { turns.set(turns.get() + 1) }));
        }
        let (io, seen) = (host.io(), Rc::clone(&turns));
        sim.run(&host, async move {
            io.yield_now().await;
            assert_eq!(seen.get(), 3);
        });
    }
}
