//! What was confirmed is there, whole, after the server was killed, and after the power went.
//!
//! A kill takes nothing from the system's caches, so it tests no sync: [`power`] has a device for that. What
//! must hold: contents say which version they are, and each writer knows each state that its folder was in.

mod account;
pub(crate) mod chance;
mod check;
mod device;
mod fuse;
mod kill;
mod ledger;
mod power;
mod writer;
