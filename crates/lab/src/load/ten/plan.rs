//! What the users of a mix have in common.
//!
//! Nothing is sent from here. What must hold: a name or a file that one life of one user in one run has, no
//! other has.

use std::future::ready;
use std::io;
use std::rc::Rc;

use plimsoll_client::http::{Client, Resolving, Url};
use plimsoll_io::{Address, Io};

use super::Mix;
use crate::load::files::mixed;
use crate::load::workload::{Checked, Connections, Workload};

/// What the users of a mix have in common; shared by all threads.
pub(crate) struct Plan {
    pub(super) mix: Mix,
    pub(super) seed: u64,
    pub(super) checked: Checked,
    /// Connections are kept.
    pub(super) keeps: bool,
    base: Url,
    addresses: Vec<Address>,
    /// Bytes of a file.
    bytes: usize,
    /// Makes names differ from those of other runs.
    run: u64,
}

impl Plan {
    /// Makes ready what users have in common; `run` is a number that no other run has.
    ///
    /// # Errors
    /// The URL cannot be the base of what is asked; files of that size do not fit into memory.
    pub(crate) fn new(workload: &Workload, mix: Mix, bytes: u64, run: u64) -> io::Result<Plan> {
        let bad = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let base = format!("http://{}{}", workload.place.authority, workload.place.pattern);
        Ok(Plan {
            mix,
            seed: workload.seed,
            checked: workload.checked,
            keeps: workload.connections == Connections::Kept,
            base: base.parse().map_err(|why| bad(format!("{base}: {why}")))?,
            addresses: workload.place.addresses.clone(),
            bytes: usize::try_from(bytes).map_err(|why| bad(why.to_string()))?,
            run,
        })
    }

    /// A client that is not connected yet, and sends nothing twice. The server's name was looked up already.
    pub(super) fn client(&self, io: &Io) -> Client {
        let ip = |address: &Address| if let Address::Ip(at) = address { Some(*at) } else { None };
        let addresses: Vec<_> = self.addresses.iter().filter_map(ip).collect();
        let known = move |_: &str, _: u16| -> Resolving { Box::pin(ready(Ok(addresses.clone()))) };
        Client::new(io, self.base.clone()).with_resolve(Rc::new(known)).without_repeats()
    }

    /// The name of an account that nobody had.
    pub(super) fn name(&self, user: u64, life: u64) -> String {
        format!("load-{:x}-{user}-{life}", self.run)
    }

    /// The bytes of a file, which no other file has.
    pub(super) fn file(&self, user: u64, life: u64, number: usize) -> Vec<u8> {
        let seed = mixed(mixed(self.seed, self.run, user), life, number as u64);
        let words = (0..self.bytes.div_ceil(8) as u64).flat_map(|word| mixed(seed, word, 0).to_le_bytes());
        words.take(self.bytes).collect()
    }
}
