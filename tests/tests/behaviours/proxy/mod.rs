//! The reverse proxy, in front of the file server and of origins that misbehave.
//!
//! The process engine is left out: the scenes have no proxy there.

mod ambiguous;
mod bounds;
mod cached;
mod caching;
mod caching_errors;
mod changing;
mod failures;
mod fields;
mod origin;
mod origins;
mod over_tls;
mod passed;
mod passed_changes;
mod relaying;
mod retries;
mod slices;
mod slow_clients;
mod unreadable;
mod upgrades;
mod variants;
