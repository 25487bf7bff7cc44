//! An event loop for each thread, over epoll or io_uring; connections stay on the loop that accepted them.
//!
//! It has no balancer: the kernel wakes one loop per connection that arrives, a busy loop later than an idle
//! one. Invariant: loops share nothing but the listeners, the thread pools for blocking work, and counters.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Handler, Setup};

use super::Plan;
use super::dispatch::{Accepted, accept_all, always};
use crate::connections::{Connections, serve_until_evicted};
use crate::driver::Driver;
use crate::offload::Offload;
use crate::ready::Bound;

pub(super) fn serve(plan: Plan) -> io::Result<()> {
    plan.listeners.iter().for_each(|(bound, _)| bound.defer());
    let offload = plan.engine.offload()?;
    let mut loops = Vec::new();
    for number in 1..plan.threads.max(1) {
        let part = Loop::of(&plan, &offload)?;
        let named = std::thread::Builder::new().name(format!("loop-{number}"));
        loops.push(named.spawn(move || part.run())?);
    }
    let first = Loop { plan, offload };
    let mut result = first.run();
    for other in loops {
        let ended = other.join().unwrap_or_else(|_| Err(io::Error::other("a loop panicked")));
        result = result.and(ended);
    }
    result
}

/// One event loop's thread: its plan and pools.
struct Loop {
    plan: Plan,
    offload: Offload,
}

impl Loop {
    fn of(plan: &Plan, offload: &Offload) -> io::Result<Loop> {
        let listeners =
            plan.listeners.iter().map(|(bound, setup)| Ok((bound.try_clone()?, Arc::clone(setup))));
        let listeners = listeners.collect::<io::Result<Vec<(Bound, Setup)>>>()?;
        let (stop, connections) = (plan.stop.clone(), Arc::clone(&plan.connections));
        Ok(Loop { plan: Plan { listeners, stop, connections, ..*plan }, offload: offload.clone() })
    }

    fn run(self) -> io::Result<()> {
        let Plan { engine, listeners, stop, connections, grace, .. } = self.plan;
        let driver = Driver::new(engine.wait(), self.offload, &stop, &connections)?;
        let _entered = driver.enter();
        let result = run_on(&driver, listeners, &connections, grace);
        driver.clear();
        result
    }
}

fn run_on(
    driver: &Rc<Driver>,
    listeners: Vec<(Bound, Setup)>,
    connections: &Arc<Connections>,
    grace: Duration,
) -> io::Result<()> {
    let mut accepting = Vec::new();
    let open = Rc::new(());
    // The listeners share the thread's resources, and its bounds.
    let io = driver.io();
    for (bound, setup) in listeners {
        let handler = setup(io.clone());
        driver.spawn(handler.background());
        let (spawner, counted) = (Rc::clone(driver), Rc::clone(&open));
        let serve = move |accepted| serve_here(&spawner, &handler, accepted, &counted);
        let accepts = accept_all(driver, bound, connections, always, serve);
        accepting.push(driver.spawn(Box::pin(accepts)));
    }
    // An accepting task holds `open`, too, until it ends at the order to stop.
    driver.run(grace, || accepting.iter().all(|task| !driver.is_live(*task)) && Rc::strong_count(&open) == 1);
    connections.count_cut_off(Rc::strong_count(&open) - 1);
    Ok(())
}

fn serve_here(driver: &Rc<Driver>, handler: &Rc<dyn Handler>, accepted: Accepted, open: &Rc<()>) {
    let Accepted { fd, peer, admitted } = accepted;
    let stream = driver.sockets().accepted(fd, peer, admitted.entry().slot());
    let (connection, open) = (serve_until_evicted(admitted.entry(), handler.serve(stream)), Rc::clone(open));
    driver.spawn(Box::pin(async move {
        let _counted = (admitted, open);
        connection.await;
    }));
}
