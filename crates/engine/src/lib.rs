//! Engines: what `await` means when a protocol is served for real.
//!
//! [`serve()`] takes listeners, each with the protocol behind it, and one [`Kind`] of engine; [`block_on()`]
//! runs one future for a client, [`run_all()`] many. Inside there is one executor (the contract's), one
//! socket that is told when to try (`ready`) with two ways to park, one that hands its work to the kernel
//! (`ring`), and a small dispatcher for each kind ([`serve`](mod@serve)).
//!
//! It is not a runtime for others' code and knows no protocol. What must hold: every engine keeps the
//! contract of `plimsoll_io` alike; `unsafe` may stand in this crate, each block with its reason, and only
//! `ring`, the fork, the shared page and two calls that the system takes a pointer for have any.

mod block_on;
mod clock;
mod connections;
mod driver;
mod files;
mod heap;
pub mod limits;
mod notifier;
mod offload;
mod page;
mod ready;
mod ring;
mod scheduling;
mod sendfile;
pub mod serve;
mod sockets;

pub use block_on::{block_on, run_all};
pub use clock::since_start;
pub use connections::{Connections, NoPerAddress, PerAddress, SlotPolicy};
pub use files::{SystemFs, check_kernel};
pub use heap::bound_heap;
pub use page::shared_cells;
pub use ready::{Bound, Service, bind, check_bind};
pub use ring::{NoRing, check_ring};
pub use serve::process::{
    Forked, Forking, Master, MasterEnd, Orders, ProcessBound, Reload, fork_master, processes_max,
};
pub use serve::{Kind, NoWhenFull, Plan, UnknownEngine, WhenFull, serve};
