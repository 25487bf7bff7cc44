//! FTP as bytes: RFC 959 and what has been added to it since.
//!
//! Not here: sessions, connections, files. What must hold: no byte of a name or a text can begin or end a
//! line of the control connection; what a peer sends is understood in one way, whatever pieces it comes in.

pub mod address;
pub mod answer;
pub mod answers;
pub mod ascii;
pub mod command;
pub mod facts;
pub mod flags;
pub mod glob;
pub mod hash;
pub mod line;
pub mod listing;
pub mod options;
pub mod time;
