//! The I/O contract: the operations that a protocol may ask of an engine, and nothing about their
//! implementation.
//!
//! A protocol is written once, as plain async functions over [`Io`] and [`Stream`]. An engine (a crate
//! above this one) implements the operations that the protocol awaits; [`sim`] is a deterministic engine
//! for tests. The executor, the timers and the send queue are shared by all engines. They need no
//! kernel, so they are in this crate: [`exec`] and [`outbox`].
//!
//! This crate is not an engine: it makes no system call, reads no clock, draws no random numbers, and
//! has no `unsafe`.
//!
//! Invariants of every engine (`tests/tests/behaviours/contract` tests each of them):
//!
//! 1. Dropping a future loses no byte: state lives in the transport, and a future is only a registration
//!    for a wakeup.
//! 2. [`Tx::push`] is sent without the task being polled again.
//! 3. A [`Lease`] is exclusive, mutable and owns its memory.
//! 4. Bodies are received one lease at a time: without a receive call nothing is received, and flow
//!    control stops the peer.
//! 5. Dropping a stream aborts it, [`Stream::finish`] delivers it.
//! 6. A panic ends one connection.
//! 7. [`Io::stopping`] is level-triggered and reaches every idle wait.
//! 8. [`Io::room_wanted`] is level-triggered too, per connection. It never becomes ready while each
//!    connection has a worker.
//!
//! Design: docs/design/io-contract.md.
#![forbid(unsafe_code)]

mod address;
mod carrier;
mod cells;
mod client_network;
mod combine;
mod current;
mod deadline;
mod engine;
pub mod exec;
mod fair_queue;
mod file;
mod io;
mod job;
mod lease;
pub mod limits;
mod listener;
mod listing;
mod listing_parts;
mod networks;
mod offload;
pub mod oneshot;
pub mod outbox;
pub mod pacing;
mod parking;
mod piped;
mod resource_pool;
mod segment;
pub mod sim;
mod slot;
mod stop;
mod stream;
mod time;
mod transport;
mod work_queue;

pub use address::{Address, BadAddress};
pub use carrier::{Endpoint, Event, EventSource, Link, ParkedLink, Watch, Watcher};
pub use cells::Cells;
pub use client_network::ClientNetwork;
pub use combine::{Either, Join, Select, join, select};
pub use current::Current;
pub use deadline::{Deadline, Elapsed, Within};
pub use engine::{Engine, Handler, LocalFuture, Setup, Work};
pub use fair_queue::FairQueue;
pub use file::{
    BOUNDARY, Entry, Existing, File, FileKind, FolderReader, Fs, Handle, InMemory, Space, Stat, Volume,
    check_name, read_whole, replace_whole, split_boundary, write_all,
};
pub use io::Io;
pub use job::{Job, JobOwner, Progress, SlicedWork};
pub use lease::{Detached, Lease, POISON, Pool, poison};
pub use listener::{Accept, Listener};
pub use listing::{EntryCollector, FolderListing, ListingPage};
pub use listing_parts::{EntryWriter, ListingPart, ListingParts};
pub use networks::{BadNetwork, Network, Networks};
pub use offload::NotDone;
pub use parking::{Parked, ParkingSpot, Resume};
pub use piped::{Filled, Pipe};
pub use resource_pool::ResourcePool;
pub use segment::{FileRange, Segment};
pub use slot::{Phase, Slot, evicted, keeping_upstream};
pub use stop::{Notify, Stop};
pub use stream::{Rx, Stream, Tx};
pub use time::Instant;
pub use transport::{Discarded, EndProbe, Peer, Transport, Want};
pub use work_queue::{Taken, WorkBounds, WorkQueue};
