//! A thread for each connection, which waits in poll(2).
//!
//! It is not bounded by a queue (`pool` is), only by the connection slots. Invariant: a connection's thread
//! shares nothing with others but counters and the pools for long work, and may block without delaying other
//! connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Setup, Stop};

use super::dispatch::{Accepted, accept_all, always, has_disconnected};
use super::{EngineKind, Plan};
use crate::connections::{Connections, serve_until_evicted};
use crate::driver::Driver;
use crate::limits::CONNECTION_STACK_BYTES;
use crate::offload::Offload;

pub(super) fn serve(plan: Plan) -> io::Result<()> {
    let Plan { listeners, stop, connections, grace, .. } = plan;
    let offload = EngineKind::Thread.offload()?;
    let driver = Driver::new(EngineKind::Thread.wait(), offload.clone(), &stop, &connections)?;
    let entered = driver.enter();
    let mut accepting = Vec::new();
    for (bound, setup) in listeners {
        let (stop, offload, connections_of) = (stop.clone(), offload.clone(), Arc::clone(&connections));
        let context = ThreadContext { setup, stop, offload, connections: connections_of, grace };
        let serve = move |accepted| serve_on_thread(accepted, context.clone());
        let accepts = accept_all(&driver, bound, &connections, always, serve);
        accepting.push(driver.spawn(Box::pin(accepts)));
    }
    driver.run(grace, || accepting.iter().all(|task| !driver.is_live(*task)));
    driver.clear();
    drop(entered);
    // Each thread ends itself when the grace period is over, a moment later than this one would.
    connections.wait_until_none(grace + Duration::from_secs(1));
    Ok(())
}

/// The handles of one connection's thread.
#[derive(Clone)]
struct ThreadContext {
    setup: Setup,
    stop: Stop,
    offload: Offload,
    connections: Arc<Connections>,
    grace: Duration,
}

fn serve_on_thread(accepted: Accepted, context: ThreadContext) {
    if has_disconnected(&accepted) {
        return;
    }
    let thread = std::thread::Builder::new().name("connection".to_owned()).stack_size(CONNECTION_STACK_BYTES);
    let started = thread.spawn(move || {
        if let Err(error) = serve_alone(accepted, context) {
            tracing::warn!(%error, "a connection could not be served");
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "no thread for a connection; it was dropped");
    }
}

fn serve_alone(accepted: Accepted, context: ThreadContext) -> io::Result<()> {
    let (Accepted { fd, peer, admitted }, ThreadContext { setup, stop, offload, connections, grace }) =
        (accepted, context);
    let driver = Driver::new(EngineKind::Thread.wait(), offload, &stop, &connections)?;
    let _entered = driver.enter();
    let handler = setup(driver.io());
    driver.spawn(handler.background());
    let stream = driver.sockets().accepted(fd, peer, admitted.entry().slot());
    let connection = driver.spawn(Box::pin(serve_until_evicted(admitted.entry(), handler.serve(stream))));
    driver.run(grace, || !driver.is_live(connection));
    connections.count_cut_off(usize::from(driver.is_live(connection)));
    driver.clear();
    drop(handler);
    drop(admitted);
    Ok(())
}
