//! A storage server: the requests of fronts, their transport, and the RPC server that answers them.
//!
//! It stores no bytes and decides nothing: [`StoreServer`] calls the store in its process, which
//! decides under the home's lock as for any caller. Requests are JSON, each in one HTTP request. Bytes
//! are streamed, one HTTP request for each file. A GET has the file as its body. A PUT has [`Frames`],
//! the last of which says how the upload ends.
//!
//! Invariants: only the server's own response reports success. A front without a response does not know the
//! outcome, and reports [`crate::Error::Away`]. An upload with a broken connection is interrupted. Every
//! wait and every message is bounded.

mod ascii;
mod client;
mod file;
mod frames;
mod home;
mod listing;
mod request;
mod rpc_server;
mod spool;
mod upload;

pub use ascii::{from_ascii, to_ascii};
pub use client::{CALL, ERROR, STAT, StoreAddress, check_server};
pub use frames::{Frame, Frames};
pub use request::{FILES, LISTINGS, ListRequest, PageJson, READY, REQUESTS, StoreRequest};
pub use rpc_server::{StoreServer, encode_result};

pub(crate) use client::StoreClient;
