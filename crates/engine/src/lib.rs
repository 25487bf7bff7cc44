//! Engines: the event loops, threads and processes that run protocols on a real kernel.
//!
//! [`serve()`] takes listeners, each with its protocol, and one [`EngineKind`] of engine. [`block_on()`] runs
//! one future for a client; [`run_all()`] runs many. All kinds share one executor, that of the contract. Two
//! kinds of socket exist: one is driven by readiness (`ready`, with epoll or poll), the other hands its
//! operations to io_uring (`ring`). Each kind of engine has a small dispatcher ([`serve`](mod@serve)).
//!
//! This is not a general runtime, and it knows no protocol. Invariants: every engine keeps the contract of
//! `plimsoll_io` alike. `unsafe` is allowed in this crate only, each block with its reason. It occurs only
//! in `ring`, the fork, the shared page, `mallopt`, and three system calls that take a pointer.

mod block_on;
mod clock;
mod connections;
mod driver;
mod files;
mod flush_queue;
mod heap;
pub mod limits;
mod notifier;
mod offload;
mod page;
mod ready;
mod ring;
mod scheduling;
mod send_queue;
mod sendfile;
pub mod serve;
mod sockets;
mod splice;
mod stream_state;
mod tcp_state;

#[cfg(test)]
#[path = "../../../tests/src/skips.rs"]
mod skips;

pub use block_on::{block_on, run_all};
pub use clock::since_start;
pub use connections::{Connections, NoPerAddress, PerAddress, SlotPolicy};
pub use files::{SystemFs, check_kernel};
pub use heap::bound_heap;
pub use page::shared_cells;
pub use ready::{Bound, Service, bind, check_bind};
pub use ring::{NoRing, check_ring};
pub use serve::process::{
    Forked, Forking, Master, MasterEnd, Orders, ProcessBound, Reload, ReloadScope, fork_master, processes_max,
};
pub use serve::{EngineKind, NoWhenFull, Plan, UnknownEngine, WhenFull, serve};
