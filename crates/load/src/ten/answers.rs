//! Checks of the responses to the ten requests.
//!
//! No request is sent here. Invariant: a response without its required content is an error, regardless of
//! its status.

use std::io;

use plimsoll_client::http::{Error, Response, When};
use serde_json::Value;

use crate::checking::{Fingerprint, Fingerprinting};
use crate::failure::Failure;
use crate::limits::JSON_BYTES_MAX;

/// Receives a JSON response with this status. Returns the value and its length in bytes.
pub(super) async fn json(mut response: Response<'_>, status: u16) -> Result<(Value, u64), Failure> {
    expect(&response, status)?;
    let text = response.bytes(JSON_BYTES_MAX).await.map_err(failure)?;
    let value = serde_json::from_slice(&text);
    Ok((value.map_err(|_| Failure::Malformed("it is no JSON"))?, text.len() as u64))
}

/// Receives a response with this status, and ignores its body.
pub(super) async fn done(mut response: Response<'_>, status: u16) -> Result<(), Failure> {
    expect(&response, status)?;
    while response.recv().await.map_err(failure)?.is_some() {}
    Ok(())
}

/// Receives a file, and compares it with its reference: the length, and if `is_due`, the digest.
pub(super) async fn file(
    mut response: Response<'_>,
    expected: &Fingerprint,
    is_due: bool,
) -> Result<(), Failure> {
    expect(&response, 200)?;
    let (mut bytes, mut fingerprinting) = (0, is_due.then(Fingerprinting::new));
    while let Some(lease) = response.recv().await.map_err(failure)? {
        bytes += lease.len() as u64;
        if let Some(fingerprinting) = &mut fingerprinting {
            fingerprinting.take(&lease);
        }
    }
    let is_right = fingerprinting.is_none_or(|fingerprinting| fingerprinting.end() == *expected);
    if is_right && bytes == expected.bytes() { Ok(()) } else { Err(Failure::WrongBody) }
}

/// Checks that a list has this many entries.
pub(super) fn has(list: &Value, count: usize) -> Result<(), Failure> {
    let entries = list.as_array().ok_or(Failure::Malformed("a list is missing in it"))?;
    if entries.len() == count { Ok(()) } else { Err(Failure::WrongBody) }
}

fn expect(response: &Response<'_>, status: u16) -> Result<(), Failure> {
    match response.status().code() {
        found if found == status => Ok(()),
        found => Err(Failure::Status(found)),
    }
}

/// Maps a client error to a kind of failure.
pub(super) fn failure(error: Error) -> Failure {
    match error {
        Error::Connect { source, .. } | Error::Resolve { source, .. } => Failure::Connect(source),
        Error::Tls { source, .. } => Failure::Connect(io::Error::other(source)),
        Error::Broken { when: When::Receiving, source } => Failure::Short(source),
        Error::Broken { source, .. } | Error::Source(source) => Failure::Broken(source),
        Error::Late(_) => Failure::Timeout,
        Error::Malformed(bad) => bad.into(),
        Error::TooLong { .. } => Failure::WrongBody,
        Error::Request(_) => Failure::Broken(io::ErrorKind::InvalidInput.into()),
        Error::Unexpected | Error::Unreadable(_) => Failure::Malformed("it does not fit what was asked"),
    }
}
