//! The functions that the binary passes to the commands: an event loop, a resolver, the limit of open files.
//!
//! It implements none of them. Invariant: an error of the event loop is reported like any other.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use plimsoll_client::http::{Resolve, Url};
use plimsoll_io::{Elapsed, Io, LocalFuture};

use crate::api_client::ApiClient;
use crate::session::Session;
use crate::trust::{TrustArgs, open};

/// Runs the future that a function returns for an event loop, to its end, on this thread.
pub type BlockOn = fn(Box<dyn FnOnce(Io) -> LocalFuture>) -> io::Result<()>;

/// The functions that the binary passes to the commands.
#[derive(Clone, Copy)]
pub struct Runtime {
    /// Runs a future to its end, on this thread.
    pub block_on: BlockOn,
    /// Returns a resolver of host names.
    pub resolve: fn(&Io) -> Resolve,
    /// Raises the limit of open files to the hard limit. Returns the limit.
    pub raise_open_files: fn() -> u64,
}

impl Runtime {
    /// Runs `command` with the server at `url`, which is trusted by `trust`, and the session for its
    /// requests. Gives up after `time_max`, which begins before the connection is opened, unless a person has
    /// to be asked.
    pub(crate) fn run<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
        self,
        (url, trust): (Url, TrustArgs),
        session: Option<Session>,
        time_max: Option<Duration>,
        command: impl FnOnce(ApiClient) -> F + 'static,
    ) -> anyhow::Result<T> {
        let result = Rc::new(Cell::new(None));
        let cell = Rc::clone(&result);
        let main = move |io: Io| -> LocalFuture {
            Box::pin(async move {
                let deadline = io.deadline();
                time_max.into_iter().for_each(|time| deadline.after(time));
                let opened_and_run = async {
                    let server = open(&io, self, (url.clone(), session), &trust, &deadline).await?;
                    command(server).await
                };
                let result = deadline.within(opened_and_run).await.unwrap_or_else(|Elapsed| {
                    Err(anyhow!("{url} did not answer within {:?}", time_max.unwrap_or_default()))
                });
                cell.set(Some(result));
            })
        };
        (self.block_on)(Box::new(main)).context("cannot run the command")?;
        result.take().context("the command ended without a result")?
    }
}
