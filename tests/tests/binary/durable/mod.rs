//! Confirmed changes survive a killed server, and a power cut, complete.
//!
//! A kill does not discard the page cache, so it tests no sync: [`power`] has a device for that. Contents
//! must identify their version, and each writer must record each state of its folder.

mod account;
pub(crate) mod chance;
mod check;
mod device;
mod fuse;
mod kill;
mod ledger;
mod power;
mod writer;
