//! HTTP/1.1's wire format: RFC 9110 (semantics) and RFC 9112 (messages).
//!
//! Not here: the meaning of a request to the file server, and when to read or write. Invariant: a message
//! is either read exactly as every other strict implementation reads it, or refused. Leniency about the end
//! of a message enables request smuggling past a proxy.

pub mod answer;
mod base64;
pub mod body;
pub mod chunked;
pub mod conditional;
pub mod credentials;
pub mod date;
pub mod dav;
pub mod digest;
mod field;
mod fields;
pub mod form;
pub mod form_urlencoded;
pub mod forwarded;
mod grammar;
pub mod head;
pub mod media_type;
pub mod mtime;
pub mod multipart;
pub mod negotiate;
pub mod origin;
pub mod problem_code;
pub mod range;
pub mod refusal;
pub mod response;
pub mod set_cookie;
pub mod status;
pub mod target;
pub mod tus;

pub use grammar::is_token;
