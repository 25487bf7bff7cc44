//! The data shared by the users of a mix.
//!
//! Nothing is sent from here. Invariant: names of accounts and contents of files are unique to a life, a
//! user and a run.

use std::future::ready;
use std::io;
use std::rc::Rc;

use plimsoll_client::http::{Client, Connector, Resolving, Url};
use plimsoll_io::{Address, Io};

use super::Mix;
use crate::files::mixed;
use crate::workload::{Checked, Connections, Workload};

/// The data shared by the users of a mix, on all threads.
pub(crate) struct Plan {
    pub(super) mix: Mix,
    pub(super) seed: u64,
    pub(super) checked: Checked,
    /// Connections are keep-alive.
    pub(super) keeps: bool,
    base: Url,
    addresses: Vec<Address>,
    tls: Option<Connector>,
    /// Size of a file in bytes.
    bytes: usize,
    /// A number unique to the run, which is part of all names.
    run: u64,
}

impl Plan {
    /// Prepares the shared data. `run` must be unique to the run.
    ///
    /// # Errors
    /// An error if the URL is invalid as a base, or files of that size do not fit into memory.
    pub(crate) fn new(workload: &Workload, mix: Mix, bytes: u64, run: u64) -> io::Result<Plan> {
        let bad = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let scheme = workload.place.scheme.name();
        let base = format!("{scheme}://{}{}", workload.place.server, workload.place.pattern);
        Ok(Plan {
            mix,
            seed: workload.seed,
            checked: workload.checked,
            keeps: workload.connections == Connections::Kept,
            base: base.parse().map_err(|why| bad(format!("{base}: {why}")))?,
            addresses: workload.place.addresses.clone(),
            tls: workload.tls.clone(),
            bytes: usize::try_from(bytes).map_err(|why| bad(why.to_string()))?,
            run,
        })
    }

    /// Returns a client that is not connected yet, and retries nothing. The server's name is already
    /// resolved.
    pub(super) fn client(&self, io: &Io) -> Client {
        let ip = |address: &Address| if let Address::Ip(at) = address { Some(*at) } else { None };
        let addresses: Vec<_> = self.addresses.iter().filter_map(ip).collect();
        let known = move |_: &str, _: u16| -> Resolving { Box::pin(ready(Ok(addresses.clone()))) };
        let client = Client::new(io, self.base.clone()).with_resolve(Rc::new(known)).without_repeats();
        match &self.tls {
            Some(tls) => client.with_tls(tls.clone()),
            None => client,
        }
    }

    /// Returns a unique name for an account.
    pub(super) fn name(&self, user: u64, life: u64) -> String {
        format!("load-{:x}-{user}-{life}", self.run)
    }

    /// Returns the content of a file, which no other file has.
    pub(super) fn file(&self, user: u64, life: u64, number: usize) -> Vec<u8> {
        let seed = mixed(mixed(self.seed, self.run, user), life, number as u64);
        let words = (0..self.bytes.div_ceil(8) as u64).flat_map(|word| mixed(seed, word, 0).to_le_bytes());
        words.take(self.bytes).collect()
    }
}
