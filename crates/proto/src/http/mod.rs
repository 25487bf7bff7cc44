//! HTTP/1.1 (RFC 9110, RFC 9112): one connection's conversation, and the services behind it.
//!
//! [`Http`] is what an engine serves. It reads requests ([`mod@self`]'s inbox and body), asks a [`Service`]
//! for an [`Answer`], sends it and logs it. [`Routes`] is the service of a real server: its health, its
//! status, and the sites of [`site`].
//!
//! It is not a framework: a service is one function from a request to an answer. What must hold: a
//! request is answered or its connection ends; nothing of one request is taken for part of the next.

mod access_log;
mod answer;
mod api;
mod body;
mod clock;
mod conversation;
mod counters;
mod forwarded;
mod inbox;
pub mod limits;
mod operator;
mod problem;
mod readiness;
mod request;
mod routes;
mod rpc_server;
mod sending;
mod service;
pub mod site;
mod status_page;

pub use access_log::{AccessLog, LogSink};
pub use answer::{Answer, Body};
pub use api::{Answering, Api, Authorising, Called};
pub use body::{BodyError, RequestBody};
pub use counters::Counters;
pub use limits::{Limits, OVER_SHARE};
pub use operator::operators_only;
pub use problem::problem;
pub use readiness::{Asked, Check, Readiness};
pub use request::{Arrival, ConnectionData, Request};
pub use routes::{Routes, is_reserved};
pub use rpc_server::RpcServer;
pub use service::{Http, Service, Snapshot};
pub use status_page::{Load, StatusPage, Tiers, Whereabouts};
