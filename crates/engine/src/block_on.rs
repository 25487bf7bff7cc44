//! Runs one future, or many, on the caller's own thread: for clients, commands, load generators and tests.
//!
//! It does not serve connections. Invariant: a future runs on the same driver, and under the same contract,
//! as the connections of a server.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Io, LocalFuture, Stop};

use crate::connections::Connections;
use crate::driver::Driver;
use crate::serve::EngineKind;

/// Runs one future on this thread, under the engine `kind`, until it is ready.
///
/// # Errors
/// Fails if the engine cannot be created, or if the future panics; the panic is logged.
pub fn block_on<T: 'static, F: Future<Output = T> + 'static>(
    kind: EngineKind,
    main: impl FnOnce(Io) -> F,
) -> io::Result<T> {
    let driver = Driver::new(kind.wait(), kind.offload()?, &Stop::new(), &Connections::new(usize::MAX))?;
    let entered = driver.enter();
    let result = Rc::new(Cell::new(None));
    let (future, slot) = (main(driver.io()), Rc::clone(&result));
    let task = driver.spawn(Box::pin(async move { slot.set(Some(future.await)) }));
    driver.run(Duration::MAX, || !driver.is_live(task));
    driver.clear();
    drop(entered);
    result.take().ok_or_else(|| io::Error::other("the task panicked; its message is in the log"))
}

/// Runs many futures on this thread, under the engine `kind`, until all have ended, or until `grace` after
/// the order to stop, which all of them can see. Drops the futures that are left.
///
/// # Errors
/// Fails if the engine cannot be created, or if a future panics; the panic is logged.
pub fn run_all(
    kind: EngineKind,
    stop: &Stop,
    grace: Duration,
    begin: impl FnOnce(&Io) -> Vec<LocalFuture>,
) -> io::Result<()> {
    let connections = Connections::new(usize::MAX);
    let driver = Driver::new(kind.wait(), kind.offload()?, stop, &connections)?;
    let entered = driver.enter();
    for task in begin(&driver.io()) {
        driver.spawn(task);
    }
    driver.run(grace, || !driver.any_live());
    driver.clear();
    drop(entered);
    match connections.panicked() {
        0 => Ok(()),
        some => Err(io::Error::other(format!("{some} tasks panicked; their messages are in the log"))),
    }
}
