//! One future on the caller's own thread: a client, a command, a test.
//!
//! It serves nothing. What must hold: the future runs on the same driver, and by the same contract, as a
//! server's connections do.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Io, Stop};

use crate::connections::Connections;
use crate::driver::Driver;
use crate::serve::Kind;

/// Runs one future on this thread, under the engine `kind`, until it is ready: a client, a test.
///
/// # Errors
/// What the system says when the engine is made; an error also if the future panics, which is logged.
pub fn block_on<T: 'static, F: Future<Output = T> + 'static>(
    kind: Kind,
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
