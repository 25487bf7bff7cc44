//! Sharing of fetches: many requests for one absent object cause one request to the origin.
//!
//! Not here: the request, and the files. A pure state machine with wakers: a [`Lead`] publishes, the
//! [`Follower`]s read behind it. Invariants: a follower waits only while its lead is alive; followers of a
//! response that turns out uncacheable, or not theirs, proceed in parallel; a fetch that a purge voided is
//! joined by no later request and never stored.

mod follower;
mod lead;
mod spool;
mod table;

pub use follower::{FollowedHead, Follower};
pub use lead::Lead;
pub use spool::Available;
pub use table::{FetchFigures, FetchKey, Fetches, Joined};

#[cfg(test)]
mod tests;
