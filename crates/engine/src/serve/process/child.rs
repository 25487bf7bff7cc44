//! The process of one connection.
//!
//! It is not the master, of which it is a copy. Invariants: it serves on one thread. It ends without running
//! the master's exit handlers or destructors, and reports its result by its exit code.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Peer, Setup, Stop};
use rustix::process::Pid;

use super::fork;
use crate::connections::{Connections, Entry, serve_until_evicted};
use crate::driver::Driver;
use crate::offload::Offload;
use crate::serve::EngineKind;

/// Exit codes of a connection's process.
pub(super) mod code {
    /// Its connection has ended.
    pub(in super::super) const SERVED: i32 = 0;
    /// It could not be served; the log says why.
    pub(in super::super) const NOT_SERVED: i32 = 1;
    /// The grace period ended before the connection did.
    pub(in super::super) const CUT_OFF: i32 = 2;
    /// It panicked outside of its connection: a defect.
    pub(in super::super) const PANICKED: i32 = 3;
}

/// A connection, and all that is needed to serve it.
pub(super) struct Child {
    pub(super) fd: OwnedFd,
    pub(super) peer: Peer,
    /// The entry by which the master sees the connection's state.
    pub(super) entry: Arc<Entry>,
    pub(super) setup: Setup,
    pub(super) master: Pid,
    /// The pipe whose end is the order to stop.
    pub(super) stopped: OwnedFd,
    pub(super) stop: Stop,
    pub(super) grace: Duration,
    pub(super) connections: Arc<Connections>,
}

impl Child {
    /// Serves the connection, and ends this process.
    pub(super) fn live(self) -> ! {
        fork::end_with(code::PANICKED, || match self.serve() {
            Ok(code) => code,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be served");
                code::NOT_SERVED
            }
        })
    }

    fn serve(self) -> io::Result<i32> {
        let Child { fd, peer, entry, setup, master, stopped, stop, grace, connections } = self;
        fork::end_with_parent(master)?;
        let driver = Driver::new(EngineKind::Process.wait(), Offload::alone(), &stop, &connections)?;
        let _entered = driver.enter();
        if let Some(hangup) = driver.sockets().hangup(stopped) {
            driver.spawn(Box::pin(async move {
                if let Err(error) = hangup.wait().await {
                    tracing::warn!(%error, "a connection will not see the order to stop");
                    return;
                }
                stop.order();
            }));
        }
        let handler = setup(driver.io());
        driver.spawn(handler.background());
        let stream = driver.sockets().accepted(fd, peer, entry.slot());
        let connection = driver.spawn(Box::pin(serve_until_evicted(&entry, handler.serve(stream))));
        driver.run(grace, || !driver.is_live(connection));
        let code = if driver.is_live(connection) { code::CUT_OFF } else { code::SERVED };
        driver.clear();
        // The handler writes out its buffered lines of the log now.
        drop(handler);
        Ok(code)
    }
}
