//! HTTP/1.1 (RFC 9110, RFC 9112): the conversation on a connection, and the services behind it.
//!
//! [`Http`] is the handler for an engine. It receives requests (`inbox.rs`, `body.rs`), calls a [`Service`]
//! for an [`Answer`], sends the answer and logs it. [`Routes`] is the service of a real server: health,
//! status and the sites.
//!
//! It is not a framework: a service is one function from a request to a response. Invariants: a request is
//! answered or its connection ends. No byte of one request is taken for part of another.

mod access_log;
mod answer;
mod api;
mod body;
mod challenges;
mod connection;
mod conversation;
mod cors;
mod counters;
mod date_cache;
mod forwarded;
mod https_rules;
mod inbox;
pub mod limits;
mod link_path;
mod local_request;
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
mod turns;

pub use access_log::{AccessLog, LogEntry, LogSink};
pub use answer::{Answer, Body};
pub use api::{Api, DecodedTarget, PendingAnswer, PendingAuthorisation};
pub use body::{BodyError, RequestBody};
pub use challenges::Challenges;
pub use connection::{Common, ConnectionState, Records, ServerConnection};
pub use cors::Cors;
pub use counters::Counters;
pub use date_cache::{DateCache, Dates};
pub use https_rules::{HttpsRedirect, HttpsRules};
pub use inbox::{Inbox, NoHead};
pub use limits::{Limits, OVER_SHARE};
pub use link_path::{is_link, split_link};
pub use operator::{OperatorHosts, operators_only};
pub use problem::problem;
pub use readiness::{Check, CheckRun, Readiness};
pub use request::{Arrival, ConnectionData, Request};
pub use routes::{Routes, is_reserved};
pub use rpc_server::RpcServer;
pub use service::{Http, Service, Snapshot};
pub use status_page::{Answers, CertificateStatus, Load, StatusDocument, StatusPage, TierLocation, Tiers};
pub use turns::{Answered, Ending, Refused, SideWork, Turns, answer_in_turn, refuse_busy, resume_turns};
