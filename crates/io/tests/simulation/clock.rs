//! The virtual clock.

use std::time::{Duration, SystemTime};

use plimsoll_io::Instant;
use plimsoll_io::sim::{Faults, START, Sim, seeds};

use crate::SECOND;

#[test]
fn the_clock_advances_only_when_no_task_is_ready() {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        let (io, busy) = (host.io(), host.io());
        sim.spawn(&host, Box::pin(async move { io.sleep(Duration::from_nanos(1)).await }));
        sim.run(&host, async move {
            for _ in 0..1000 {
                assert_eq!(busy.now(), Instant::default());
                busy.yield_now().await;
            }
        });
        assert_eq!(sim.now(), Instant::default());
    }
}

#[test]
fn a_sleep_ends_exactly_then_and_in_the_order_of_time() {
    let sim = Sim::new(1, Faults::splits());
    let host = sim.host("one");
    let io = host.io();
    let order = sim.run(&host, async move {
        let order = std::cell::RefCell::new(Vec::new());
        let nap = async |seconds: u32| {
            io.sleep(SECOND * seconds).await;
            order.borrow_mut().push((seconds, io.now().since_start()));
        };
        plimsoll_io::join(nap(3), plimsoll_io::join(nap(1), nap(2))).await;
        order.into_inner()
    });
    assert_eq!(order, [(1, SECOND), (2, SECOND * 2), (3, SECOND * 3)]);
}

#[test]
fn the_time_of_day_starts_with_2026_and_moves_with_the_clock() {
    let sim = Sim::new(1, Faults::none());
    let host = sim.host("one");
    let io = host.io();
    let wall = sim.run(&host, async move {
        io.sleep(SECOND * 90).await;
        io.wall()
    });
    assert_eq!(wall, SystemTime::UNIX_EPOCH + START + SECOND * 90);
    assert_eq!(START.as_secs(), 20_454 * 24 * 3600);
}

#[test]
fn an_instant_saturates_and_never_goes_below_zero() {
    let now = Instant::from_start(SECOND);
    assert_eq!(Instant::NEVER + SECOND, Instant::NEVER);
    assert_eq!(now - (now + SECOND), Duration::ZERO);
    assert_eq!((now + SECOND) - now, SECOND);
}
