//! Transfer logs in both formats, malformed and cut, and the tables that follow from them.
//!
//! The expected figures are computed by hand. Invariant: no bytes of a log make the reader panic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod reading;
mod tables;

use plimsoll_lab::transfer_log::{BadLine, TransferLog, read};

/// A transfer in plimsoll's log. Times are in milliseconds.
fn json(name: &str, bytes: u64, start: u64, end: u64) -> String {
    let (start, end) = (start * 1000, end * 1000);
    format!(
        "{{\"start\":{start},\"end\":{end},\"protocol\":\"ftp\",\"operation\":\"download\",\
         \"peer\":\"127.0.0.1\",\"account\":\"anonymous\",\"path\":\"/{name}\",\"bytes\":{bytes},\
         \"result\":\"ok\"}}\n"
    )
}

/// A transfer in xferlog, which ends at a minute and second of an hour.
fn xferlog(name: &str, bytes: u64, end: &str, seconds: u64) -> String {
    format!("Wed Nov 25 11:{end} 2026 {seconds} 127.0.0.1 {bytes} /pub/{name} b _ o a ? ftp 0 * c\n")
}

fn parsed(log: &str) -> TransferLog {
    read(log.as_bytes()).unwrap()
}

fn refused(log: &[u8]) -> BadLine {
    read(log).unwrap_err().downcast().unwrap()
}

const MB: u64 = 1024 * 1024;
