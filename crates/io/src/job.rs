//! Blocking work in the form that engines run: in slices, on behalf of an owner.
//!
//! It does not wait for the result ([`crate::offload`] does). Invariant: a slice is short, so that its
//! worker is soon free for other owners.

use core::net::IpAddr;
use std::ops::ControlFlow;

use crate::file::Fs;
use crate::transport::Peer;

/// An account or a network on whose behalf work is done: owners share workers evenly. It is a hash; two
/// owners with the same hash share one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobOwner(u64);

impl JobOwner {
    /// The server itself: work that no client has requested.
    pub const NONE: JobOwner = JobOwner(0);

    /// Returns the owner for an account, by its number.
    #[must_use]
    pub fn account(id: i64) -> JobOwner {
        JobOwner(mixed(1, &id.to_le_bytes()))
    }

    /// Returns the owner for a guest: its address, of IPv6 the first 64 bits. All peers of Unix sockets
    /// are one owner.
    #[must_use]
    pub fn guest(peer: &Peer) -> JobOwner {
        JobOwner(match peer {
            Peer::Ip(ip, _) => match ip.to_canonical() {
                IpAddr::V4(ip) => mixed(2, &ip.octets()),
                IpAddr::V6(ip) => mixed(3, &ip.octets()[..8]),
            },
            Peer::Unix => mixed(4, &[]),
        })
    }

    /// Returns the local owner for another server's owner `number`. `directory` is the name of that
    /// server's account directory; an empty name keeps the number.
    #[must_use]
    pub fn of_directory(number: u64, directory: &str) -> JobOwner {
        match directory {
            "" => JobOwner(number),
            directory => JobOwner(mixed(number, directory.as_bytes())),
        }
    }

    /// Returns its number, to be sent to another server.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Computes FNV-1a over `seed` and `bytes`; never zero.
fn mixed(seed: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    let seeded = seed.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325, add);
    bytes.iter().fold(seeded, add).max(1)
}

/// Whether a job has more slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More slices are left.
    Unfinished,
    /// No slice is left.
    Finished,
}

/// The work of a job.
pub(crate) trait Task: Send {
    /// Runs a slice on a worker that may block.
    fn run_slice(&mut self, fs: &dyn Fs) -> Progress;

    /// Whether its result is no longer wanted and nothing has to be undone.
    fn is_abandoned(&self) -> bool;
}

/// Blocking work, which a worker runs one slice at a time.
pub struct Job {
    owner: JobOwner,
    task: Box<dyn Task>,
}

impl Job {
    pub(crate) fn new(owner: JobOwner, task: impl Task + 'static) -> Job {
        Job { owner, task: Box::new(task) }
    }

    /// Returns the owner on whose behalf it is done.
    #[must_use]
    pub fn owner(&self) -> JobOwner {
        self.owner
    }

    /// Runs one slice.
    pub fn run_slice(&mut self, fs: &dyn Fs) -> Progress {
        self.task.run_slice(fs)
    }

    /// Runs all slices.
    pub fn run(mut self, fs: &dyn Fs) {
        while self.task.run_slice(fs) == Progress::Unfinished {}
    }

    /// Whether dropping it does no harm: its result is no longer wanted and nothing has to be undone.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.task.is_abandoned()
    }
}

/// Long work in slices. If its caller is gone, no further slice runs.
pub trait SlicedWork: Send + 'static {
    /// The result.
    type Output: Send + 'static;

    /// Runs a slice on a worker that may block.
    fn run_slice(&mut self, fs: &dyn Fs) -> ControlFlow<Self::Output>;

    /// Whether [`SlicedWork::cancel`] has anything to undo.
    fn leaves_something(&self) -> bool {
        false
    }

    /// Undoes the effects of the slices, because the caller is gone.
    fn cancel(&mut self, fs: &dyn Fs) {
        let _ = fs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_of_different_kinds_and_directories_differ() {
        let peer = |ip: &str| Peer::Ip(ip.parse().unwrap(), 1);
        let account = JobOwner::account(1);
        let owners = [
            JobOwner::NONE,
            account,
            JobOwner::account(2),
            JobOwner::guest(&peer("127.0.0.1")),
            JobOwner::guest(&peer("2001:db8::1")),
            JobOwner::guest(&Peer::Unix),
            JobOwner::of_directory(account.number(), "other"),
        ];
        let distinct: std::collections::BTreeSet<JobOwner> = owners.into_iter().collect();
        assert_eq!(distinct.len(), owners.len());
        assert_eq!(JobOwner::of_directory(account.number(), ""), account);
        assert_eq!(JobOwner::guest(&peer("2001:db8::1")), JobOwner::guest(&peer("2001:db8::2")));
    }
}
