//! The ways in which a simulation fails its test.

use std::future::pending;

use plimsoll_io::sim::{Faults, Sim};

use crate::SECOND;

fn alone(main: impl AsyncFnOnce(plimsoll_io::Io) + 'static) -> Sim {
    let sim = Sim::new(7, Faults::splits());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move { main(io).await });
    sim
}

#[test]
#[should_panic(expected = "seed 7: deadlock")]
fn a_task_that_waits_forever_fails_with_a_message() {
    alone(async |_| pending().await);
}

#[test]
#[should_panic(expected = "more than RUN_TIME_MAX")]
fn waiting_longer_than_any_test_should_fails() {
    alone(async |io| io.sleep(SECOND * 3601).await);
}

#[test]
#[should_panic(expected = "run in a circle")]
fn a_task_that_runs_in_a_circle_fails() {
    alone(async |io| {
        loop {
            io.yield_now().await;
        }
    });
}

#[test]
#[should_panic(expected = "the test's own words")]
fn a_panic_of_the_main_task_is_the_tests() {
    alone(async |_| panic!("the test's own words"));
}

#[test]
fn a_panic_of_another_task_is_noted() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    sim.spawn(&host, Box::pin(async { panic!("beside") }));
    let io = host.io();
    sim.run(&host, async move { io.yield_now().await });
    assert_eq!(sim.panics(), ["one: beside"]);
}

#[test]
fn tasks_stay_for_the_next_run() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let task = sim.spawn(&host, Box::pin(pending()));
    for run in 1..3 {
        let io = host.io();
        sim.run(&host, async move { io.sleep(SECOND).await });
        assert_eq!((sim.live_tasks(), sim.is_live(task)), (1, true));
        assert_eq!(sim.now().since_start(), SECOND * run);
    }
}
