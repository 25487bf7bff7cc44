//! FTP's wire format: RFC 959 and its extensions.
//!
//! Not here: sessions, connections, files. Invariants: no byte of a name or a text can begin or end a line
//! of the control connection; the reading of the input does not depend on how it is split.

pub mod address;
pub mod ascii;
pub mod command;
pub mod facts;
pub mod flags;
pub mod glob;
pub mod hash;
pub mod line;
pub mod listing;
pub mod options;
pub mod reply;
pub mod reply_parser;
pub mod time;
