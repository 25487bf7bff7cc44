//! A reverse proxy for HTTP/1.1: it relays requests to origins, and their responses to clients.
//!
//! [`Proxy`] is the handler for an engine. It receives requests by the same rules as the server
//! (`plimsoll_proto`), finds their route (`route.rs`), and relays both directions of an exchange at once
//! (`exchange`).
//!
//! It may answer from a cache (`cache`, joined to the exchange by `caching`).
//!
//! It opens no tunnels on request, and resolves no names: `Io` and the caller do. Invariants:
//! client and origin never disagree about where a message ends, because both sides' messages are parsed
//! strictly and their framing is written anew. A response that is cut short is visible as such to the client.
//! Memory for an exchange is bounded, however slow either side is. Every wait has a limit.
#![forbid(unsafe_code)]

mod admission;
mod balance;
mod body;
pub mod cache;
mod caching;
mod client;
mod detached;
mod exchange;
mod failure;
mod fields;
mod histogram;
pub mod limits;
mod metrics;
mod origin;
mod own_answers;
mod proxy;
mod purging;
mod request_head;
mod response_head;
mod route;
mod scheme;
mod settings;
mod side_tasks;
mod spool;

pub use balance::{BadOrigins, Balance};
pub use fields::FieldRules;
pub use limits::OriginTimes;
pub use metrics::{metrics, status};
pub use origin::Origin;
pub use proxy::{Logs, Proxy, is_any_origin_up};
pub use purging::Purging;
pub use settings::{ForwardHosts, Names, Settings};
pub use spool::SpoolSpace;
